"""Opens the crew when it is first needed, and carries out commands to it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.agent.shared import LazySubsystem, RunModelCalls
from engine.core.state import AgentState
from engine.core.thinking import Thinker
from engine.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from engine.core.command import Receipt
    from engine.core.crew_commands import ForCrew
    from engine.crew.crew import Crew, CrewEngine
    from engine.crew.run_service import RunService


class LateCrew(LazySubsystem["Crew"]):
    """The crew of a workspace, opened when it is first needed.

    Args:
        engine: the engine that it belongs to.
    """

    def __init__(self, engine: CrewEngine) -> None:
        super().__init__("crew")
        self._engine = engine

    async def _open(self) -> Crew:
        module = await asyncio.to_thread(import_module, "engine.crew.crew")
        opened: Crew = await module.Crew.open(self._engine)
        return opened

    async def carry_out(self, command: ForCrew, actor: str) -> Receipt:
        """Carry out a command to the crew; see `engine.crew.command_handlers.run_crew_command`."""
        crew = await self.opened()
        handlers = await asyncio.to_thread(import_module, "engine.crew.command_handlers")
        receipt: Receipt = await handlers.run_crew_command(crew, command, actor)
        return receipt


class LateRunThinkers:
    """Makes the thinkers of runs; what they need is imported when the first run is.

    Args:
        registry: every tool that there is.
    """

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self.colleagues: RunService | None = None
        """Knows the other agents; None while there is no crew."""

    def problem(self, agent_type: str, meta: Mapping[str, Any]) -> str:
        """See `RunThinkers` in `engine.agent.shared`."""
        problem: str = import_module("engine.crew.thinker.run_plan").brief_problem(agent_type, meta)
        return problem

    def thinker(self, state: AgentState, calls: RunModelCalls | None) -> Thinker:
        """See `RunThinkers` in `engine.agent.shared`."""
        module = import_module("engine.crew.thinker.spec_thinker")
        thinker: Thinker = module.SpecThinker(state, self._registry, calls, lambda: self.colleagues)
        return thinker
