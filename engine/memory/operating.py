"""What the operator writes to memory, answered as commands are: with a receipt and never an exception."""

from __future__ import annotations

from engine.domain import commands as cmd
from engine.journal.errors import JournalError
from engine.memory.errors import MemoryFault
from engine.memory.memory import Memory


async def remember(memory: Memory, command: cmd.Remember, actor: str) -> cmd.Receipt:
    """Write in the operator's name; the receipt names the event, and `data` is the answer."""
    try:
        await memory.ready()
        # Only now, so that nothing heavy is imported before memory is.
        from engine.memory.requests import as_json, named

        request = named(command.verb, command.arguments)
        written = await memory.write(request, actor=actor)
    except (MemoryFault, JournalError) as error:
        return cmd.Receipt(ok=False, message=str(error))
    return cmd.Receipt(
        ok=True,
        message=f"{request.verb} done" if written.event else f"{request.verb}: nothing was to be changed",
        event=written.event,
        data=as_json(written.answer),
    )
