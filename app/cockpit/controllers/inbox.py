"""The inbox: everything that needs the operator, of all agents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.cockpit.context import CockpitContext, in_background
from app.cockpit.controllers.agents import Agents
from app.cockpit.controllers.approvals import Approvals, Asked
from app.cockpit.controllers.campaigns import Campaigns
from app.commands.inbox import answer_all, answered_text
from app.projection import steering_views as approval_views
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.ports import SystemClock
from engine.inquiry.inbox import SYSTEM, Need, NeedKind
from widgets.dialogs.approvals import ApprovalChoice, How
from widgets.dialogs.lists import GROUP, InboxAnswer, InboxDialog

CHANGES_THE_INBOX = (
    *(ev.ApprovalAsked, ev.ApprovalAnswered, ev.ReplanHeld, ev.PlanAccepted, ev.PlanRevised),
    *(ev.InterventionOpened, ev.InterventionClosed, ev.ActionStarted, ev.ActionWithdrawn),
    *(ev.RuleProposed, ev.ProposalClosed),
    *(ev.ControlTaken, ev.ControlAsked, ev.ControlGiven),
    *(ev.BudgetReached, ev.AgentPaused, ev.AgentResumed, ev.PlansHeld, ev.ChangesOffered),
)
"""Events after which other things wait than before."""


class Inbox:
    """Shows what waits, and answers it in place or opens it."""

    def __init__(
        self,
        context: CockpitContext,
        agents: Agents,
        approvals: Approvals,
        campaigns: Campaigns,
        open_present: Callable[[], None],
        open_request: Callable[[Need], None],
    ) -> None:
        self._context = context
        self._agents = agents
        self._approvals = approvals
        self._campaigns = campaigns
        self._open_present = open_present
        self._open_request = open_request
        context.watchers.append(self._watch)
        self._needs: tuple[Need, ...] = ()
        """What the open inbox shows."""
        self._message = ""
        self._inbox_stale = False
        self._reading_inbox = False

    def action_inbox(self) -> None:
        """Show everything that needs the operator."""
        if (
            self._context.opened_engine() is not None
            and self._context.no_dialog
            and not self._context.refused_in_past()
        ):
            self._message = ""
            self._context.push(InboxDialog(approval_views.inbox()))
            self.refresh()

    def _close(self) -> None:
        if (dialog := self._context.showing(InboxDialog)) is not None:
            dialog.dismiss(None)

    def refresh(self) -> None:
        """Bring an open inbox up to date."""
        self._inbox_stale = True
        if self._context.showing(InboxDialog) is not None and not self._reading_inbox:
            self._reading_inbox = True
            self._context.settle(self._read_inbox(), "inbox")

    async def _read_inbox(self) -> None:
        try:
            while (engine := self._context.engine) is not None and self._inbox_stale:
                self._inbox_stale = False
                mine = ("", self._context.settings.operator)
                self._needs = tuple(need for need in await engine.inbox() if need.of in mine)
                if (dialog := self._context.showing(InboxDialog)) is None:
                    return
                dialog.show(approval_views.inbox(self._needs, SystemClock().now()))
                dialog.say(self._message)
        finally:
            self._reading_inbox = False

    def _watch(self, agent: str, payload: ev.Payload) -> None:
        """Bring an open inbox up to date after an event that may have changed it."""
        if isinstance(payload, CHANGES_THE_INBOX):
            self.refresh()

    def on_inbox_dialog_refresh(self) -> None:
        """Time has passed."""
        self.refresh()

    def on_inbox_dialog_answered(self, answer: InboxAnswer, key: str) -> None:
        """Answer some of the needs, or open one."""
        approvals = [need for need in self._needs if need.kind is NeedKind.APPROVAL]
        chosen = [need for need in self._needs if need.key == key]
        chosen = chosen or [need for need in approvals if GROUP + need.group == key]
        if not chosen:
            return
        denied = answer == "deny"
        if chosen[0].agent == SYSTEM:
            self._answer_system(chosen[0], answer)
        elif chosen[0].kind is NeedKind.SERVER:
            if not denied:
                self._close()
            self._context.app.call_later(self._approvals.ask_permission, chosen[0].thing, refuse=denied)
        elif chosen[0].kind is NeedKind.RULE:
            self._answer_rule(chosen[0], answer)
        elif chosen[0].kind is NeedKind.CONTROL:
            if answer in ("open", "deny"):
                self._say(f"a gives {chosen[0].thing} the controls of {chosen[0].agent}; else you keep them")
                return
            give = cmd.GiveControl(agent=chosen[0].agent, to=chosen[0].thing)
            self._context.send(give, lambda receipt: self._say(receipt.message))
        elif answer == "open" or chosen[0].kind is not NeedKind.APPROVAL:
            self._open_need(chosen[0])
        else:
            self._answer_approvals(chosen, answer)

    def _answer_system(self, need: Need, answer: InboxAnswer) -> None:
        """Answer a need of Mastermind's: an item of the backlog in place, all else where it is seen whole."""
        if answer == "open" or need.kind is not NeedKind.BACKLOG:
            self._close()
            self._context.app.call_later(self._campaigns.open_of_system, need)
        else:
            self._campaigns.settle([need.thing], answer != "deny", self._say)

    def _answer_rule(self, need: Need, answer: InboxAnswer) -> None:
        """Take a learned rule up for always or this session, decline it, or say what it is."""
        command: cmd.Command
        if answer in ("open", "once"):
            self._say(f"{need.thing}: g takes it up for good, s for this session, d declines: {need.what}")
            return
        if answer == "deny":
            command = cmd.DeclineRule(agent=need.agent, proposal=need.thing)
        else:
            scope = "session" if answer == "session" else "always"
            command = cmd.TakeRule.model_validate(
                {"agent": need.agent, "proposal": need.thing, "scope": scope}
            )
        self._context.send(command, lambda receipt: self._say(f"{need.agent}: {receipt.message}"))

    def _answer_approvals(self, chosen: Sequence[Need], answer: How) -> None:
        """Answer questions of agents: one that is allowed once in place, others where they are seen whole."""
        states = {state.agent_id: state for state in self._context.live.states}
        asked = [
            (states[need.agent], question)
            for need in chosen
            if need.agent in states
            and (question := states[need.agent].approvals.question) is not None
            and question.action == need.thing
        ]
        if answer == "once" and len(asked) == 1:
            state, question = asked[0]
            command = cmd.AnswerApproval(agent=state.agent_id, action=question.action, allow=True)
            self._context.send(command, lambda receipt: self._say(f"{command.agent}: {receipt.message}"))
        elif asked:
            self._approvals.open_questions(asked, answer, answer_many=self._answer_many)

    def _say(self, message: str) -> None:
        """Show in the open inbox the result of a key."""
        self._message = message
        self.refresh()

    def _answer_many(self, asked: Asked, choice: ApprovalChoice) -> None:
        actions = {(state.agent_id, question.action) for state, question in asked}
        needs = [need for need in self._needs if (need.agent, need.thing) in actions]
        self._many_answered(needs, choice)

    @in_background("answers")
    async def _many_answered(self, needs: Sequence[Need], choice: ApprovalChoice) -> None:
        if self._context.engine is None:
            return
        allow = choice.how != "deny"
        done = await answer_all(
            self._context.engine,
            self._context.settings.operator,
            needs,
            allow=allow,
            scope=choice.how if allow else "once",
            words=choice.rule if allow else choice.reason,
        )
        self._say(answered_text(done))
        self._context.say(self._message, "ok" if all(receipt.ok for _, receipt in done) else "error")

    def _open_need(self, need: Need) -> None:
        """Leave the inbox for what a need is about."""
        self._close()
        if need.kind == "request":
            self._context.app.call_later(self._open_request, need)
            return
        self._agents.select(need.agent)
        self._context.app.call_later(self._open_present)
