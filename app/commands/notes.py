"""Commands about an operator's notes in the journal."""

from __future__ import annotations

from app.commands.arguments import Rest
from app.commands.command import Command, Submit
from engine.core import commands as cmd

COMMANDS = (
    Command(
        "note",
        "put a note into the journal, for the timeline and reports; the agent does not read it",
        Submit(cmd.AddNote),
        (Rest("text", "the note", shown="TEXT"),),
        "Mind",
        examples=("note from here on it works on the wrong branch",),
    ),
)
