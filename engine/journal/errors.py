"""What can go wrong with the journal, each with a one-line message fit for the operator."""

# These errors are named after what happened to the journal, which reads better in a message than `…Error`.
# ruff: noqa: N818

from __future__ import annotations

from pathlib import Path


class JournalError(Exception):
    """Something about the journal or its blobs that the operator should know."""


class JournalMissing(JournalError):
    """There is no journal here, and none was to be created."""


class JournalLocked(JournalError):
    """Another engine writes to this workspace."""

    def __init__(self, path: Path, pid: str, since: str) -> None:
        super().__init__(
            f"Process {pid} has had this workspace open since {since} ({path}): close it there, "
            "or open the workspace for reading only."
        )
        self.pid = pid
        """Process id of the writer as it wrote it down, or `unknown`."""
        self.since = since
        """When the writer opened the workspace, ISO 8601 UTC, or `an unknown time`."""


class JournalTooNew(JournalError):
    """A newer Pilothouse wrote this journal."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} has schema version {found} and this Pilothouse knows versions up to {known}: "
            "open it with a newer Pilothouse; nothing was changed."
        )
        self.found = found
        self.known = known


class JournalTooOld(JournalError):
    """An older Pilothouse wrote this journal, and it cannot be migrated while open for reading only."""


class JournalMigrationFailed(JournalError):
    """An older journal could not be brought to the current schema; it is as it was."""


class JournalCorrupt(JournalError):
    """The file is not a journal, or is damaged."""

    def __init__(self, path: Path, reason: str) -> None:
        reason = " ".join(reason.split())
        super().__init__(
            f"{path} cannot be read as a journal ({reason}); nothing was changed. "
            "Copy the file away for inspection, then restore a backup or move it aside to start afresh."
        )
        self.path = path
        self.reason = reason


class JournalReadError(JournalError):
    """The journal could not be read just now."""


class JournalConflict(JournalError):
    """Events do not follow the head of their stream; nothing of their batch was written."""


class JournalRefused(JournalError):
    """An event holds something that the store cannot keep; nothing of its batch was written."""


class JournalWriteError(JournalError):
    """The disk refused; nothing of the batch was written and the same events can be committed again."""


class JournalClosed(JournalError):
    """The journal is closed or closing."""


class BlobError(JournalError):
    """Something about a blob."""


class BlobMissing(BlobError):
    """No blob has this digest."""


class BlobCorrupt(BlobError):
    """The content of a blob does not match its digest."""


class BlobWriteError(BlobError):
    """A blob could not be written; nothing was left behind."""
