"""The tool `crew`, by which a run reaches the other agents and the operator, described without the crew.

Every call is an action like all others: seen, gated, journaled. None changes files; all but `transfer_to` can
be repeated after the program's end, because the handoff has their result. What a call needs is imported by
the first one, as replay and prompts need the descriptions only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.core.actions import ToolResult
from engine.core.agents import CREW
from engine.core.ports import CallContext
from engine.tools.command_table import read_commands

if TYPE_CHECKING:
    from engine.crew.run_service import RunService


COMMANDS = read_commands(__file__)
"""By name."""


class CrewTool:
    """The crew for the registry of tools.

    Args:
        service: opens the manager of handoffs where it is not open yet.
    """

    id = CREW
    description = "other agents and the operator, for agents that work on a handoff"
    commands = COMMANDS

    def __init__(self, service: Callable[[], Awaitable[RunService]]) -> None:
        self._service = service

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Do what a run asks; cancelling it cancels what it waits for."""
        module = await asyncio.to_thread(import_module, "engine.crew.tool.dispatch")
        result: ToolResult = await module.dispatch(await self._service(), command, args, context)
        return result
