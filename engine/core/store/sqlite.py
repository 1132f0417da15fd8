"""The journal in SQLite: one database a workspace, one writer, any number of readers.

The newest events are kept in memory, so that those who follow the journal need not read them from disk.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import aiosqlite

from engine import __version__
from engine.core.journal import (
    Event,
    JournalClosed,
    JournalError,
    JournalLocked,
    JournalMissing,
    JournalReadError,
    JournalUnsound,
)
from engine.core.ports import Clock
from engine.core.store.places import (
    clear,
    is_regular,
    lost_journal,
    note_closed,
    note_open,
    tidy_data_directory,
)
from engine.core.store.port import DATA_DIRECTORY, DATABASE, START, Head
from engine.core.store.reader import JournalReader
from engine.core.store.schema import read_only_uri, require_journal, torn_end
from engine.core.store.writer import GroupWriter, WriterLock


class Tail:
    """A ring of the last committed events, shared by all who follow; each keeps only its own place."""

    def __init__(self, last_seq: int, size: int) -> None:
        """Begin after `last_seq`, with room for `size` events."""
        self._ring: deque[Event] = deque(maxlen=size)
        self._last = last_seq

    def extend(self, events: Iterable[Event]) -> None:
        """Add events that follow the last one without a gap."""
        self._ring.extend(events)
        if self._ring:
            self._last = self._ring[-1].seq

    def after(self, seq: int, limit: int) -> list[Event] | None:
        """Up to `limit` events that follow `seq`, or None when some of them are only on disk."""
        first = self._last - len(self._ring) + 1
        if seq + 1 < first:
            return None
        start = seq + 1 - first
        return list(islice(self._ring, start, start + limit))


T = TypeVar("T")

LOG = f"{DATABASE}-wal"
"""What was written last, beside it, until a session ends in good order."""

PLACES = (
    *("blobs", "blobs/.pilothouse", "blobs/.pilothouse/blobs"),
    *("archives", "snapshots", "snapshots/objects", "snapshots/passing", "snapshots/snapshots"),
)
"""Directories in the data directory, each before what is in it."""

PAGE = 256
"""Events read or handed on at a time; making that many takes about a millisecond."""

TAIL = 2_048
"""Newest events kept in memory for those who follow."""

KEEP_SNAPSHOTS = 8
"""Snapshots kept a stream."""
SNAPSHOT_DISTANCE = 500
"""Of the snapshots of so many newest events only the newest and the oldest are kept, so that many short
sessions leave one from which the state before the newest events is soon had."""

POLL_S = 0.25
"""How often a read-only store that is followed looks for what another process wrote, in seconds."""

Synchronous = Literal["FULL", "NORMAL"]
"""FULL keeps every acknowledged event through a power cut; NORMAL is faster and may lose the last ones."""


class SqliteJournal(JournalReader):
    """The one durable record of a workspace; open it with `open`, and always `close` it.

    Reading works in both modes. What is read are committed events only.
    """

    def __init__(
        self, path: Path, clock: Clock, connection: aiosqlite.Connection, connections: AsyncExitStack
    ) -> None:
        super().__init__(connection, path)
        self.torn = 0
        """Bytes of the journal's end that this opening found torn, and that are no part of it."""
        self.notes: tuple[str, ...] = ()
        """What this opening put right, in sentences."""
        self.writers: tuple[str, ...] = ()
        """The versions of Pilothouse that wrote to it, oldest first."""
        self._clock = clock
        self._connections = connections
        self._writer: GroupWriter | None = None
        self._tail = Tail(0, TAIL)
        self._news = asyncio.Event()
        self._closed = False
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        directory: Path,
        *,
        clock: Clock,
        create: bool = True,
        read_only: bool = False,
        synchronous: Synchronous = "FULL",
    ) -> Self:
        """Open the journal of a workspace.

        Args:
            directory: the workspace; the journal is `.pilothouse/journal.db` in it.
            clock: for the lock, and waiting.
            create: make a new journal when there is none; never with `read_only`.
            read_only: read while another process may be writing; takes no lock and changes nothing.
            synchronous: how hard a commit is pressed to the disk.

        Raises:
            JournalMissing: there is none, and none was to be made.
            JournalLocked: another engine writes to the workspace.
            JournalTooNew: its schema is not this one.
            JournalCorrupt: the file is not a journal or is damaged; it is left untouched.
            JournalUnsound: it is not what was written, and was to be written to.
            JournalError: the workspace cannot be used as it is; the message says why.
        """
        data = directory / DATA_DIRECTORY
        path = data / DATABASE
        if why := await asyncio.to_thread(lost_journal, path):
            raise JournalUnsound(path, "", why, 0)
        if (read_only or not create) and not await asyncio.to_thread(path.is_file):
            raise JournalMissing(f"There is no journal in {directory}: start an agent there first.")
        async with AsyncExitStack() as stack:
            torn, notes = 0, list[str]()
            if read_only:
                await asyncio.to_thread(require_journal, path)
            else:
                from engine.core.store.repair import prepare_sound  # late: who only reads repairs nothing

                # On the loop, as it takes no time; a thread that outlives a cancelled opening keeps the lock.
                lock = _claim(data, clock.now())
                stack.callback(lock.release)
                torn, notes = await _to_the_end(asyncio.to_thread(_made_ready, data))
                notes += await _to_the_end(asyncio.to_thread(prepare_sound, path, clock.now()))
                connection = await _connect(stack, str(path), synchronous)
                # From here on there is a log, and what is in it counts.
                await asyncio.to_thread(note_open, path)
                stack.push_async_callback(_settle, connection, path)
            reading = await _connect(stack, read_only_uri(path), None)
            reader = JournalReader(reading, path)
            heads = {} if read_only else await reader.streams()
            last_seq = await reader.head_seq()
            writers = await reader.read_writers() if last_seq else ()
            if not read_only and writers[-1:] != (__version__,):
                writers += (__version__,)
                await connection.execute(
                    "insert or replace into meta values('written_by', ?)", (" ".join(writers),)
                )
            store = cls(path, clock, reading, stack.pop_all())
            store.torn, store.writers, store.notes = torn, writers, tuple(notes)
        if not read_only:
            store._tail = Tail(last_seq, TAIL)
            store._writer = GroupWriter(connection, heads, last_seq, store._publish)
        return store

    @property
    def read_only(self) -> bool:
        """True when this store cannot write."""
        return self._writer is None

    async def close(self) -> None:
        """Commit what waits, let followers finish, end every thread, and give up the lock.

        May be called again, and finishes even when its caller is cancelled.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="journal close")
        try:
            await asyncio.shield(self._closing)
        except asyncio.CancelledError:
            await asyncio.wait([self._closing])
            raise

    async def _close(self) -> None:
        try:
            if self._writer is not None:
                await self._writer.stop()
        finally:
            self._closed = True
            self._news.set()
            # Last in, first out: the reader goes before the writer, whose closing folds the log into the
            # file, and the lock goes last.
            await self._connections.aclose()

    # -------------------------------------------------------------- writing

    async def commit(self, events: Sequence[Event]) -> list[Event]:
        """Make events durable, all or none, and answer them with their place in the workspace.

        They must follow the heads of their streams. Calls made at the same time share a transaction and
        do not affect one another. Once called the events are written even if the caller is cancelled.
        That each hash continues its chain is not checked here but by `engine.core.store.verify`.

        Raises:
            JournalConflict: a version does not follow its stream's head.
            JournalRefused: an event holds what cannot be stored, such as half a surrogate pair.
            JournalWriteError: the disk refused; the same events can be committed again.
            JournalClosed: the journal is closed or was opened for reading only.
        """
        writer = self._writing()
        return await writer.append(tuple(events)) if events else []

    async def save_snapshot(self, stream: str, version: int, format: int, state: str) -> None:  # noqa: A002
        """Keep the state of a stream after an event, and only the newest few of its snapshots.

        Args:
            stream: the stream.
            version: the last event that went into the state.
            format: what the state looks like, so that another format's snapshot is not taken for it.
            state: any text; it is a cache and never the only copy of anything.

        Raises:
            JournalError: as `commit`; a caller may well continue without a snapshot.
        """
        await self._writing().write(
            (
                ("insert or replace into snapshots values(?, ?, ?, ?)", (stream, version, format, state)),
                (
                    """with near as (select version from snapshots where stream = ?1 and version > (
                        select max(version) from snapshots where stream = ?1) - ?2)
                    delete from snapshots where stream = ?1 and version > (select min(version) from near)
                        and version < (select max(version) from near)""",
                    (stream, SNAPSHOT_DISTANCE),
                ),
                (
                    """delete from snapshots where stream = ? and version not in (
                        select version from snapshots where stream = ? order by version desc limit ?)""",
                    (stream, stream, KEEP_SNAPSHOTS),
                ),
            )
        )

    async def replace_bodies(self, bodies: Mapping[int, str]) -> None:
        """Put others in the place of bodies that an event seals, or back; all or none.

        Args:
            bodies: by the places of their events.

        Raises:
            JournalError: as `commit`.
        """
        if bodies:
            sql = "update events set body = new.value from json_each(?) new where seq = cast(new.key as int)"
            await self._writing().write(((sql, (json.dumps(bodies),)),))

    async def shrink(self) -> None:
        """Give the room within the file back to the disk; takes as long as all is large.

        Raises:
            JournalError: as `commit`; the journal is as it was.
        """
        await self._writing().write((("vacuum", ()),))

    def _writing(self) -> GroupWriter:
        if self._writer is None:
            raise JournalClosed("The journal is open for reading only.")
        return self._writer

    def _publish(self, events: list[Event]) -> None:
        """Hand on what has become durable."""
        self._tail.extend(events)
        self._news.set()
        self._news = asyncio.Event()

    # -------------------------------------------------------------- reading

    async def events(
        self, since: int = 0, *, stream: str | None = None, follow: bool = False
    ) -> AsyncIterator[Event]:
        """Events behind a place, in order, each once.

        Args:
            since: the place (`seq`) of the last event already known.
            stream: only this stream's.
            follow: continue with new events as they become durable, until the store is closed. A slow
                follower costs no memory: what it has not taken it reads from disk later. A read-only
                store looks for another process's events four times a second.

        Raises:
            JournalClosed: the store was closed before everything was handed on.
            JournalReadError, JournalCorrupt: the file could not be read.
        """
        async for page in self.pages(since, stream=stream, follow=follow):
            for event in page:
                yield event

    async def pages(
        self, since: int = 0, *, stream: str | None = None, follow: bool = False
    ) -> AsyncIterator[list[Event]]:
        """The same, as many at a time as are at hand; see `events`."""
        place = since
        until = None if follow else await self.head_seq()
        while until is None or place < until:
            news = self._news
            page, reached = await self._page(place, stream)
            if until is not None and reached > until:
                page = [event for event in page if event.seq <= until]
            if page:
                yield page
            if reached > place:
                place = reached
                # A page from memory costs no wait, so others would not get their turn.
                await asyncio.sleep(0)
            elif self._closed or not await self._more(news):
                return

    async def _page(self, place: int, stream: str | None) -> tuple[list[Event], int]:
        """The next events behind a place, and the place up to which there is nothing else."""
        durable = await self.head_seq()
        if place >= durable:
            return [], place
        recent = None if self._writer is None else self._tail.after(place, PAGE)
        if recent:
            return [event for event in recent if stream is None or event.stream == stream], recent[-1].seq
        page = await self.page(place, PAGE, stream)
        if len(page) == PAGE:
            return page, page[-1].seq
        return page, max(durable, page[-1].seq if page else 0)

    async def _more(self, news: asyncio.Event) -> bool:
        """Wait until there may be more; False when the store was closed meanwhile."""
        if self._writer is not None:
            await news.wait()
            return True
        await self._clock.sleep(POLL_S)
        return not self._closed

    async def head(self, stream: str) -> Head:
        """Version and hash of a stream's last event; version 0 when it has none."""
        if self._writer is not None:
            return self._writer.heads.get(stream, START)
        return await super().head(stream)

    async def streams(self) -> dict[str, Head]:
        """The head of every stream, by name in order."""
        if self._writer is not None:
            return dict(sorted(self._writer.heads.items()))
        return await super().streams()

    async def head_seq(self) -> int:
        """The place of the last durable event, 0 when there is none."""
        return self._writer.last_seq if self._writer is not None else await super().head_seq()

    @property
    def names(self) -> tuple[str, ...]:
        """The streams of a journal that is open for writing, sorted.

        Raises:
            JournalClosed: it was opened for reading only.
        """
        return tuple(sorted(self._writing().heads))

    @property
    def last_seq(self) -> int:
        """The place of the last durable event of a journal that is open for writing.

        Raises:
            JournalClosed: it was opened for reading only.
        """
        return self._writing().last_seq


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """What some work gives; cancelled, it is waited for all the same, as a thread cannot be cut off."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _made_ready(data: Path) -> tuple[int, list[str]]:
    """See that a data directory can be used; the torn bytes of the log, and what was put right."""
    notes = tidy_data_directory(data, PLACES)
    log = data / LOG
    torn, ended = torn_end(log)
    if ended:
        kept = log.with_name(f"{LOG}.aside-{secrets.token_hex(4)}")
        with suppress(OSError):
            kept.write_bytes(log.read_bytes())
            notes.append(f"the log of the journal was damaged in its middle: {kept.name} is a copy of it")
    return torn, notes


def _claim(data: Path, now: str) -> WriterLock:
    """Make the data directory if need be, readable by its owner only, and take its lock."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(
            f"{data} cannot be made ({error.strerror}): choose a workspace directory you may write to."
        ) from error
    lock = data / "lock"
    if not is_regular(lock):
        with suppress(OSError):  # which taking it tells
            clear(lock)
    return WriterLock.acquire(lock, now)


