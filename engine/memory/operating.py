"""What the operator writes to memory, answered as commands are: with a receipt and never an exception."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from engine.domain import commands as cmd
from engine.journal.errors import JournalError
from engine.memory.errors import MemoryFault
from engine.memory.memory import Memory

_OF_MIND = frozenset({"change_working_memory", "focus_memory", "focus"})
_NAMING = ("memory_id", "pin", "unpin", "evict", "add")
"""Arguments of these that name a memory."""


async def remember(
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
        await memory.ready()
        # Only now, so that nothing heavy is imported before memory is.
        from engine.memory.filling import AtHand, filled
        from engine.memory.requests import as_json, named

        given = await _with_mind(memory, command)
        given = await filled(memory, command.verb, given, AtHand(command.agent, goal), kept)
        request = named(command.verb, given)
        written = await memory.write(request, actor=actor)
    except (MemoryFault, JournalError) as error:
        return cmd.Receipt(ok=False, message=str(error))
    return cmd.Receipt(
        ok=True,
        message=f"{request.verb} done" if written.event else f"{request.verb}: nothing was to be changed",
        event=written.event,
        data=as_json(written.answer),
    )


async def _with_mind(memory: Memory, command: cmd.Remember) -> Mapping[str, Any]:
    """The arguments; where it is about what is in mind and names no workflow, that of the memory is meant.

    An operator looks at memories of all work, also of what is over.
    """
    given = command.arguments
    named = next((given[name] for name in _NAMING if given.get(name)), "")
    ident = next(iter(named), "") if isinstance(named, list | tuple) else named
    if command.verb not in _OF_MIND or given.get("context_id") or not ident:
        return given
    found = await memory.recall("get_memory_by_id", {"memory_id": ident, "include_links": False})
    return {**given, "context_id": found.memory.workflow}
