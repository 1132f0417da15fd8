"""Looking at another agent, at what failed, and copying text."""

from __future__ import annotations

from functools import partial

from textual import on

from app.cockpit.layout import Layout
from engine.domain import commands as cmd
from engine.domain.failure import Failure
from engine.domain.text import clean_line
from widgets import CopyRequested, ErrorPanel, GoalStack, PlanPane
from widgets.dialogs import ConfirmDialog, ConfirmModel


class AgentKeys(Layout):
    """Which agent the panes show, and what they point at."""

    _awaited = ""
    """An agent that is to be shown once the projection has it."""

    def _select(self, agent: str) -> None:
        self._to_now()
        if agent == self._agent:
            return
        if not self._projector.select(agent):
            known = ", ".join(state.agent_id for state in self._projector.states)
            self._say(f"there is no agent '{agent}'; agents: {known or 'none yet'}", "error")

    def _select_soon(self, agent: str) -> None:
        """Look at an agent as soon as the projection has it."""
        self._awaited = agent
        self._look_for_awaited()

    def _look_for_awaited(self) -> None:
        if self._awaited and self._live.select(self._awaited):
            self._to_now()
            self._live.select(self._awaited)
            self._awaited = ""

    @on(GoalStack.AgentSelected)
    def _agent_selected(self, event: GoalStack.AgentSelected) -> None:
        self._select(event.agent_id)

    @on(ErrorPanel.ErrorChosen)
    def _error_chosen(self, event: ErrorPanel.ErrorChosen) -> None:
        state = self._projector.state
        failure = next((f for f in state.failures if f.event == event.error_id), None) if state else None
        if failure is not None and failure.step:
            self.query_one("#plan", PlanPane).select(failure.step)
            self.action_pane("plan")

    @on(ErrorPanel.RetryRequested)
    def _retry_now(self, event: ErrorPanel.RetryRequested) -> None:
        failure = self._failure(event.error_id)
        if failure is not None:
            goal = "" if failure.step else failure.goal
            self._send(cmd.RetryStep(agent=self._agent, step=failure.step, goal=goal))

    @on(ErrorPanel.GiveUpRequested)
    def _give_up(self, event: ErrorPanel.GiveUpRequested) -> None:
        failure = self._failure(event.error_id)
        if self._refused_in_past() or failure is None or not failure.goal:
            return
        state = self._projector.state
        goal = state.goals.get(failure.goal) if state is not None else None
        what = clean_line(goal.text) if goal is not None else failure.goal
        model = ConfirmModel(
            f"Give up goal {failure.goal}?", f"“{what}” fails, and so does what it serves; nothing is undone."
        )
        give_up = cmd.AbortGoal(agent=self._agent, goal=failure.goal)
        self.push_screen(ConfirmDialog(model), partial(self._given_up, give_up))

    def _given_up(self, give_up: cmd.AbortGoal, sure: bool | None) -> None:
        if sure:
            self._send(give_up)

    def _failure(self, error_id: str) -> Failure | None:
        """An open failure of the agent that is looked at."""
        state = self._projector.state
        known = state.failures if state is not None else []
        failure = next((each for each in known if each.event == error_id), None)
        if failure is None or not failure.resolved:
            return failure
        self._say(f"{failure.subject}: that is resolved already", "note")
        return None

    @on(CopyRequested)
    def _copy(self, event: CopyRequested) -> None:
        self.copy_to_clipboard(event.text)
        self._say(f"copied the {event.what} to the terminal's clipboard ({len(event.text)} characters)", "ok")
