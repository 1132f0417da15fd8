"""The journal in PostgreSQL: a schema of a database for each journal.

One statement keeps a group of events: it moves the place of the last event on only where that is still as
this process knows it. So a writer that was overtaken, or that lost its connection, finds out and looks at
what is there. Nothing is acknowledged before the server has committed it.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from functools import lru_cache, partial
from typing import Any, TypeVar, cast

from engine.core.journal import (
    Event,
    JournalClosed,
    JournalError,
    JournalLocked,
    JournalReadError,
    JournalRefused,
    JournalWriteError,
)
from engine.core.ports import Clock
from engine.core.store.database import Dialect
from engine.core.store.leases import require
from engine.core.store.port import Row
from engine.core.store.postgres_schema import (
    Address,
    asyncpg_errors,
    check_version,
    connect,
    lost,
    missing,
    prepare,
    sentence,
    version_of,
    writer_name,
)
from engine.core.store.schema import COLUMNS, placed, to_event
from engine.core.store.stored import StoredJournal
from engine.core.store.writer import Overtaken, Statement, WriterLock

T = TypeVar("T")

RECONNECT_TRIES, RECONNECT_WAIT_S = 60, 0.25
"""How often and at what distance a lost server is tried, until whoever waits hears of it."""
MISSED = 1_000
"""Events of others that are read at a time."""

_INSERT = f"""
with place as (
    update journal set last_seq = $1::bigint + $2::bigint where last_seq = $1 returning last_seq
), kept as (
    insert into events({COLUMNS}) select * from unnest(
        $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::bigint[],
        $8::text[], $9::text[], $10::text[], $11::text[], $12::text[]
    ) where exists(select from place)
)
select pg_notify(current_schema(), last_seq::text) from place
"""


class Link:
    """One connection, made anew where it was lost; those who use it take turns.

    Args:
        address: the database.
        clock: for waiting.
        begin: called with each new connection.
    """

    def __init__(self, address: Address, clock: Clock, begin: Callable[[Any], Awaitable[None]]) -> None:
        self.address, self._clock, self._begin = address, clock, begin
        self._connection: Any = None
        self._turn = asyncio.Lock()
        self.closed = False

    async def open(self) -> None:
        """Connect now.

        Raises:
            JournalError: that cannot be done.
        """
        connection = await connect(self.address)
        try:
            await self._begin(connection)
        except BaseException as error:
            connection.terminate()
            if isinstance(error, asyncpg_errors()):
                raise JournalError(sentence(error, self.address)) from error
            raise
        self._connection = connection

    async def use(self, work: Callable[[Any], Awaitable[T]], *, again: bool = True) -> T:
        """Do something with the connection.

        Args:
            work: what; it ends at the first error of the database.
            again: do it again where the connection was lost meanwhile.

        Raises:
            Overtaken: the connection was lost meanwhile, and it was not to be done again.
            JournalClosed: it is closed.
            JournalError: the server cannot be reached.
        """
        async with self._turn:
            while True:
                if self._connection is None or self._connection.is_closed():
                    await self._reopen()
                try:
                    return await work(self._connection)
                except asyncpg_errors(OSError) as error:
                    if not lost(error):
                        raise
                    self._connection.terminate()
                    if not again:
                        raise Overtaken from error

    async def _reopen(self) -> None:
        for tries in range(RECONNECT_TRIES):
            if self.closed:
                raise JournalClosed(f"The journal is closed ({self.address.place}).")
            try:
                return await self.open()
            except JournalLocked:
                raise
            except JournalError:
                if tries + 1 == RECONNECT_TRIES:
                    raise
            await self._clock.sleep(RECONNECT_WAIT_S)
        return None

    async def close(self) -> None:
        """End the connection; what waits for it hears that it is closed."""
        self.closed = True
        async with self._turn:
            connection, self._connection = self._connection, None
            if connection is not None and not connection.is_closed():
                try:
                    await connection.close(timeout=5)
                except asyncpg_errors(OSError, TimeoutError):
                    connection.terminate()


class BlockingLink:
    """A link for threads that may wait; its loop runs in the thread that uses it. See `Link`."""

    def __init__(self, address: Address, clock: Clock, begin: Callable[[Any], Awaitable[None]]) -> None:
        self._make = partial(Link, address, clock, begin)
        self._turn = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._link: Link

    def use(self, work: Callable[[Any], Awaitable[T]], *, again: bool = True) -> T:
        """Do something with the connection; see `Link.use`."""
        with self._turn:
            if self._loop is None:
                self._loop, self._link = asyncio.new_event_loop(), self._make()
            return _blocking(self._loop, self._link.use(work, again=again))

    def close(self) -> None:
        """End the connection; it begins anew where it is used again."""
        if self._loop is not None:
            self._link.closed = True  # so that who waits for a lost server does not wait on
        with self._turn:
            loop, self._loop = self._loop, None
            if loop is not None:
                _blocking(loop, self._link.close())
                loop.close()


def _blocking(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Do something in a loop that stands still; in another thread where this one has a loop that runs."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return loop.run_until_complete(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(loop.run_until_complete, work).result()


class PostgresLedger:
    """Writes as the only user of a link."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def insert(self, rows: Sequence[Row], after: int) -> None:
        """Keep events, all or none; see `Ledger`."""
        columns = [list(column) for column in zip(*rows, strict=True)]

        async def keep(connection: Any) -> bool:
            return bool(await connection.fetch(_INSERT, after, len(rows), *columns))

        if not await self._written(keep, again=False):
            raise Overtaken

    async def execute(self, statements: Sequence[Statement]) -> None:
        """Run statements one by one; see `Ledger`."""

        async def run(connection: Any) -> None:
            for sql, parameters in statements:
                await connection.execute(numbered(sql), *parameters)

        await self._written(run)

    async def kept(self, events: Sequence[Event]) -> list[Event] | None:
        """The same events with their places where all of them are there; see `Ledger`."""
        sql = (
            "select stream || ':' || version, hash, seq from events join unnest($1::text[], $2::bigint[]) "
            "as those(stream, version) using (stream, version)"
        )
        streams, versions = [event.stream for event in events], [event.version for event in events]
        rows = await self._written(lambda connection: connection.fetch(sql, streams, versions))
        places = {(ref, digest): seq for ref, digest, seq in rows}
        answer = [placed(event, places.get((event.ref, event.hash), 0)) for event in events]
        return answer if all(event.seq for event in answer) else None

    async def missed(self, after: int) -> list[Event]:
        """What others wrote behind a place; see `Ledger`."""
        sql = f"select {COLUMNS} from events where seq > $1 order by seq limit {MISSED}"
        rows = await self._written(lambda connection: connection.fetch(sql, after))
        return [to_event(cast("Row", tuple(row))) for row in rows]

    async def _written(self, work: Callable[[Any], Awaitable[T]], *, again: bool = True) -> T:
        """Do it, and say what goes wrong in the journal's words."""
        try:
            return await self._link.use(work, again=again)
        except asyncpg_errors(UnicodeEncodeError, OverflowError) as error:
            code = str(getattr(error, "sqlstate", None) or "")
            if code.startswith("40"):  # another's transaction was in the way
                raise Overtaken from error
            if not code or code.startswith(("22", "23")):
                raise JournalRefused(
                    f"What was to be written cannot be stored ({error}); nothing of this batch was written."
                ) from error
            said = sentence(error, self._link.address)
            raise JournalWriteError(
                f"The journal could not be written; nothing of this batch was written. {said}"
            ) from error
        except JournalWriteError:
            raise
        except JournalError as error:
            raise JournalWriteError(f"The journal could not be written. {error}") from error


