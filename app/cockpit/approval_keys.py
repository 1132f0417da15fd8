"""Approvals by key: the present agent's question, plans to accept, and the inbox of all agents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from app.cockpit.server_keys import ServerKeys
from engine.domain import commands as cmd
from engine.domain.approval import Question
from engine.domain.ports import SystemClock
from engine.domain.state import AgentState
from engine.journal import events as ev

if TYPE_CHECKING:
    from engine.inquiry import Need
    from widgets.dialogs.approval import ApprovalChoice, How
    from widgets.dialogs.inbox import InboxDialog
    from widgets.dialogs.plan_approval import PlanApproval

CHANGES_THE_INBOX = (
    *(ev.ApprovalAsked, ev.ApprovalAnswered, ev.ReplanHeld, ev.PlanAccepted, ev.PlanRevised),
    *(ev.InterventionOpened, ev.InterventionClosed, ev.ActionStarted, ev.ActionWithdrawn),
    *(ev.BudgetReached, ev.AgentPaused, ev.AgentResumed, ev.PlansHeld, ev.ChangesOffered),
)
"""Events after which other things wait than before."""


class ApprovalKeys(ServerKeys):
    """Answering what agents ask."""

    _inbox: InboxDialog | None = None
    """The open inbox."""
    _needs: tuple[Need, ...] = ()
    """What the open inbox shows."""
    _said_in_inbox = ""
    _inbox_stale = _reading_inbox = False

    # -------------------------------------------------------------- the present agent's question

    def action_approve(self) -> None:
        """Answer what the agent asks; else accept its plan."""
        self._answer(None)

    def action_deny(self) -> None:
        """Say that what the agent asks may not be done, or reject its re-plan."""
        self._answer("deny")

    def _answer(self, begin: How | None) -> None:
        state = self._projector.state
        if self._refused_in_past() or state is None or len(self.screen_stack) > 1:
            return
        question = state.approvals.question
        if question is not None:
            self._open_questions([(state, question)], begin)
        elif begin is not None and not state.approvals.held:
            self._say("nothing waits that could be denied", "note")
        else:
            self._open_plan(rejects=begin is not None)

    def _offer_question(self) -> None:
        """Open the question by itself, unless the operator is in the middle of something."""
        state = self._live.state
        question = state.approvals.question if state is not None else None
        self.bell()
        if state is None or question is None or len(self.screen_stack) > 1:
            return
        if self._occupied:
            self._say("the agent asks: press a (d denies, A shows all that waits)", "error")
        else:
            self._open_questions([(state, question)], None, unasked=True)

    def _open_questions(
        self, asked: Sequence[tuple[AgentState, Question]], begin: How | None, *, unasked: bool = False
    ) -> None:
        from app.projection import approval_views as views
        from widgets.dialogs.approval import ApprovalDialog

        model = views.questions(asked, SystemClock().now())
        dialog = ApprovalDialog(model, partial(views.scope_of, asked), begin=begin, unasked=unasked)
        self.push_screen(dialog, partial(self._questions_answered, asked))

    def _questions_answered(
        self, asked: Sequence[tuple[AgentState, Question]], choice: ApprovalChoice | None
    ) -> None:
        if choice is None:
            self._say("it goes on waiting; a opens this again, A shows all that waits", "note")
            return
        state, question = asked[0]
        if choice.how == "edit":
            self._edit_question(state, question)
        elif len(asked) > 1:
            needs = [(state.agent_id, question.action) for state, question in asked]
            self._answer_many(needs, choice)
        else:
            self._send(self._command(state.agent_id, question.action, choice))

    def _command(self, agent: str, action: str, choice: ApprovalChoice) -> cmd.AnswerApproval:
        fields: dict[str, Any] = {"agent": agent, "action": action, "allow": choice.how != "deny"}
        if choice.how == "deny":
            fields["reason"] = choice.reason
        else:
            fields |= {"scope": choice.how, "rule": choice.rule}
        return cmd.AnswerApproval.model_validate(fields)

    def _edit_question(self, state: AgentState, question: Question) -> None:
        """Let the operator change the arguments; the step then runs once with them."""
        from widgets.dialogs import StepDraft, StepEdit, StepEditor

        call = question.call
        draft = StepDraft(
            f"Change {question.step} and allow it once: {call.command}", call.tool, call.command, call.args
        )

        def edited(edit: StepEdit | None) -> None:
            if edit is None:
                self._say("nothing was changed; it goes on waiting", "note")
            elif (edit.tool, edit.command) != (call.tool, call.command):
                self._say("another command is another step: deny this one, or edit the step with e", "error")
            else:
                fields = {"agent": state.agent_id, "action": question.action, "allow": True}
                self._send(cmd.AnswerApproval.model_validate({**fields, "args": edit.args}))

        self.push_screen(StepEditor(draft, self._check), edited)

    # -------------------------------------------------------------- plans

    def _open_plan(self, *, rejects: bool = False, unasked: bool = False) -> bool:
        """Show the plan of the goal at hand, or the re-plan that waits; False when there is none."""
        from app.projection import approval_views as views
        from widgets.dialogs.plan_approval import PlanApprovalDialog

        state = self._projector.state
        if state is None or self._engine is None or self._in_past or len(self.screen_stack) > 1:
            return False
        goal = next(iter(state.approvals.held), state.goal_at_hand)
        model = views.plan_to_accept(self._engine, state, goal) if not state.reasons else None
        if model is None:
            self._say("nothing waits for your approval, and there is no plan to accept", "note")
            return False
        check = partial(views.envelope_problem, goal=goal)
        dialog = PlanApprovalDialog(model, check, rejects=rejects, unasked=unasked)
        self.push_screen(dialog, partial(self._plan_answered, state.agent_id, goal))
        return True

    def _plan_answered(self, agent: str, goal: str, choice: PlanApproval | None) -> None:
        from engine.domain.approval import Envelope
        from engine.steering.envelopes import given_envelope

        if choice is None:
            return
        if not choice.accepted:
            self._send(cmd.RejectReplan(agent=agent, goal=goal, reason=choice.reason))
            return
        given = given_envelope(choice.envelope, Envelope(goal))
        self._send(cmd.AcceptPlan(agent=agent, goal=goal, envelope=given))

    def _offer_replan(self) -> None:
        """Open a re-plan by itself, unless the operator is in the middle of something."""
        self.bell()
        if self._occupied:
            self._say("a re-plan waits for your acceptance: press a (d rejects it)", "error")
        else:
            self._open_plan(unasked=True)

    # -------------------------------------------------------------- the inbox

    def action_inbox(self) -> None:
        """Show everything that needs the operator."""
        if self._engine is None:
            self._say("the workspace is still opening", "error")
        elif len(self.screen_stack) == 1 and not self._refused_in_past():
            from widgets.dialogs.inbox import InboxDialog, InboxModel

            self._said_in_inbox = ""
            self._inbox = InboxDialog(InboxModel())
            self.push_screen(self._inbox, self._inbox_closed)
            self._refresh_inbox()

    def _inbox_closed(self, _none: None) -> None:
        self._inbox = None

    def _refresh_inbox(self) -> None:
        self._inbox_stale = True
        if self._inbox is not None and not self._reading_inbox:
            self._reading_inbox = True
            self.run_worker(self._read_inbox(), name="inbox", exit_on_error=False)

    async def _read_inbox(self) -> None:
        from app.projection import approval_views

        try:
            while self._engine is not None and self._inbox is not None and self._inbox_stale:
                self._inbox_stale = False
                self._needs = await self._engine.inbox()
                if self._inbox is not None:
                    model = approval_views.inbox(self._needs, SystemClock().now(), self._said_in_inbox)
                    self._inbox.show(model)
        finally:
            self._reading_inbox = False

    def _look_at_inbox(self, payload: ev.Payload) -> None:
        """Bring an open inbox up to date after an event that may have changed it."""
        if self._inbox is not None and isinstance(payload, CHANGES_THE_INBOX):
            self._refresh_inbox()

    # The handlers' names say which dialog's messages they take, so that it need not be imported before.

    def on_inbox_dialog_refresh_wanted(self, event: InboxDialog.RefreshWanted) -> None:
        """Time has passed."""
        self._refresh_inbox()

    def on_inbox_dialog_answered(self, event: InboxDialog.Answered) -> None:
        """Answer some of the needs, or open one."""
        from engine.inquiry import SYSTEM, NeedKind

        chosen = [need for need in self._needs if need.key in event.keys]
        if not chosen:
            return
        system = [need for need in chosen if need.agent == SYSTEM]
        if system and (event.answer == "open" or system[0].kind is not NeedKind.BACKLOG):
            if self._inbox is not None:
                self._inbox.dismiss(None)
            self.call_later(self._open_of_system, system[0])
            return
        if system:
            self.run_worker(self._items_settled(system, event.answer != "deny"), name="answer")
            return
        if chosen[0].kind is NeedKind.SERVER:
            if self._inbox is not None and event.answer != "deny":
                self._inbox.dismiss(None)
            self.call_later(self._ask_leave, chosen[0].thing, refuse=event.answer == "deny")
            return
        if event.answer == "open" or any(need.kind is not NeedKind.APPROVAL for need in chosen):
            self._open_need(chosen[0])
            return
        states = {state.agent_id: state for state in self._live.states}
        asked = [
            (states[need.agent], question)
            for need in chosen
            if need.agent in states
            and (question := states[need.agent].approvals.question) is not None
            and question.action == need.thing
        ]
        if event.answer == "once" and len(asked) == 1:
            state, question = asked[0]
            command = cmd.AnswerApproval(agent=state.agent_id, action=question.action, allow=True)
            self.run_worker(self._answered_in_inbox(command), name="answer", exit_on_error=False)
        elif asked:
            self._open_questions(asked, event.answer)

    async def _answered_in_inbox(self, command: cmd.AnswerApproval) -> None:
        receipt = await self._submit(command)
        self._said_in_inbox = f"{command.agent}: {receipt.message}"
        self._refresh_inbox()

    async def _items_settled(self, needs: Sequence[Need], approve: bool) -> None:
        from engine.domain.mastermind_commands import SettleItem

        said = [(await self._submit(SettleItem(item=one.thing, approve=approve))).message for one in needs]
        self._said_in_inbox = "; ".join(said)
        self._refresh_inbox()

    def _answer_many(self, asked: Sequence[tuple[str, str]], choice: ApprovalChoice) -> None:
        self.run_worker(self._many_answered(asked, choice), name="answers", exit_on_error=False)

    async def _many_answered(self, asked: Sequence[tuple[str, str]], choice: ApprovalChoice) -> None:
        from app.approving import answer_all, answered_text

        if self._engine is None:
            return
        needs = [need for need in self._needs if (need.agent, need.thing) in asked]
        allow = choice.how != "deny"
        done = await answer_all(
            self._engine,
            self._settings.operator,
            needs,
            allow=allow,
            scope=choice.how if allow else "once",
            words=choice.rule if allow else choice.reason,
        )
        self._said_in_inbox = answered_text(done)
        self._say(self._said_in_inbox, "ok" if all(receipt.ok for _, receipt in done) else "error")
        self._refresh_inbox()

    def _open_need(self, need: Need) -> None:
        """Leave the inbox for what a need is about."""
        if self._inbox is not None:
            self._inbox.dismiss(None)
        self._select(need.agent)
        self.call_later(self._open_present)

    def _open_present(self) -> None:
        """Open whatever the present agent waits with."""
        state = self._projector.state
        if state is None:
            return
        if state.approvals.question is not None or state.approvals.held:
            self.action_approve()
        elif state.intervention is not None or state.handover is not None:
            self.action_intervene()
        elif not self._open_plans():
            self._say(f"{state.agent_id}: {state.run_reason or state.mode}", "note")

    def action_next_need(self) -> None:
        """See `TurnKeys`; what an agent asks is shown too."""
        super().action_next_need()
        state = self._projector.state
        if state is not None and (state.approvals.question is not None or state.approvals.held):
            self.action_approve()

    async def _tell_approvals(self, what: str, argument: str) -> None:
        """Show what is asked and granted, or an envelope, or answer many, as it is typed."""
        from app.approving import told_of_approvals
        from app.verb import Local
        from widgets.dialogs.why import WhyDialog, WhyModel, WhyRow

        if self._engine is None or len(self.screen_stack) > 1:
            return
        code, _, text = await told_of_approvals(
            self._engine, Local(what, argument), self._agent, self._settings.operator
        )
        lines = text.splitlines()
        if code or len(lines) < 2:
            self._say(text, "error" if code else "note")
            return
        rows = tuple(WhyRow(f"{at}", "", "·", "plan", line) for at, line in enumerate(lines))
        self.push_screen(WhyDialog(WhyModel("", "approvals", f"Approvals of {self._agent}", rows)))
