"""An agent with a reasoner in the cockpit: its panes, its breakpoints, its intentions, plans made for it."""

from __future__ import annotations

from functools import partial

from textual import on

from app.cockpit.break_keys import BreakKeys
from app.cockpit.memory_keys import MemoryKeys
from app.cockpit.run_keys import RunKeys
from app.projection import mind_views
from engine.domain import commands as cmd
from engine.domain.state import AgentState
from engine.engine import Engine
from widgets import BeliefsPane, GoalStack
from widgets.dialogs import (
    ConfirmDialog,
    ConfirmModel,
    GeneratedPlansChoice,
    GeneratedPlansDialog,
    GeneratedPlansOffer,
)
from widgets.intentions import IntentionTree

_DECISIONS = {
    GeneratedPlansOffer.APPROVE: "approve",
    GeneratedPlansOffer.EDIT: "approve",
    GeneratedPlansOffer.ASK_AGAIN: "again",
    GeneratedPlansOffer.REJECT: "reject",
}


class MindKeys(RunKeys, BreakKeys, MemoryKeys):
    """What the operator does with a reasoner, beyond what they do with every agent."""

    _arranged = (False, False)
    """Whether beliefs and a world are in place of working memory and the session."""

    def _reasoner(self) -> AgentState | None:
        """The state of the agent that is shown, where a reasoner runs it."""
        state = self._projector.state
        return state if state is not None and state.reasons else None

    # -------------------------------------------------------------- its panes

    def _look_at_mind(self) -> None:
        """Put beliefs and the world in their places where the shown agent has them, or take them out."""
        wanted = (self._reasoner() is not None and self._beliefs_first, self._shows_world)
        if wanted != self._arranged:
            self._arranged = wanted
            self._set_places()
            self._lay_out()

    def action_pane(self, name: str) -> None:
        """See `Layout`; the key of a focused pane changes world for session, beliefs for memory."""
        if name == "session" and self._focused_pane() == "session" and self._lives_in_world:
            self.action_world()
            return
        if name == "memory" and self._focused_pane() == "memory" and self._reasoner() is not None:
            self._beliefs_first = not self._beliefs_first
            self._look_at_mind()
        super().action_pane(name)

    def action_world(self) -> None:
        """Show the world that the agent lives in, or its session again."""
        if not self._lives_in_world:
            self._say("this agent lives in no world of its own", "note")
            return
        self._world_first = not self._world_first
        self._look_at_mind()
        super().action_pane("session")

    @on(BeliefsPane.BeliefChosen)
    def _belief_chosen(self, event: BeliefsPane.BeliefChosen) -> None:
        state = self._reasoner()
        held = state.held_beliefs.get(event.literal.partition("[")[0]) if state else None
        held = held or (state.held_beliefs.get(event.literal) if state else None)
        if held is not None:
            sources = ", ".join(held.sources)
            self._say(f"{held.text}: from {sources}, since tick {held.tick}, by {held.event}", "note")

    # -------------------------------------------------------------- breakpoints

    def action_breakpoint(self) -> None:
        """The breakpoints of a reasoner; of other agents one on the selected step."""
        if self._reasoner() is None:
            super().action_breakpoint()
        else:
            self.action_breakpoints()

    # -------------------------------------------------------------- intentions

    @on(IntentionTree.IntentionAction)
    def _steer_intention(self, event: IntentionTree.IntentionAction) -> None:
        steer = cmd.SteerIntention(agent=self._agent, intention=int(event.intention_id), how=event.action)
        if event.action != "drop":
            self._send(steer)
            return
        state = self._reasoner()
        view = state.intentions.get(int(event.intention_id)) if state else None
        goal = view.frames[0].goal if view is not None and view.frames else "no plan yet"
        model = ConfirmModel(
            f"Drop intention {event.intention_id}?",
            f"{goal} is given up without a failure event; nothing that it did is undone.",
        )
        self.push_screen(ConfirmDialog(model), partial(self._dropped, steer))

    def _dropped(self, steer: cmd.SteerIntention, sure: bool | None) -> None:
        if sure:
            self._send(steer)

    @on(GoalStack.IntentionChosen)
    def _intention_chosen(self, event: GoalStack.IntentionChosen) -> None:
        """Show the plan that an intention carries out."""
        self._intention = int(event.intention_id)
        self._projector.out_of_date()
        super().action_pane("plan")

    # -------------------------------------------------------------- plans made by a model

    def _offer_plans(self) -> None:
        """Open the plans that wait by themselves, unless the operator is in the middle of something."""
        self.bell()
        if self._occupied:
            self._say("plans wait for your approval: press i (or n)", "error")
        else:
            self._open_plans(unasked=True)

    def _open_plans(self, *, unasked: bool = False) -> bool:
        """Show the plans that wait; False when none do."""
        state = self._reasoner()
        held = mind_views.held_generation(state) if state else None
        if state is None or held is None or self._in_past or len(self.screen_stack) > 1:
            return False
        check = partial(Engine.check_plans, goal=held.goal)
        dialog = GeneratedPlansDialog(mind_views.generated_plans(state, held), check, unasked=unasked)
        self.push_screen(dialog, partial(self._plans_decided, self._agent, held.id))
        return True

    def _plans_decided(self, agent: str, generation: str, choice: GeneratedPlansChoice | None) -> None:
        if choice is None:
            self._say("the plans wait, and who needs them with them; i opens this again", "note")
            return
        decision = _DECISIONS[choice.offer]
        fields = {"agent": agent, "generation": generation, "decision": decision, "text": choice.text}
        self._send(cmd.DecidePlans.model_validate(fields))

    def action_intervene(self) -> None:
        """Decide on plans that wait, else take the turn."""
        if not self._open_plans():
            super().action_intervene()

    def action_edit(self) -> None:
        """Edit plans that wait; of agents without a reasoner the selected step."""
        if self._reasoner() is None:
            super().action_edit()
        elif not self._open_plans():
            self._say("the plans are those of its program: steer its intentions, beliefs and goals", "error")

    def action_next_need(self) -> None:
        """See `TurnKeys`; plans that wait are shown too."""
        super().action_next_need()
        self._open_plans()
