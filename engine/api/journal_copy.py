"""Copying a journal with its blobs from a file to PostgreSQL, and back; heads show that it is the same."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from engine.core.journal import BlobError, JournalError
from engine.core.ports import Clock
from engine.core.store.blobs import BlobStore
from engine.core.store.opening import note_place, shared_blobs
from engine.core.store.places import lost_journal
from engine.core.store.port import DATA_DIRECTORY, DATABASE
from engine.core.store.postgres import open_postgres
from engine.core.store.postgres_schema import Address, read_address
from engine.core.store.schema import prepare
from engine.core.store.sqlite import SqliteJournal
from engine.core.store.stored import StoredJournal
from engine.core.store.verify import verify, workspace_head

PAGE = 1_024
"""Events that are copied in one transaction."""


class Copied(NamedTuple):
    """What was copied."""

    events: int
    """How many events there are now."""
    added: int
    """How many of them are new there."""
    blobs: int
    head: str
    """The hash over all streams, which both journals have."""
    place: str


async def copy_to_postgres(workspace: Path, url: str, clock: Clock) -> Copied:
    """Copy the journal of a workspace from its file; the workspace notes where it is now.

    Raises:
        JournalError: one of them cannot be opened, is in use, or the target has another journal.
    """
    address = read_address(url, workspace)
    async with AsyncExitStack() as stack:
        source = await SqliteJournal.open(workspace, clock=clock, create=False)  # alone: nothing is missed
        stack.push_async_callback(source.close)
        target = await open_postgres(address, clock)
        stack.push_async_callback(target.close)
        blobs = await asyncio.to_thread(_give, workspace, address, clock)
        copied = await _copy(source, target, blobs, address.place)
        note_place(workspace, address.place)
    return copied


async def copy_to_file(url: str, workspace: Path, clock: Clock) -> Copied:
    """Copy a journal from PostgreSQL into the file of a workspace, which has it there from now on.

    Raises:
        JournalError: one of them cannot be opened, is in use, or the target has another journal.
    """
    address = read_address(url, workspace)
    path = workspace / DATA_DIRECTORY / DATABASE
    async with AsyncExitStack() as stack:
        source = await open_postgres(address, clock, create=False)
        stack.push_async_callback(source.close)
        if await asyncio.to_thread(lost_journal, path):  # its other data are of the journal that is coming
            await asyncio.to_thread(prepare, path, clock.now())
        target = await SqliteJournal.open(workspace, clock=clock)
        stack.push_async_callback(target.close)
        blobs = await asyncio.to_thread(_take, workspace, address, clock)
        copied = await _copy(source, target, blobs, str(path))
        note_place(workspace, "")
    return copied


async def _copy(source: StoredJournal, target: StoredJournal, blobs: int, place: str) -> Copied:
    first = await target.head_seq()
    if first:
        ours, theirs = await source.get(first), await target.get(first)
        if ours is None or theirs is None or ours != theirs:
            raise JournalError(f"{place} has another journal, with {first:,} events; nothing was changed.")
    seq = first
    while events := await source.page(seq, PAGE, None):
        await target.commit([event._replace(seq=0) for event in events])
        seq = events[-1].seq
    check = await verify(target)
    if not check.ok or check.head != workspace_head(await source.streams()):
        raise JournalError(
            f"{place} is not what was copied (at {check.first_bad or 'its heads'}: {check.reason}) and of no "
            "use: look at the source with pilothouse sessions verify."
        )
    return Copied(check.events, check.events - first, blobs, check.head, place)


def _give(workspace: Path, address: Address, clock: Clock) -> int:
    """Copy the blobs of a workspace to where others have them."""
    own, shared = BlobStore(workspace / DATA_DIRECTORY / "blobs"), shared_blobs(address, clock)
    count = 0
    for path in own.files():
        shared.keep(path.name, own.read(path.name))
        count += 1
    return count


def _take(workspace: Path, address: Address, clock: Clock) -> int:
    """Copy the blobs that others have into a workspace."""
    shared = shared_blobs(address, clock)
    own = BlobStore(workspace / DATA_DIRECTORY / "blobs", shared)
    digests = shared.digests()
    for digest in digests:
        try:
            own.read(digest)
        except BlobError as error:
            raise JournalError(f"A blob could not be copied. {error}") from error
    return len(digests)