class PostgresDatabase:
    """A schema, read through a connection of its own.

    Args:
        address: the database.
        clock: for waiting.
        listen: whether to hear of what other processes write.
    """

    dialect = Dialect(
        "json_array_elements_text(cast(? as json)) names(value)",
        "json_each_text(cast(? as json)) places",
        "kind",
        "s.state",
    )
    path = None

    def __init__(self, address: Address, clock: Clock, *, listen: bool) -> None:
        self.address, self._listen = address, listen
        self.link = Link(address, clock, self._begin)
        self.told: Callable[[], object] = lambda: None
        """Called when there may be news."""
        self.resources = AsyncExitStack()

    @property
    def place(self) -> str:
        """The URL without secrets."""
        return self.address.place

    async def _begin(self, connection: Any) -> None:
        if not await check_version(connection, self.address):
            raise missing(self.address)
        await connection.execute("set default_transaction_read_only = on")
        if self._listen:
            await connection.add_listener(self.address.schema, lambda *_: self.told())
            # What was written while the connection was lost is told of by nothing else.
            connection.add_termination_listener(lambda _: self.told())

    async def fetch(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """All rows of a query; see `Database`."""
        try:
            rows = await self.link.use(lambda connection: connection.fetch(numbered(sql), *parameters))
        except asyncpg_errors() as error:
            raise JournalReadError(sentence(error, self.address)) from error
        except JournalClosed:
            raise
        except JournalError as error:
            raise JournalReadError(str(error)) from error
        return [tuple(row) for row in rows]

    async def news(self, told: asyncio.Event) -> None:
        """Wait until the server tells of some."""
        await told.wait()

    async def last_given_seq(self) -> int:
        """As the row says that gives the places out."""
        ((seq,),) = await self.fetch("select last_seq from journal", ())
        return int(seq)

    async def damage(self) -> str:
        """Nothing: the server checks its own pages."""
        return ""


@lru_cache(maxsize=256)
@lru_cache(1_000)
def numbered(sql: str) -> str:
    """SQL with `$1`, `$2` … for its question marks."""
    count = iter(range(1, 10_000))
    return re.sub(r"\?", lambda _: f"${next(count)}", sql)


async def open_postgres(
    address: Address,
    clock: Clock,
    *,
    create: bool = True,
    read_only: bool = False,
    shared: bool = False,
    lock: WriterLock | None = None,
) -> StoredJournal:
    """Open a journal in PostgreSQL.

    Args:
        address: where it is.
        clock: for waiting.
        create: make a new one when there is none; never with `read_only`.
        read_only: read while other processes write.
        shared: let other processes write at the same time; each should write to streams of its own.
        lock: let go behind it, or at once where it cannot be opened.

    Raises:
        JournalMissing: there is none, and none was to be made.
        JournalLocked: another engine writes to it, and it was not to be shared.
        JournalTooNew: a newer Pilothouse made its tables.
        JournalError: it cannot be used as it is; the message says why and what to do.
    """
    database = PostgresDatabase(address, clock, listen=read_only or shared)
    store = StoredJournal(database)
    database.told = store.tell
    name = writer_name(os.getpid(), clock.now())
    if lock is not None:
        database.resources.callback(lock.release)
    database.resources.push_async_callback(database.link.close)
    try:
        if not read_only:

            async def begin(connection: Any) -> None:
                await prepare(connection, address, clock.now(), create=create)
                if not shared:
                    await _lock(connection, address, name)

            writing = Link(address, clock, begin)
            database.resources.push_async_callback(writing.close)
            await writing.open()
            await database.link.open()
            await store.begin_writing(PostgresLedger(writing))
        else:
            await database.link.open()
            store.writers = await store.read_writers() if await store.head_seq() else ()
    except BaseException:
        await database.resources.aclose()
        raise
    return store


_END_HOLDER = """
select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted and objsubid = 1
and database = (select oid from pg_database where datname = current_database())
and (classid::bigint << 32) | objid::bigint = $1
"""


async def _lock(connection: Any, address: Address, name: str) -> None:
    """Be the only one that writes, until this connection ends.

    One that was cut may live on at the server and hold the lock for this same writer, or for one whose lease
    ran out: it is ended. So no connection writes that was made before a newer lease was taken, and none that
    is made later finds its old lease valid.

    Raises:
        JournalLocked: another is.
        LeaseLost: only the holder of a lease may, and it is not held any more.
    """
    if address.lease is not None:
        await require(connection, address.lease)
    await _take_lock(connection, address, name)
    if address.lease is not None:
        await require(connection, address.lease)
    with suppress(*asyncpg_errors()):  # it only says who it is
        await connection.execute(
            "insert into meta values('writer', $1) on conflict(key) do update set value = $1", name
        )


async def _take_lock(connection: Any, address: Address, name: str) -> None:
    if not await connection.fetchval("select pg_try_advisory_lock($1)", address.lock):
        writer = await connection.fetchval("select value from meta where key = 'writer'") or ""
        if writer == name or address.lease is not None:
            await connection.fetch(_END_HOLDER, address.lock)
            await connection.execute("select pg_advisory_lock($1)", address.lock)
            return
        words = writer.split()
        pid, host, since = words if len(words) == 3 else ("unknown", "", "an unknown time")
        who = pid if host == socket.gethostname() else f"{pid} on {host}"
        raise JournalLocked(address.place, who, since)


async def is_empty(address: Address) -> bool:
    """Whether there is no event, or no journal at all.

    Raises:
        JournalError: it cannot be looked at.
    """
    connection = await connect(address)
    try:
        if not await version_of(connection):
            return True
        return not await connection.fetchval("select last_seq from journal")
    except asyncpg_errors() as error:
        raise JournalError(sentence(error, address)) from error
    finally:
        connection.terminate()
