"""The journal in SQLite: one database a workspace, one writer, any number of readers.

The newest events are kept in memory, so that those who follow the journal need not read them from disk.
"""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, cast

import aiosqlite

from engine.core.journal import (
    Event,
    JournalClosed,
    JournalCorrupt,
    JournalError,
    JournalMissing,
    JournalReadError,
    JournalRefused,
    JournalUnsound,
    JournalWriteError,
)
from engine.core.ports import Clock
from engine.core.store.database import Dialect
from engine.core.store.places import (
    clear,
    is_regular,
    lost_journal,
    note_closed,
    note_open,
    tidy_data_directory,
)
from engine.core.store.port import DATA_DIRECTORY, DATABASE, Row
from engine.core.store.schema import insert, read_only_uri, require_journal, torn_end
from engine.core.store.stored import StoredJournal
from engine.core.store.writer import GROUP_LIMIT, Statement, WriterLock

T = TypeVar("T")
POLL_S = 0.25
"""How often a read-only store that is followed looks for what another process wrote, in seconds."""
LOG = f"{DATABASE}-wal"
"""What was written last, beside it, until a session ends in good order."""

PLACES = (
    *("blobs", "blobs/.pilothouse", "blobs/.pilothouse/blobs"),
    *("archives", "snapshots", "snapshots/objects", "snapshots/passing", "snapshots/snapshots"),
)
"""Directories in the data directory, each before what is in it."""

Synchronous = Literal["FULL", "NORMAL"]
"""FULL keeps every acknowledged event through a power cut; NORMAL is faster and may lose the last ones."""


_insert = lru_cache(maxsize=64)(insert)

_UNSTORABLE = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    UnicodeEncodeError,
    OverflowError,
)


class SqliteLedger:
    """Writes through the only connection that can.

    A group is one INSERT of many rows outside of any explicit transaction: SQLite makes it durable as a
    whole or not at all, it holds nothing open whatever happens, and it takes one trip to the connection's
    thread where begin, insert and commit take three (a trip is about 0.1 ms, as much as a disk flush).
    """

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self.connection = connection

    async def insert(self, rows: Sequence[Row], _after: int) -> None:
        """Keep events, all or none; see `Ledger`."""
        await self._guarded(self._insert(rows))

    async def execute(self, statements: Sequence[Statement]) -> None:
        """Run statements one by one; see `Ledger`."""
        await self._guarded(self._execute(statements))

    async def kept(self, _events: Sequence[Event]) -> list[Event] | None:
        """None: what could not be written is not there."""
        return None

    async def missed(self, _after: int) -> list[Event]:
        """Nothing: nobody else writes."""
        return []

    async def _insert(self, rows: Sequence[Row]) -> None:
        if len(rows) <= GROUP_LIMIT:
            await self.connection.execute(_insert(len(rows)), tuple(chain.from_iterable(rows)))
        else:
            await self.connection.execute("begin immediate")
            await self.connection.executemany(_insert(1), rows)
            await self.connection.commit()

    async def _execute(self, statements: Sequence[Statement]) -> None:
        for sql, parameters in statements:
            await self.connection.execute(sql, parameters)

    async def _guarded(self, writing: Coroutine[Any, Any, None]) -> None:
        """Write all or nothing, whatever goes wrong, and say what went wrong in the journal's words."""
        try:
            await writing
        except asyncio.CancelledError:
            # The statement in flight ends in its thread; what it left open is rolled back behind it.
            await self.connection.rollback()
            raise
        except _UNSTORABLE as error:
            await self.connection.rollback()
            raise JournalRefused(
                f"What was to be written cannot be stored ({error}); nothing of this batch was written."
            ) from error
        except sqlite3.Error as error:
            await self.connection.rollback()
            raise JournalWriteError(
                f"The journal could not be written ({error}); nothing of this batch was written. "
                "Make room or mend the disk, then try again."
            ) from error


class SqliteDatabase:
    """One file, read through a connection that cannot write."""

    dialect = Dialect("json_each(?) names", "json_each(?) places", "+kind", "cast(s.state as blob)")

    def __init__(self, path: Path, clock: Clock, connection: aiosqlite.Connection) -> None:
        self.path, self.connection, self._clock = path, connection, clock
        self.resources = AsyncExitStack()
        """Reader, then writer, whose closing folds the log into the file, then the lock."""

    @property
    def place(self) -> str:
        """The file."""
        return str(self.path)

    async def fetch(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """All rows of a query; see `Database`."""
        try:
            rows: Iterable[Any] = await self.connection.execute_fetchall(sql, parameters)
        except sqlite3.OperationalError as error:
            raise JournalReadError(f"{self.path} cannot be read ({error}).") from error
        except sqlite3.DatabaseError as error:
            raise JournalCorrupt(self.path, str(error)) from error
        except ValueError as error:  # what aiosqlite raises once closed
            raise JournalClosed(f"The journal is closed ({self.path}).") from error
        return cast("list[tuple[Any, ...]]", rows)

    async def news(self, _told: asyncio.Event) -> None:
        """Wait a little: SQLite tells no other process."""
        await self._clock.sleep(POLL_S)

    async def last_given_seq(self) -> int:
        """As SQLite remembers it."""
        # The table is SQLite's own, and a journal from before it was asked for may not have it.
        if not await self.fetch("select 1 from sqlite_schema where name = 'sqlite_sequence'", ()):
            return 0
        rows = await self.fetch("select seq from sqlite_sequence where name = 'events'", ())
        return int(rows[0][0]) if rows else 0

    async def damage(self) -> str:
        """What SQLite finds wrong with the file and its indexes, in its words; empty when it is sound."""
        ((verdict,),) = await self.fetch("pragma integrity_check(1)", ())
        return "" if verdict == "ok" else str(verdict)


class SqliteJournal(StoredJournal):
    """The journal of a workspace in its own file; open it with `open`."""

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
                lock = claim(data, clock.now())
                stack.callback(lock.release)
                torn, notes = await _to_the_end(asyncio.to_thread(_made_ready, data))
                notes += await _to_the_end(asyncio.to_thread(prepare_sound, path, clock.now()))
                connection = await _connect(stack, str(path), synchronous)
                # From here on there is a log, and what is in it counts.
                await asyncio.to_thread(note_open, path)
                stack.push_async_callback(_settle, connection, path)
            reading = await _connect(stack, read_only_uri(path), None)
            database = SqliteDatabase(path, clock, reading)
            store = cls(database)
            store.torn, store.notes = torn, tuple(notes)
            if read_only:
                store.writers = await store.read_writers() if await store.head_seq() else ()
            else:
                await store.begin_writing(SqliteLedger(connection))
            database.resources = stack.pop_all()
        return store


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


def claim(data: Path, now: str) -> WriterLock:
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
