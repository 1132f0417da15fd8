"""Memory as a tool of agents, and as what the operator writes to.

Reflection, consolidation, promotion and upkeep are the engine's; goals and the plan are the loop's own. What
the operator writes is answered with a receipt and never with an exception.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import ModuleType
from typing import Any

from engine.core import commands as cmd
from engine.core.actions import ErrorCode, ResultStatus, ToolResult
from engine.core.journal import JournalError
from engine.core.ports import CallContext, CommandSpec
from engine.memory.commands import COMMANDS
from engine.memory.errors import MemoryFault, MemoryInputError, MemoryNotFound, MemoryRefused
from engine.memory.memory import Memory


async def _calls(memory: Memory) -> ModuleType:
    """What answers calls; imported once memory is open, as a start does not need to spend the time."""
    await memory.ready()
    from engine.memory import tool_calls

    return tool_calls


async def remember_for_operator(
    memory: Memory, command: cmd.Remember, actor: str, goal: str, kept: Callable[[], Awaitable[None]]
) -> cmd.Receipt:
    """Write in the operator's name; the receipt names the event, and `data` is the answer.

    Args:
        memory: where to.
        command: what was asked.
        actor: the operator, as the journal names them.
        goal: the goal that the command's agent pursues, whose workflow is meant where none is named.
        kept: waits until memory holds what was done so far.
    """
    try:
        calls = await _calls(memory)
        receipt: cmd.Receipt = await calls.write_for_operator(memory, command, actor, goal, kept)
    except (MemoryFault, JournalError) as error:
        return cmd.Receipt(ok=False, message=str(error))
    return receipt


async def _at_once() -> None:
    """Nothing to wait for."""


class MemoryTool:
    """Memory for the registry of tools."""

    id = "memory"
    description = "what was done, thought and learned, over time"
    commands: Mapping[str, CommandSpec] = COMMANDS

    def __init__(self, memory: Memory, kept: Callable[[], Awaitable[None]] = _at_once) -> None:
        """Make the tool.

        Args:
            memory: what is asked.
            kept: waits until memory holds what was done so far, so that the current goal has its workflow.
        """
        self._memory = memory
        self._kept = kept

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Answer a request; looking at a memory by id counts as using it, finding it does not."""
        try:
            calls = await _calls(self._memory)
            answer = await calls.call_for_agent(self._memory, command, args, context, self._kept)
        except (MemoryFault, JournalError) as error:
            status, code = next(
                (result for kind, result in _REFUSALS.items() if isinstance(error, kind)), _UNAVAILABLE
            )
            return ToolResult(status, {"message": str(error)}, code)
        return ToolResult(ResultStatus.SUCCESS, answer)


_REFUSALS: dict[type[Exception], tuple[ResultStatus, ErrorCode]] = {
    MemoryNotFound: (ResultStatus.ERROR, ErrorCode.NOT_FOUND),
    MemoryInputError: (ResultStatus.ERROR, ErrorCode.BAD_ARGUMENTS),
    MemoryRefused: (ResultStatus.FAILURE, ErrorCode.NOT_ALLOWED),
}
"""The first that fits counts, as what is not found is a wrong input too."""
_UNAVAILABLE = (ResultStatus.FAILURE, ErrorCode.INTERNAL)
