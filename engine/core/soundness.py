"""What is recorded about the journal itself: breaks, restorations, and what was redacted or archived.

All are events of the workspace's stream, by the name of the operator whose word it was.
"""

from __future__ import annotations

from engine.core.journal import Payload
from engine.core.reasons import Reason


class BreakAccepted(Payload, kind="journal.break_accepted"):
    """The operator goes on with a journal that is not as it was written."""

    event: str
    """The first event that is not sound; empty where the journal was lost as a whole."""
    problem: Reason
    """What is wrong there."""
    upto: int
    """The place of the last event before this one."""
    digest: str
    """SHA-256 over all stored rows up to there, as they were accepted."""
    heads: dict[str, tuple[int, str]]
    """Version and hash of each stream's last event, as they were accepted."""
    lost: tuple[str, ...] = ()
    """Digests of blobs that are missing or damaged."""
    left: int = 0
    """Events that could not be read and stayed in the old file."""
    kept: str = ""
    """The name of the old file."""


class JournalRestored(Payload, kind="journal.restored"):
    """The operator goes back to the newest sound event of a journal."""

    event: str
    """The first event that was not sound."""
    problem: Reason
    upto: int
    """The place of the last event that was sound."""
    kept: str
    """The name of the old file."""


class ContentsRedacted(Payload, kind="journal.redacted"):
    """The operator had contents replaced by their digest."""

    pattern: str
    """SHA-256 of the pattern."""
    events: dict[str, str]
    """SHA-256 of the present body of each event that was changed, by its reference."""
    blobs: int = 0
    """Blobs that were changed."""
    objects: int = 0
    """Files and directories in snapshots that were changed."""


class ContentsArchived(Payload, kind="journal.archived"):
    """Old contents are in a file, and what stands in their place names it."""

    file: str
    """The name of the file."""
    digest: str
    """SHA-256 of the file."""
    events: dict[str, str]
    """SHA-256 of the present body of some of the events that are changed, by their references."""
    total: int
    """Events with contents in the file."""
    blobs: tuple[str, ...] = ()
    """Digests of the blobs that are in the file."""


class ArchiveRestored(Payload, kind="journal.unarchived"):
    """The contents of an archive are in the journal again."""

    file: str
    events: int
    blobs: int = 0
