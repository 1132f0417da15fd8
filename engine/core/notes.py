"""Operators' notes: what is to be remembered of a moment, in the journal beside what happened then."""

from __future__ import annotations

from pydantic import Field

from engine.core.command import Command
from engine.core.journal import Payload

NOTE_LIMIT = 4_000
"""Characters of a note."""


class NoteAdded(Payload, kind="note.added"):
    """The operator noted something; no agent reads it and no state changes."""

    text: str


class AddNote(Command, do="add_note"):
    """Put a note into the journal of an agent."""

    text: str = Field(min_length=1, max_length=NOTE_LIMIT)
