"""What the operator writes to memory, answered as commands are: with a receipt and never an exception."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain import commands as cmd
from engine.journal.errors import JournalError
from engine.memory.errors import MemoryFault
from engine.memory.memory import Memory

_MEMORIES = ("memory_id", "pin", "unpin", "evict", "add")
"""Arguments that name a memory, by whose workflow a workflow that is not named is known."""


async def remember(memory: Memory, command: cmd.Remember, actor: str, goal: str = "") -> cmd.Receipt:
    """Write in the operator's name; the receipt names the event, and `data` is the answer.

    Args:
        memory: where.
        command: what. A workflow that it does not name is that of the memory that it names, else that of
            the agent's goal.
        actor: who asks.
        goal: the goal of the command's agent that is pursued.
    """
    try:
        await memory.ready()
        # Only now, so that nothing heavy is imported before memory is.
        from engine.memory.requests import as_json, named

        request = named(command.verb, await _placed(memory, command, goal))
        written = await memory.write(request, actor=actor)
    except (MemoryFault, JournalError) as error:
        return cmd.Receipt(ok=False, message=str(error))
    return cmd.Receipt(
        ok=True,
        message=f"{request.verb} done" if written.event else f"{request.verb}: nothing was to be changed",
        event=written.event,
        data=as_json(written.answer),
    )


async def _placed(memory: Memory, command: cmd.Remember, goal: str) -> Mapping[str, Any]:
    """The arguments, with the workflow where it is needed and not named."""
    from engine.memory.requests import kind_named

    missing = [
        name for name in ("workflow_id", "context_id") if name in kind_named(command.verb).model_fields
    ]
    given = command.arguments
    if not missing or missing[0] in given:
        return given
    told = next((given[name] for name in _MEMORIES if given.get(name)), "")
    ident = told[0] if isinstance(told, list | tuple) else told
    if ident:
        found = await memory.recall("get_memory_by_id", {"memory_id": ident, "include_links": False})
        return {**given, missing[0]: found.memory.workflow}
    workflow = await memory.recall("find_workflow", {"agent": command.agent, "goal": goal}) if goal else ""
    return {**given, missing[0]: workflow} if workflow else given
