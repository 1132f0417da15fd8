"""Opening the journal of a workspace, wherever it is kept: in its own file, or in PostgreSQL.

Which, is said by the environment: `PILOTHOUSE_JOURNAL` holds the URL, and `--journal` sets it. A workspace
whose journal is in PostgreSQL has a note of where, so that no second journal is begun beside it by mistake.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.journal import JournalError, JournalLocked
from engine.core.ports import Clock
from engine.core.store import JOURNAL
from engine.core.store.blobs import BlobStore
from engine.core.store.places import clear, read_plain
from engine.core.store.port import DATA_DIRECTORY, DATABASE
from engine.core.store.sqlite import SqliteJournal, claim
from engine.core.store.stored import StoredJournal, not_in_a_file
from engine.core.text import clean_line

if TYPE_CHECKING:
    from engine.core.store.postgres_blobs import PostgresBlobs
    from engine.core.store.postgres_schema import Address

NOTE = "journal.url"
"""In the data directory: where the journal is that is not in it, without any password."""
IN_FILE = "file"
"""Noted where the journal stays in its own file whatever the environment says, as in scratch workspaces."""
LOCK_TRIES, LOCK_WAIT_S = 100, 0.02
"""How often and at what distance a lock is tried whose holder is dead."""


async def open_journal(
    workspace: Path, *, clock: Clock, create: bool = True, read_only: bool = False
) -> StoredJournal:
    """Open the journal of a workspace.

    Args:
        workspace: its directory.
        clock: for the lock, and waiting.
        create: make a new journal when there is none; never with `read_only`.
        read_only: read while another process may be writing.

    Raises:
        JournalError: it cannot be opened; see `SqliteJournal.open` and `open_postgres`.
    """
    noted = _noted(workspace)
    if (address := address_of(workspace)) is None:
        if noted not in ("", IN_FILE):
            raise JournalError(
                f"The journal of {workspace} is in PostgreSQL ({noted}): name it with --journal URL or in "
                f"{JOURNAL}. To have it in a file again: pilothouse journal copy URL {workspace}"
            )
        return await SqliteJournal.open(workspace, clock=clock, create=create, read_only=read_only)
    from engine.core.store.postgres import is_empty, open_postgres

    if noted not in ("", address.place):
        raise JournalError(
            f"The journal of {workspace} is at {noted}, and {address.place} was named: name the one it "
            f"has, or remove {workspace / DATA_DIRECTORY / NOTE} to let it have another."
        )
    if read_only:
        return await open_postgres(address, clock, create=False, read_only=True)
    if (workspace / DATA_DIRECTORY / DATABASE).exists() and await is_empty(address):
        raise JournalError(
            f"{workspace} has a journal in a file, and there is none at {address.place}: copy it there "
            f"first, with: pilothouse journal copy {workspace} URL"
        )
    lock = claim(workspace / DATA_DIRECTORY, clock.now())
    store = await open_postgres(address, clock, create=create, lock=lock)
    try:
        note_place(workspace, address.place)
    except BaseException:
        await store.close()
        raise
    return store


def address_of(workspace: Path) -> Address | None:
    """Where in PostgreSQL the journal of a workspace is said to be; None for its own file.

    Raises:
        JournalError: the URL is none.
    """
    if not (url := os.environ.get(JOURNAL, "")) or _noted(workspace) == IN_FILE:
        return None
    from engine.core.store.postgres_schema import read_address

    return read_address(url, workspace)


def journal_file(workspace: Path) -> Path:
    """The file of a workspace's journal, for what works on a file; it may not be there.

    Raises:
        JournalError: the journal is in PostgreSQL.
    """
    address = address_of(workspace)
    if place := address.place if address is not None else _noted(workspace):
        raise not_in_a_file(place, workspace)
    return workspace / DATA_DIRECTORY / DATABASE


def note_place(workspace: Path, place: str) -> None:
    """Note where the journal of a workspace is; empty for its own file.

    Raises:
        JournalError: it cannot be noted.
    """
    note = workspace / DATA_DIRECTORY / NOTE
    try:
        clear(note)
        if place:
            note.write_text(f"{place}\n")
    except OSError as error:
        raise JournalError(
            f"{note} cannot be written ({error.strerror}): check who may write there."
        ) from error


def _noted(workspace: Path) -> str:
    """Where the journal of a workspace is noted to be; empty for its own file."""
    with suppress(OSError, ValueError):
        return clean_line(read_plain(workspace / DATA_DIRECTORY / NOTE, 4_096).decode().strip())
    return ""


def blobs_of(workspace: Path, clock: Clock) -> BlobStore:
    """The blobs of a workspace, which are kept beside its journal as well where that is in PostgreSQL.

    Raises:
        JournalError: the URL of the journal is none.
    """
    address = address_of(workspace)
    shared = shared_blobs(address, clock) if address is not None else None
    return BlobStore(workspace / DATA_DIRECTORY / "blobs", shared)


def shared_blobs(address: Address, clock: Clock) -> PostgresBlobs:
    """The blobs beside a journal in PostgreSQL."""
    from engine.core.store.postgres_blobs import PostgresBlobs

    return PostgresBlobs(address, clock)


async def open_store(workspace: Path, clock: Clock, *, create: bool) -> StoredJournal:
    """Open the journal to write to it; where the engine that holds its lock is dead, wait until it is free.

    A killed engine that was about to start a program leaves a copy of itself, which lets go of the lock
    when it becomes that program a moment later.

    Raises:
        JournalError: it cannot be opened; the message says why and what to do.
    """
    for _ in range(LOCK_TRIES):
        try:
            return await open_journal(workspace, clock=clock, create=create)
        except JournalLocked as locked:
            if _lives(locked.pid):
                raise
            await clock.sleep(LOCK_WAIT_S)
    return await open_journal(workspace, clock=clock, create=create)


def _lives(pid: str) -> bool:
    """Whether there is such a process, or might be."""
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OverflowError, PermissionError):
        return True
    return True
