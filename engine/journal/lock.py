"""The lock that keeps a second engine from writing to the same workspace.

It is an advisory `flock` on an open file, so it ends with the process that holds it, however that ends.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from engine.journal.errors import JournalError, JournalLocked


class WriterLock:
    """The right to write to one workspace, held from `acquire` to `release`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def acquire(cls, path: Path, since: str) -> Self:
        """Take the lock and write down who holds it.

        Args:
            path: the lock file; it is created when missing and never removed, so that nobody can
                lock a file which is no longer the one others look at.
            since: the current time, as others shall read it.

        Raises:
            JournalLocked: another process (or another store of this one) holds it.
            JournalError: the file cannot be opened or locked.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise JournalError(
                f"{path} cannot be opened ({error.strerror}): check who may write to the workspace."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()} {since}\n".encode(), 0)
        except BlockingIOError as error:
            pid, since_then = _holder(descriptor)
            os.close(descriptor)
            raise JournalLocked(path, pid, since_then) from error
        except OSError as error:
            os.close(descriptor)
            raise JournalError(
                f"{path} cannot be locked ({error.strerror}): a workspace must be on a local disk."
            ) from error
        return cls(descriptor)

    def release(self) -> None:
        """Let others write; may be called again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _holder(descriptor: int) -> tuple[str, str]:
    """Process id and start time as the holder wrote them, or words for not knowing."""
    words = os.pread(descriptor, 200, 0).decode("ascii", "replace").split()
    return (words[0], words[1]) if len(words) == 2 else ("unknown", "an unknown time")
