"""The selection graph of a workspace: `graph.db` beside the journal.

It is a projection that can be thrown away and built again: a file that is damaged or of another format is
replaced by an empty one at position 0. One thread holds the only connection that writes, another one a
connection that cannot (data-stack spec §1).
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self, TypeVar

from engine.selection.errors import GraphUnavailable
from engine.selection.graph import FrameworkGraph
from engine.selection.row_graph import RowGraph, Rows
from engine.selection.sqlite_rows import FORMAT, SqliteRows, add_functions, create
from engine.selection.turns import Turns

R = TypeVar("R")

DATABASE = "graph.db"
"""The file, in the data directory of a workspace."""


class _Line:
    """One connection in a thread of its own; work runs there in the order in which it was given."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)
        self._connection: sqlite3.Connection | None = None
        self._path = Path()

    async def open(self, path: Path, *, writing: bool) -> None:
        """Open the connection; a writing one makes the database anew where it is of no use."""
        self._path = path
        await self._in_thread(lambda: self._open(path, writing))

    def _open(self, path: Path, writing: bool) -> None:
        self._connection = _usable(path) if writing else _connected(path, writing=False)

    async def run(self, work: Callable[[sqlite3.Connection], R]) -> R:
        """Do work in the thread; what has begun there is finished, even if nobody waits for it any more.

        Raises:
            GraphUnavailable: SQLite refused, or the graph is closed.
        """
        if self._connection is None:
            raise GraphUnavailable("The selection graph is closed; open it again.")
        connection = self._connection
        return await self._in_thread(lambda: work(connection))

    async def _in_thread(self, work: Callable[[], R]) -> R:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except (sqlite3.Error, OSError) as error:
            raise GraphUnavailable(
                f"{self._path} could not be used ({error}): check the room on the disk and who may write "
                "there; the file can be deleted, it is built again."
            ) from error

    async def close(self) -> None:
        """Close the connection behind all work, and end the thread."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await asyncio.shield(self._in_thread(connection.close))
        self._thread.shutdown(wait=False)


class SqliteGraph(RowGraph):
    """The selection graph in a SQLite file; `open` makes one."""

    def __init__(self) -> None:
        self._writer = _Line("graph-write")
        self._reader = _Line("graph-read")
        self._turns = Turns()

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Open a graph, or make an empty one.

        Args:
            path: the file, `.pilothouse/graph.db` of a workspace.

        Raises:
            GraphUnavailable: there is no room, or the file may not be written.
        """
        graph = cls()
        try:
            await graph._writer.open(path, writing=True)
            await graph._reader.open(path, writing=False)
        except BaseException:
            await graph.close()
            raise
        return graph

    async def close(self) -> None:
        """See `FrameworkGraph.close`."""
        await self._reader.close()
        await self._writer.close()

    async def _read(self, work: Callable[[Rows], R]) -> R:
        return await self._reader.run(lambda connection: _whole(connection, "begin", work))

    async def _write(self, work: Callable[[Rows], None]) -> None:
        async with self._turns.turn():
            await self._writer.run(lambda connection: _whole(connection, "begin immediate", work))

    @asynccontextmanager
    async def trial(self) -> AsyncIterator[FrameworkGraph]:
        """See `FrameworkGraph.trial`."""
        async with self._begun() as unit:
            yield unit

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[FrameworkGraph]:
        """See `FrameworkGraph.transaction`."""
        async with self._begun() as unit:
            yield unit
            await self._writer.run(lambda connection: connection.execute("commit"))

    @asynccontextmanager
    async def _begun(self) -> AsyncIterator[_Unit]:
        """A transaction that is taken back unless it was committed, whatever ends it."""
        async with self._turns.turn():
            unit = _Unit(self._writer)
            try:
                await self._writer.run(lambda connection: connection.execute("begin immediate"))
                yield unit
            finally:
                unit.ended = True
                # In the thread's line before anything that others write, even if waiting for it is cut off.
                await asyncio.shield(self._writer.run(_roll_back))


class _Unit(RowGraph):
    """The graph within an open transaction."""

    def __init__(self, writer: _Line) -> None:
        self._writer = writer
        self.ended = False

    async def _read(self, work: Callable[[Rows], R]) -> R:
        self._check()
        return await self._writer.run(lambda connection: work(SqliteRows(connection)))

    async def _write(self, work: Callable[[Rows], None]) -> None:
        self._check()
        await self._writer.run(lambda connection: _within(connection, work))

    def _check(self) -> None:
        if self.ended:
            raise GraphUnavailable("This transaction has ended; use the graph itself.")

    def trial(self) -> contextlib.AbstractAsyncContextManager[FrameworkGraph]:
        """There is none within another."""
        raise GraphUnavailable("A transaction holds no other; end it first.")

    transaction = trial

    async def close(self) -> None:
        """Nothing to give up: it ends with its block."""


def _whole(connection: sqlite3.Connection, begin: str, work: Callable[[Rows], R]) -> R:
    """Do work in a transaction of its own."""
    connection.execute(begin)
    try:
        answer = work(SqliteRows(connection))
        connection.execute("commit")
    finally:
        _roll_back(connection)
    return answer


def _within(connection: sqlite3.Connection, work: Callable[[Rows], None]) -> None:
    """Do work in the open transaction, all of it or none."""
    connection.execute("savepoint part")
    try:
        work(SqliteRows(connection))
    except BaseException:
        connection.execute("rollback to part")
        raise
    finally:
        connection.execute("release part")


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("rollback")


def _connected(path: Path, *, writing: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
    try:
        # What counts stands in the journal, so a power cut may take the last rows.
        pragmas = ["journal_mode = wal", "synchronous = normal"] if writing else ["query_only = on"]
        for pragma in (*pragmas, "temp_store = memory"):
            connection.execute(f"pragma {pragma}")
        add_functions(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _usable(path: Path) -> sqlite3.Connection:
    """A writing connection to the database, to an empty one where it was damaged or of another format."""
    if path.exists() and (found := _sound(path)) is not None:
        return found
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    connection = _connected(path, writing=True)
    try:
        connection.execute("begin immediate")
        create(connection)
        connection.execute("commit")
    except BaseException:
        connection.close()
        raise
    return connection


def _sound(path: Path) -> sqlite3.Connection | None:
    """A connection to a database that is whole and of this format."""
    connection: sqlite3.Connection | None = None
    try:
        connection = _connected(path, writing=True)
        whole = connection.execute("pragma quick_check(1)").fetchone() == ("ok",)
        if whole and connection.execute("select 1 from sqlite_schema where name = 'about'").fetchone():
            form = connection.execute("select value from about where key = 'format'").fetchone()
            if form == (FORMAT,):
                return connection
    except sqlite3.OperationalError:
        # Locked, or out of reach: that says nothing against the file.
        if connection is not None:
            connection.close()
        raise
    except sqlite3.DatabaseError:
        pass
    if connection is not None:
        connection.close()
    return None
