"""Commands about an operator's notes in the journal."""

from __future__ import annotations

from app.commands.arguments import Rest
from app.commands.command import Answer, Command, CommandHost, Show, Submit, Values, chosen_agent
from engine.core import commands as cmd
from engine.core import events as ev

NEWEST = 100
"""Notes that are listed at most."""


async def list_notes(host: CommandHost, _values: Values) -> Answer:
    """The agent's newest notes, the oldest of them first."""
    events = await host.engine.store.last(NEWEST, chosen_agent(host), kind=ev.NoteAdded.kind)
    rows = [
        {"event": event.ref, "at": event.at, "by": event.actor.partition(":")[2], "text": note.text}
        for event in events
        if isinstance(note := ev.payload_of(event), ev.NoteAdded)
    ]
    lines = [f"{row['event']} {row['at'][:16]} {row['by']}: {row['text']}" for row in rows]
    return 0, {"notes": rows}, "\n".join(lines) or "no notes yet; note TEXT makes one"


COMMANDS = (
    Command(
        "note",
        "put a note into the journal, for the timeline and reports; the agent does not read it",
        Submit(cmd.AddNote),
        (Rest("text", "the note", shown="TEXT"),),
        "Mind",
        examples=("note from here on it works on the wrong branch",),
    ),
    Command("notes", "your notes about the agent, with their events", Show(list_notes), group="Mind"),
)
