"""Run, pause, step."""

from __future__ import annotations

from app.cockpit.turn_keys import TurnKeys
from engine.domain import commands as cmd
from engine.domain.state import AgentState, RunState


class RunKeys(TurnKeys):
    """The keys that let the agent run and hold it."""

    def action_toggle_run(self) -> None:
        """Run, or pause."""
        if self._projector.state is None:
            self._say("there is no agent yet; type: agent_create bdi_agent pilot-1", "error")
        else:
            self._ask(self._toggle_run, self._agent)

    async def _toggle_run(self, state: AgentState) -> None:
        if state.run is RunState.RUNNING:
            await self._submit(cmd.Pause(agent=state.agent_id))
        elif state.intervention is not None:
            self.action_intervene()
        else:
            await self._submit(cmd.Run(agent=state.agent_id))

    def action_step(self) -> None:
        """One action."""
        self._send(cmd.Step(agent=self._agent))

    def action_until(self) -> None:
        """Run until the present goal has ended."""
        if self._refused_in_past():
            return
        state = self._projector.state
        goals = state.open_goals if state else []
        if state is None or not goals:
            self._say("there is no open goal to run until", "error")
            return
        self._send(cmd.Run(agent=self._agent, until=state.current_goal or goals[0].id))
