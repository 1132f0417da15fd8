"""Looking at another agent, at what failed, and copying text."""

from __future__ import annotations

from textual import on

from app.cockpit.layout import Layout
from widgets import CopyRequested, ErrorPanel, GoalStack, PlanPane


class AgentKeys(Layout):
    """Which agent the panes show, and what they point at."""

    _awaited = ""
    """An agent that is to be shown once the projection has it."""

    def _select(self, agent: str) -> None:
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
        if self._awaited and self._projector.select(self._awaited):
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

    @on(CopyRequested)
    def _copy(self, event: CopyRequested) -> None:
        self.copy_to_clipboard(event.text)
        self._say(f"copied the {event.what} to the terminal's clipboard ({len(event.text)} characters)", "ok")
