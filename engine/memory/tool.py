"""Memory as a tool: what an agent may ask of it, under short names and the seed's.

Reflection, consolidation, promotion and upkeep are the engine's; goals and the plan are the loop's own.
Source: spec master-loop-and-memory §2, the tools that a model needs; §3.9 (what is filled in).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from engine.domain.action import ErrorCode, ResultStatus, ToolResult
from engine.domain.ports import CallContext, CommandSpec
from engine.journal.errors import JournalError
from engine.memory.commands import COMMANDS
from engine.memory.errors import MemoryFault, MemoryInputError, MemoryNotFound, MemoryRefused
from engine.memory.memory import Memory
from engine.memory.names import NAMES, owner_tag

if TYPE_CHECKING:
    from engine.memory.requests import Request

OWNED = (
    *("workflow_id", "context_id", "parent_workflow_id"),
    *("memory_id", "source_memory_id", "source_action_id"),
)
"""Arguments of a write that name what it changes, or whose workflow it changes."""


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
            kept: waits until memory holds what was done so far, so that the goal at hand has its workflow.
        """
        self._memory = memory
        self._kept = kept

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Answer a request; looking at a memory by id counts as using it, finding it does not."""
        try:
            await self._memory.ready()
            # The room is imported by now; it is not at the door, as opening a workspace does not need it.
            from engine.memory.filling import AtHand, filled
            from engine.memory.requests import as_json, named

            at_hand = AtHand(context.agent, context.goal, context.workflow)
            given = await filled(self._memory, command, args, at_hand, self._kept)
            if NAMES.get(command, command) == "create_workflow" and context.agent and not context.by_operator:
                given["tags"] = [*given.get("tags", ()), owner_tag(context.agent)]
            request = named(command, given)
            answer = await self._answer(request, context)
            data = as_json(answer)
        except MemoryNotFound as error:
            return _refusal(ResultStatus.ERROR, error, ErrorCode.NOT_FOUND)
        except MemoryInputError as error:
            return _refusal(ResultStatus.ERROR, error, ErrorCode.BAD_ARGUMENTS)
        except MemoryRefused as error:
            return _refusal(ResultStatus.FAILURE, error, ErrorCode.NOT_ALLOWED)
        except (MemoryFault, JournalError) as error:
            return _refusal(ResultStatus.FAILURE, error, ErrorCode.INTERNAL)
        return ToolResult(ResultStatus.SUCCESS, data)

    async def _answer(self, request: Request[Any], context: CallContext) -> Any:
        from engine.memory.memories import UseMemories

        causes = (context.event,) if context.event else ()
        if request.writes and not context.by_operator:
            await self._check_owner(request, context.agent)
        if request.writes:
            return (await self._memory.write(request, actor=context.actor, causes=causes)).answer
        answer = await self._memory.do(request)
        if request.verb == "get_memory_by_id":
            used = UseMemories(memory_ids=(answer.memory.id,))
            await self._memory.write(used, actor=context.actor, causes=causes)
        return answer

    async def _check_owner(self, request: Request[Any], agent: str) -> None:
        from engine.memory.keeping import FindOwners

        idents = tuple(ident for name in OWNED if (ident := getattr(request, name, "")))
        for workflow, owners in await self._memory.do(FindOwners(idents=idents)):
            if owners and agent not in owners:
                raise MemoryRefused(
                    f"{workflow} is a workflow of {', '.join(owners)}: "
                    f"{agent or 'this agent'} may read it and not write to it."
                )


def _refusal(status: ResultStatus, error: Exception, code: ErrorCode) -> ToolResult:
    return ToolResult(status, {"message": str(error)}, code)
