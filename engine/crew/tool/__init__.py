"""The tool `crew`: how a run reaches the other agents and the operator (ontology spec §1.10, §1.12).

Every call is an action like all others: seen, gated, journaled. What it needs is imported by the first one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from engine.crew.tool.commands import COMMANDS
from engine.domain.action import ToolResult
from engine.domain.ports import CallContext, CommandSpec
from engine.domain.running import CREW

if TYPE_CHECKING:
    from engine.crew.parts import Desk


class CrewTool:
    """The crew for the registry of tools.

    Args:
        desk: opens the manager of handoffs where it is not open yet.
    """

    id = CREW
    description = "other agents and the operator, for agents that work on a handoff"
    commands: Mapping[str, CommandSpec] = COMMANDS

    def __init__(self, desk: Callable[[], Awaitable[Desk]]) -> None:
        self._desk = desk

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Do what a run asks; cancelling it cancels what it waits for."""
        from engine.crew.tool.working import carry_out

        return await carry_out(await self._desk(), command, args, context)
