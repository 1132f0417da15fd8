"""What the operator writes to memory, answered as commands are: with a receipt and never an exception."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from engine.domain import commands as cmd
from engine.journal.errors import JournalError
from engine.memory.errors import MemoryFault
from engine.memory.memory import Memory


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
        from engine.memory.filling import filled
        from engine.memory.requests import as_json, named

        given = await filled(memory, command.verb, command.arguments, (command.agent, goal), kept)
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
