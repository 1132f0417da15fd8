"""What agents and servers ask to be allowed: calls, plans to accept, plans that a model made, the jail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from app.cockpit.context import CockpitContext
from app.commands.beliefs import generated_text
from app.projection import agent_views as mind_views
from app.projection import pane_views
from app.projection import steering_views as views
from engine.agent.steering.envelopes import given_envelope
from engine.api.workspace_engine import check_plans
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import DistrustServer, TrustServer
from engine.core.approvals import Envelope, Question
from engine.core.ports import SystemClock
from engine.core.state import AgentState
from engine.value import dataclass
from widgets.dialogs.approvals import (
    ApprovalChoice,
    ApprovalDialog,
    How,
    PermissionDialog,
    PlanApproval,
    PlanApprovalDialog,
)
from widgets.dialogs.generated_plans import GeneratedPlansChoice, GeneratedPlansDialog, GeneratedPlansOffer
from widgets.dialogs.questions import NoJailChoice, NoJailDialog
from widgets.dialogs.step_editor import StepDraft, StepEdit, StepEditor

if TYPE_CHECKING:
    from engine.tools.mcp.workspace_servers import Entry

Asked = Sequence[tuple[AgentState, Question]]

_DECISIONS = {
    GeneratedPlansOffer.APPROVE: "approve",
    GeneratedPlansOffer.EDIT: "approve",
    GeneratedPlansOffer.ASK_AGAIN: "again",
    GeneratedPlansOffer.REJECT: "reject",
}

_OCCUPIED: dict[type[ev.Payload], str] = {
    ev.ApprovalAsked: "the agent asks: press a (d denies, A shows all that waits)",
    ev.ReplanHeld: "a re-plan waits for your acceptance: press V (d rejects it)",
    ev.PlansHeld: "plans wait for your approval: press i (or n)",
}


@dataclass
class Approvals:
    """Answers what agents ask, and says what their programs and the servers may do."""

    context: CockpitContext
    check_call: Callable[[str, str, str], list[str]]
    leave: Callable[[], None]

    def action_approve(self) -> None:
        """Answer what the agent asks."""
        self._answer(None)

    def action_accept_plan(self) -> None:
        """Show the agent's plan with an envelope, to be accepted there."""
        if not self.context.refused_in_past():
            self._open_plan()

    def action_deny(self) -> None:
        """Say that what the agent asks may not be done, or reject its re-plan."""
        self._answer("deny")

    def _answer(self, begin: How | None) -> None:
        state = self.context.state
        if self.context.refused_in_past() or state is None or not self.context.no_dialog:
            return
        question = state.approvals.question
        if question is not None:
            self.open_questions([(state, question)], begin)
        elif state.approvals.held:
            self._open_plan(rejects=begin is not None)
        elif not self.open_plans():
            later = "once plans are made for it, a opens them" if state.reasons else "V accepts its plan"
            self.context.say(f"the agent asks nothing; {later}", "note")

    def offer(self, kind: type[ev.Payload]) -> None:
        """Open by itself what an event asks, unless the operator is in the middle of something."""
        self.context.app.bell()
        state = self.context.live.state
        if kind is not ev.ApprovalAsked or (state is not None and state.approvals.question is not None):
            self.context.pop_up(partial(self._offer, kind), _OCCUPIED[kind])

    def _offer(self, kind: type[ev.Payload]) -> None:
        state = self.context.live.state
        question = state.approvals.question if state is not None else None
        if kind is ev.PlansHeld:
            self.open_plans(unasked=True)
        elif kind is ev.ReplanHeld and state is not None and state.approvals.held:
            self._open_plan(unasked=True)
        elif kind is ev.ApprovalAsked and state is not None and question is not None:
            self.open_questions([(state, question)], None, unasked=True)

    def open_questions(
        self,
        asked: Asked,
        begin: How | None,
        *,
        unasked: bool = False,
        answer_many: Callable[[Asked, ApprovalChoice], None] | None = None,
    ) -> None:
        """Put questions of agents before the operator.

        Args:
            asked: each with its agent.
            begin: the answer that is being given.
            unasked: it opens by itself.
            answer_many: sends one answer to several.
        """
        model = views.questions(asked, SystemClock().now(), self.context.settings.deny_after_s)
        dialog = ApprovalDialog(model, partial(views.scope_of, asked), begin=begin, unasked=unasked)
        self.context.push(dialog, partial(self._answered, asked, answer_many))

    def _answered(
        self,
        asked: Asked,
        answer_many: Callable[[Asked, ApprovalChoice], None] | None,
        choice: ApprovalChoice | None,
    ) -> None:
        if choice is None:
            self.context.say("it still waits; a opens this again, A shows all that waits", "note")
            return
        state, question = asked[0]
        if choice.how == "edit":
            self._edit_question(state, question)
        elif len(asked) > 1 and answer_many is not None:
            answer_many(asked, choice)
        else:
            self.context.send(self._command(state.agent_id, question.action, choice))

    def _command(self, agent: str, action: str, choice: ApprovalChoice) -> cmd.AnswerApproval:
        fields: dict[str, Any] = {"agent": agent, "action": action, "allow": choice.how != "deny"}
        if choice.how == "deny":
            fields["reason"] = choice.reason
        else:
            fields |= {"scope": choice.how, "rule": choice.rule}
        return cmd.AnswerApproval.model_validate(fields)

    def _edit_question(self, state: AgentState, question: Question) -> None:
        """Let the operator change the arguments; the step then runs once with them."""
        call = question.call
        draft = StepDraft(
            f"Change {question.step} and allow it once: {call.command}", call.tool, call.command, call.args
        )

        def edited(edit: StepEdit | None) -> None:
            if edit is None:
                self.context.say("nothing was changed; it still waits", "note")
            elif (edit.tool, edit.command) != (call.tool, call.command):
                self.context.say(
                    "another command is another step: deny this one, or edit the step with e", "error"
                )
            else:
                fields = {"agent": state.agent_id, "action": question.action, "allow": True}
                self.context.send(cmd.AnswerApproval.model_validate({**fields, "args": edit.args}))

        self.context.push(StepEditor(draft, self.check_call), edited)

    def _open_plan(self, *, rejects: bool = False, unasked: bool = False) -> bool:
        """Show the plan of the goal at hand, or the re-plan that waits; False when there is none."""
        engine, state = self.context.engine, self.context.state
        if state is None or engine is None or self.context.in_past or not self.context.no_dialog:
            return False
        goal = next(iter(state.approvals.held), state.goal_at_hand)
        model = views.plan_to_accept(engine, state, goal) if not state.reasons else None
        if model is None:
            self.context.say("nothing waits for your approval, and there is no plan to accept", "note")
            return False
        check = partial(views.envelope_problem, goal=goal)
        dialog = PlanApprovalDialog(model, check, rejects=rejects, unasked=unasked)
        self.context.push(dialog, partial(self._plan_answered, state.agent_id, goal))
        return True

    def _plan_answered(self, agent: str, goal: str, choice: PlanApproval | None) -> None:
        if choice is None:
            return
        if not choice.accepted:
            self.context.send(cmd.RejectReplan(agent=agent, goal=goal, reason=choice.reason))
            return
        envelope = given_envelope(choice.envelope, Envelope(goal))
        self.context.send(cmd.AcceptPlan(agent=agent, goal=goal, envelope=envelope))

    def show_plans(self) -> None:
        """Show the plans that wait, or say which plans a model made."""
        if not self.open_plans():
            self.context.say(generated_text(self.context.state, short=True), "note")

    def open_plans(self, *, unasked: bool = False) -> bool:
        """Show the plans that wait; False when none do."""
        state = self.context.reasoner
        held = mind_views.held_generation(state) if state else None
        if state is None or held is None or self.context.in_past or not self.context.no_dialog:
            return False
        check = partial(check_plans, goal=held.goal)
        attempts = mind_views.attempts_of(state, held)
        dialog = GeneratedPlansDialog(held, attempts, check, unasked=unasked)
        self.context.push(dialog, partial(self._plans_decided, self.context.agent, held.id))
        return True

    def _plans_decided(self, agent: str, generation: str, choice: GeneratedPlansChoice | None) -> None:
        if choice is None:
            self.context.say("the plans wait, and who needs them with them; i opens this again", "note")
            return
        decision = _DECISIONS[choice.offer]
        fields = {"agent": agent, "generation": generation, "decision": decision, "text": choice.text}
        self.context.send(cmd.DecidePlans.model_validate(fields))

    def offer_no_jail(self) -> None:
        """Where no program may run, let the operator choose; until they do, none runs."""
        if self.context.engine is not None and self.context.engine.health.sandbox:
            shown = pane_views.no_jail(self.context.engine.sandbox())
            self.context.push(NoJailDialog(*shown), self._without_jail)

    def _without_jail(self, choice: NoJailChoice | None) -> None:
        if self.context.engine is None:
            return
        if choice == "accept":
            accept = cmd.AcceptTier.model_validate({"tier": self.context.engine.sandbox().tier})
            self.context.send(accept)
        elif choice == "leave":
            self.leave()
        else:
            self.context.say(
                "programs stay refused; accept_tier in the command bar changes that, P says why", "note"
            )

    def announce_servers(self) -> None:
        """Say which servers wait for permission to start."""
        servers = self.context.engine.servers if self.context.engine is not None else None
        names = [entry.server for entry in servers.asked if not entry.refused] if servers is not None else []
        if names:
            wait = "waits" if len(names) == 1 else "wait"
            self.context.say(
                f"mcp.json: {', '.join(names)} {wait} for your permission to start: A shows what", "asks"
            )

    def ask_permission(self, name: str, *, refuse: bool = False) -> None:
        """Show a server's whole entry and ask whether it may start, or say at once that it may not."""
        servers = self.context.engine.servers if self.context.engine is not None else None
        entry = next((asked for asked in servers.asked if asked.server == name), None) if servers else None
        if entry is None:
            self.context.say(f"{name} does not wait for your permission", "note")
        elif refuse:
            self.context.send(DistrustServer(server=name))
        else:
            self.context.push(
                PermissionDialog(entry.server, entry.facts), partial(self._permission_given, entry)
            )

    def _permission_given(self, entry: Entry, yes: bool | None) -> None:
        if yes is None:
            self.context.say(f"{entry.server} still waits; A shows all that waits", "note")
        elif yes:
            self.context.send(TrustServer(server=entry.server, entry=entry.entry))
        else:
            self.context.send(DistrustServer(server=entry.server))
