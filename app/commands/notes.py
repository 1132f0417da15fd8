"""Commands about an operator's notes in the journal, and what became of messages to an agent."""

from __future__ import annotations

from app.commands.arguments import Rest
from app.commands.command import Answer, Command, CommandHost, Show, Submit, Values, chosen_agent
from app.projection.metacognition_views import taken_up
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.text import clean_line

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


async def show_messages(host: CommandHost, _values: Values) -> Answer:
    """What the operator said to the agent's thinker lately, each with what it led to."""
    state = await host.engine.view(chosen_agent(host))
    rows, lines = [], []
    for entry in (*state.meta.told, *state.meta.feedback):
        if entry.source != "operator":
            continue
        answer = await host.engine.store.get(entry.led) if entry.led else None
        what = taken_up(state, entry, answer)
        rows.append({"event": entry.event, "text": entry.text, "when": entry.when, "asked": entry.asked})
        rows[-1] |= {"led": entry.led, "taken_up": what}
        lines.append(f"{entry.event} {clean_line(entry.text, limit=300)}\n    {clean_line(what)}")
    return (0, {"messages": rows}, "\n".join(lines) or "no messages yet; guide TEXT says one")


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
