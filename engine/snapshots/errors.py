"""What can go wrong with a snapshot, each with a message fit for the operator."""

# As with the journal's errors, the names say what happened, which reads better than `…Error`.
# ruff: noqa: N818

from __future__ import annotations


class SnapshotError(Exception):
    """A snapshot that was not taken, read or restored; the message says why and what to do."""


class SnapshotMissing(SnapshotError):
    """There is no snapshot with this id, or an object of it is gone."""


class SnapshotDamaged(SnapshotError):
    """Something in the store does not hold what its name says."""


class SnapshotStopped(SnapshotError):
    """The caller was cancelled; raised between two files, in the worker thread only."""


class FileChanged(Exception):
    """A file that is not what it was a moment ago; it is looked at again."""
