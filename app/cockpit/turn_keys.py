"""The operator's turn: manual intervention."""

from __future__ import annotations

from functools import partial

from app.cockpit.plan_keys import PlanKeys
from app.cockpit.shell_keys import ShellKeys
from app.projection import views
from engine.domain import commands as cmd
from widgets.dialogs import InterventionChoice, InterventionDialog, Offer


class TurnKeys(PlanKeys, ShellKeys):
    """Taking the turn, deciding, and finding who waits."""

    def _offer_turn(self, *, unasked: bool) -> None:
        """Open the dialog by itself, unless the operator is in the middle of something.

        Args:
            unasked: it is not the operator who took the turn.
        """
        if self._occupied:
            self._say("the agent needs you: press i (or n)", "error")
        else:
            self._open_turn(unasked=unasked)

    def action_intervene(self) -> None:
        """Take the turn, or decide what is asked."""
        if self._refused_in_past():
            return
        state = self._projector.state
        if state is None:
            return
        if state.handover is not None:
            self._open_handover()
        elif state.intervention is None:
            self._send(cmd.Intervene(agent=self._agent))
        else:
            self._open_turn()

    def _open_turn(self, *, unasked: bool = False) -> None:
        if not self._projector.told:
            # What its step printed last belongs into the dialog.
            self._when_told.append(partial(self._open_turn, unasked=unasked))
            return
        state = self._projector.state
        turn = state.intervention if state and not self._in_past else None
        printed = self._projector.last_words(turn.step) if turn and turn.kind else ""
        model = views.intervention(state, printed) if state else None
        if model is not None and len(self.screen_stack) == 1:
            self.push_screen(InterventionDialog(model, unasked=unasked), self._decided)

    def _decided(self, choice: InterventionChoice | None) -> None:
        state = self._projector.state
        turn = state.intervention if state else None
        if choice is None or state is None or turn is None:
            self._say("the agent goes on waiting; i opens this again, handback gives the turn back", "note")
            return
        agent = self._agent
        match choice.offer:
            case Offer.EDIT_AND_RETRY:
                found = state.find_step(turn.step)
                if found is not None:
                    self._edit(found[1], retry=True)
            case Offer.RETRY:
                self._send(cmd.HandBack(agent=agent))
            case Offer.RUN_UNSAVED:
                self._send(cmd.WaiveSnapshot(agent=agent, step=turn.step))
            case Offer.GIVE_RESULT:
                self._send(cmd.GiveResult(agent=agent, step=turn.step, result=choice.text))
            case Offer.SKIP:
                self._send(cmd.SkipStep(agent=agent, step=turn.step))
            case Offer.REPLACE_REST:
                self._send(cmd.ReplacePlan(agent=agent, goal=turn.goal, plan=choice.text))
            case Offer.TAKE_SHELL:
                self.action_take_shell()
            case Offer.ABORT:
                self._send(cmd.AbortGoal(agent=agent, goal=turn.goal))

    def action_next_need(self) -> None:
        """Show the next agent that needs the operator."""
        waiting = [state.agent_id for state in self._live.states if views.asks(state)]
        if not waiting:
            self._say("nobody needs you", "ok")
            return
        place = waiting.index(self._agent) + 1 if self._agent in waiting else 0
        self._select(waiting[place % len(waiting)])
        self._open_handover()
        self._open_turn()
