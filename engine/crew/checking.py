"""What is asked before a handoff may run: what the crew knows, then tools and budget."""

from __future__ import annotations

from collections.abc import Callable

from engine.agents.kinds import ErrorCode
from engine.agents.spec import AgentSpec
from engine.crew.admission import Refusal, refusal
from engine.crew.parts import Health
from engine.crew.state import CrewState, Handoff

FRESH_S = 60.0
"""Seconds for which the health of a server counts (ontology spec §1.8)."""


class Checks:
    """Asks the eight questions in their order.

    Args:
        monotonic: the clock's seconds.
        no_budget: why nothing may be spent for a run (empty: for the workspace), in words; empty when it may.
    """

    def __init__(self, monotonic: Callable[[], float], no_budget: Callable[[str], str]) -> None:
        self._monotonic, self._no_budget = monotonic, no_budget
        self.health: Health | None = None
        """Who knows of servers; None where there are none."""
        self._known: dict[tuple[str, tuple[str, ...]], tuple[float, str]] = {}

    def forget(self) -> None:
        """Ask anew: a server is another one than before."""
        self._known = {}

    async def refusal(self, state: CrewState, handoff: Handoff, left_s: float) -> Refusal | None:
        """Why a handoff may not run; the first reason counts.

        Args:
            state: the crew.
            handoff: the handoff, queued.
            left_s: seconds that its parent has left.
        """
        above = state.handoff_of(handoff.caller)
        said = refusal(
            state,
            handoff.context,
            handoff.spec,
            above.spec if above is not None else None,
            registered=state.registered(handoff),
            left_s=left_s,
        )
        if said is not None or handoff.spec is None:
            return said
        if down := await self._down(handoff.spec):
            return Refusal(ErrorCode.TOOL_UNAVAILABLE, down)
        if why := self._no_budget(handoff.caller):
            return Refusal(ErrorCode.BUDGET, why)
        return None

    async def _down(self, spec: AgentSpec) -> str:
        for use in spec.tools.mcp_servers:
            if use.required and (why := await self._asked(use.server, use.tools)):
                return f"{spec.id} needs the server {use.server}: {why}"
        return ""

    async def _asked(self, server: str, tools: tuple[str, ...]) -> str:
        if self.health is None:
            return "no servers are configured here"
        key, known = (server, tools), self._known
        at, why = known.get(key, (float("-inf"), ""))
        if self._monotonic() - at > FRESH_S:
            why = await self.health.down(server, tools)
            known[key] = (self._monotonic(), why)
        return why