async def _connect(
    stack: AsyncExitStack, database: str, synchronous: Synchronous | None
) -> aiosqlite.Connection:
    """A connection that the stack closes; it can write only when `synchronous` is given."""
    pragmas = ["busy_timeout = 5000", "foreign_keys = on", "temp_store = memory", "mmap_size = 0"]
    if synchronous is None:
        pragmas.append("query_only = on")
    else:
        # the log is cut back after a burst; without a limit it keeps its largest size
        pragmas += [f"synchronous = {synchronous}", "journal_size_limit = 67108864"]
    connection = aiosqlite.connect(
        database, uri=synchronous is None, isolation_level=None, cached_statements=64
    )
    try:
        await connection
        stack.push_async_callback(connection.close)
        if synchronous is not None:
            ((mode,),) = await connection.execute_fetchall("pragma journal_mode = wal")
            if mode != "wal":
                raise JournalError(
                    f"{database} is on a file system without write-ahead logging: "
                    "move the workspace to a local disk."
                )
        for pragma in pragmas:
            await connection.execute_fetchall(f"pragma {pragma}")
    except sqlite3.Error as error:
        raise JournalReadError(f"{database} cannot be opened ({error}).") from error
    return connection


async def _settle(connection: aiosqlite.Connection, path: Path) -> None:
    """Bring the log into the file and note how that is, before the connection is closed."""
    with suppress(sqlite3.Error):
        await connection.execute_fetchall("pragma wal_checkpoint(truncate)")
    await asyncio.to_thread(note_closed, path)


LOCK_TRIES, LOCK_WAIT_S = 100, 0.02
"""How often and at what distance a lock is tried whose holder is dead."""


async def open_store(workspace: Path, clock: Clock, *, create: bool) -> SqliteJournal:
    """Open the journal; where the engine that holds its lock is dead, wait until the lock is free.

    A killed engine that was about to start a program leaves a copy of itself, which lets go of the lock
    when it becomes that program a moment later.

    Raises:
        JournalError: it cannot be opened; the message says why and what to do.
    """
    for _ in range(LOCK_TRIES):
        try:
            return await SqliteJournal.open(workspace, clock=clock, create=create)
        except JournalLocked as locked:
            if _lives(locked.pid):
                raise
            await clock.sleep(LOCK_WAIT_S)
    return await SqliteJournal.open(workspace, clock=clock, create=create)


def _lives(pid: str) -> bool:
    """Whether there is such a process, or might be."""
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OverflowError, PermissionError):
        return True
    return True
