"""Opening the journal of a workspace to write to it."""

from __future__ import annotations

import os
from pathlib import Path

from engine.domain.ports import Clock
from engine.journal.errors import JournalLocked
from engine.journal.store import JournalStore

LOCK_TRIES, LOCK_WAIT_S = 100, 0.02
"""How often and at what distance a lock is tried whose holder is dead."""


async def open_store(workspace: Path, clock: Clock, *, create: bool) -> JournalStore:
    """Open the journal; where the engine that holds its lock is dead, wait until the lock is free.

    A killed engine that was about to start a program leaves a copy of itself, which lets go of the lock
    when it becomes that program a moment later.

    Raises:
        JournalError: it cannot be opened; the message says why and what to do.
    """
    for _ in range(LOCK_TRIES):
        try:
            return await JournalStore.open(workspace, clock=clock, create=create)
        except JournalLocked as locked:
            if _lives(locked.pid):
                raise
            await clock.sleep(LOCK_WAIT_S)
    return await JournalStore.open(workspace, clock=clock, create=create)


def _lives(pid: str) -> bool:
    """Whether there is such a process, or might be."""
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OverflowError, PermissionError):
        return True
    return True
