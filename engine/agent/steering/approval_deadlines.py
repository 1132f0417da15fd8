"""Until when an approval can be given, where the settings say that it is denied by itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from engine.core import commands as cmd
from engine.core.agents import RunState
from engine.core.ports import Clock
from engine.core.state import AgentState


class ApprovalDeadlines:
    """Until when an approval can be given before it is denied by itself, counted in this session alone.

    Args:
        clock: the engine's.
        after_s: how long an approval may wait; None for as long as it takes.
    """

    def __init__(self, clock: Clock, after_s: float | None) -> None:
        self._clock, self.after_s = clock, after_s
        self._ends: dict[str, tuple[str, float, str]] = {}

    def overdue(self, states: Mapping[str, AgentState]) -> list[cmd.DenyOverdue]:
        """What of these agents is to be denied now."""
        if self.after_s is None:
            return []
        self._ends = {name: end for name, end in self._ends.items() if name in states}
        return [
            cmd.DenyOverdue(agent=state.agent_id, action=state.approvals.question.action)
            for state in states.values()
            if state.approvals.question is not None and self.is_over(state)
        ]

    def is_over(self, state: AgentState) -> bool:
        """Whether what an agent asks has waited as long as it may."""
        end = self._end(state)
        return end is not None and self._clock.monotonic() >= end[1]

    def until(self, state: AgentState) -> str:
        """When what an agent asks is denied, ISO 8601 UTC; empty where it never is."""
        end = self._end(state)
        return end[2] if end is not None else ""

    def _end(self, state: AgentState) -> tuple[str, float, str] | None:
        question = state.approvals.question
        if self.after_s is None or question is None or state.run is RunState.STOPPED:
            self._ends.pop(state.agent_id, None)
            return None
        end = self._ends.get(state.agent_id)
        if end is None or end[0] != question.event:
            at = datetime.fromisoformat(self._clock.now()) + timedelta(seconds=self.after_s)
            shown = at.strftime("%Y-%m-%dT%H:%M:%SZ")
            end = self._ends[state.agent_id] = (question.event, self._clock.monotonic() + self.after_s, shown)
        return end
