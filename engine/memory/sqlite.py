"""Memory in SQLite: `memory.db` and `vectors.db` in the data directory of a workspace.

A vector depends on its text alone, so vectors have a file of their own: tables that are built again find
theirs.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from engine.core.store.places import is_plain, is_untouched, note_closed, note_open, remove_cache
from engine.core.store.port import DATA_DIRECTORY
from engine.memory.connection import Connection, MemoryRow, TablesError, ValueRefused, transaction
from engine.memory.database import NOTE_ABOUT, Projection, head_of
from engine.memory.errors import MemoryUnavailable
from engine.memory.tables import FORMAT, Columns, create
from engine.memory.vectors import VECTOR_TABLES, StoredLikeness, VectorWriter
from engine.memory.words import TOKENIZER

DATABASE, VECTORS = "memory.db", "vectors.db"
"""The tables and the vectors, in the data directory."""
VECTORS_FORMAT = 1

COLUMNS = Columns("integer primary key", "integer", "real", "text", "blob", "blob", " strict")
_WORDS = (
    f"""create virtual table words using fts5(
        content, description, reasoning, tags, scope, content = '', tokenize = "{TOKENIZER}"
    )""",
    "create virtual table vocabulary using fts5vocab(words, 'row')",
)


@contextmanager
def _refusals() -> Generator[None]:
    """SQLite's errors as those of the port."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise TablesError(str(error)) from error
    except (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError) as error:
        raise ValueRefused(str(error)) from error
    except sqlite3.ProgrammingError as error:
        raise (TablesError if "closed" in str(error) else ValueRefused)(str(error)) from error
    except sqlite3.Error as error:
        raise TablesError(str(error)) from error


class SqliteConnection:
    """A connection to a file; see `Connection`."""

    unindexed = "+"
    refused_late = False

    def __init__(self, path: Path, *, writing: bool) -> None:
        with _refusals():
            self.inner = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
            self.inner.row_factory = sqlite3.Row
            self.words = SqliteWords(self.inner)
            self.known: dict[tuple[str, ...], Any] = {}
            self._begin = "begin immediate" if writing else "begin"
            # The journal holds what counts: what a power cut takes here is folded again.
            writes = ("journal_mode = wal", "synchronous = normal", "journal_size_limit = 67108864")
            kind = writes if writing else ("query_only = on",)
            for pragma in ("temp_store = memory", "cache_size = -32768", *kind):
                self.inner.execute(f"pragma {pragma}")

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.inner.in_transaction

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Sequence[MemoryRow]:
        """All rows that a query answers; see `Connection`."""
        with _refusals():
            return cast("list[MemoryRow]", self.inner.execute(sql, parameters).fetchall())

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Do something; see `Connection`."""
        with _refusals():
            self.inner.execute(sql, parameters)

    def run_many(self, sql: str, parameters: Sequence[Sequence[Any]]) -> None:
        """Do something for each of these; see `Connection`."""
        with _refusals():
            self.inner.executemany(sql, parameters)

    def add(self, sql: str, parameters: Sequence[Any], key: str = "row") -> int:
        """Insert a row and answer its number; see `Connection`."""
        with _refusals():
            cursor = self.inner.execute(sql, parameters)
            return int(cursor.lastrowid or 0) if cursor.rowcount else 0

    @staticmethod
    def bits(content: bytes) -> bytes:
        """Signs as they are kept; see `Connection`."""
        return content

    def expect_signs(self, embedder: int, bits: int) -> None:
        """Do nothing: readers have signs in memory; see `Connection`."""

    def begin(self, *, careful: bool = False) -> None:
        """Begin a transaction; see `Connection`."""
        self.run(self._begin)

    def settle(self) -> None:
        """Do nothing: nothing waits; see `Connection`."""

    def close(self) -> None:
        """Close it; see `Connection`."""
        with _refusals():
            self.inner.close()


class SqliteWords:
    """FTS5; see `WordIndex`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, row: int, texts: Sequence[str]) -> None:
        """Index the texts of a row; see `WordIndex`."""
        with _refusals():
            self._connection.execute(
                "insert into words(rowid, content, description, reasoning, tags, scope) "
                "values(?, ?, ?, ?, ?, ?)",
                (row, *texts),
            )

    def ranked(self, expression: str, limit: int) -> list[tuple[int, float]]:
        """The rows that fit best; see `WordIndex`."""
        with _refusals():
            rows = self._connection.execute(
                "select rowid, rank from words where words match ? and rank match "
                "'bm25(1.0, 1.0, 1.0, 1.0, 0.0)' order by rank limit ?",
                (expression, limit),
            ).fetchall()
        return [(int(row), -float(rank)) for row, rank in rows]

    def matching(self, expression: str) -> list[int]:
        """All rows that fit; see `WordIndex`."""
        with _refusals():
            rows = self._connection.execute("select rowid from words where words match ?", (expression,))
            return [row for (row,) in rows]


class FileMemory:
    """The databases of a workspace; see `MemoryDatabase`."""

    name = DATABASE

    def __init__(self, workspace: Path) -> None:
        self.path, self._vectors = (workspace / DATA_DIRECTORY / name for name in (DATABASE, VECTORS))

    def open(self, known: Callable[[int], str]) -> Projection:
        """Open the tables to write to them; see `MemoryDatabase`."""
        path, there = self.path, os.path.lexists(self.path)
        try:
            # One that was changed since it was closed may say anything and still be a sound database.
            tables = _usable(path, writing=True) if is_untouched(path) is not False else None
            if tables is not None:
                connection, (version, digest) = tables
                if known(version) == digest:
                    note_open(path)
                    return Projection(connection, closed=lambda: note_closed(path))
                connection.close()
            remove_cache(path)
            note = f"{path.name} could not be used; it was built again from the journal" if there else ""
            return Projection(_filled(path), note, lambda: note_closed(path))
        except (TablesError, OSError) as error:
            raise MemoryUnavailable(
                f"{path} cannot be used ({error}): check the space on the disk and who may write there."
            ) from error

    def reader(self) -> Connection:
        """A connection for reading; see `MemoryDatabase`."""
        return SqliteConnection(self.path, writing=False)

    def readable(self) -> tuple[Connection, tuple[int, str]] | None:
        """A connection for reading, and its head; None also where it was changed since it was closed."""
        return _usable(self.path, writing=False) if is_untouched(self.path) is not False else None

    def vectors(self, embedder: str) -> VectorWriter:
        """Keeps the vectors of an embedder; see `MemoryDatabase`."""
        path = self._vectors
        if is_untouched(path) is False or not is_plain(path):
            remove_cache(path)
        try:
            connection = self._opened_vectors()
        except TablesError:
            remove_cache(path)
            connection = self._opened_vectors()
        # Attached to the connection that writes, memories would be locked by each of its transactions.
        memories = SqliteConnection(path, writing=False)
        memories.run("attach ? as memory", (str(self.path),))

        def closed() -> None:
            memories.close()
            note_closed(path)

        return VectorWriter(connection, memories, "memory.memories", embedder, closed)

    def _opened_vectors(self) -> SqliteConnection:
        note_open(self._vectors)
        connection = SqliteConnection(self._vectors, writing=True)
        try:
            if _vectors_format(connection) == 0:
                with transaction(connection):
                    for statement in (
                        *COLUMNS.written(VECTOR_TABLES),
                        f"pragma user_version = {VECTORS_FORMAT}",
                    ):
                        connection.run(statement)
            sound = connection.rows("pragma quick_check(1)")[0][0] == "ok"
            if not sound or _vectors_format(connection) != VECTORS_FORMAT:
                raise TablesError("it is damaged, or of another format")  # noqa: TRY301 - closes below
        except BaseException:
            connection.close()  # which ends what it began, and what it has locked
            raise
        return connection

    def likeness(self, embedder: str) -> StoredLikeness:
        """The vectors of an embedder; see `MemoryDatabase`."""
        return StoredLikeness(FileVectors(self._vectors), embedder)


def temporary_tables() -> Projection:
    """Empty tables that last as long as their connection."""
    return Projection(_filled(Path(":memory:")))


def _filled(path: Path) -> SqliteConnection:
    connection = SqliteConnection(path, writing=True)
    with transaction(connection):
        create(connection, COLUMNS, _WORDS)
        connection.run(NOTE_ABOUT, ("format", str(FORMAT)))
    return connection


def _usable(path: Path, *, writing: bool) -> tuple[SqliteConnection, tuple[int, str]] | None:
    """A connection to a sound database of this format, with its head; None where there is none such."""
    if not path.is_file() or not is_plain(path):
        return None
    connection: SqliteConnection | None = None
    try:
        connection = SqliteConnection(path, writing=writing)
        sound = not writing or connection.rows("pragma quick_check(1)")[0][0] == "ok"
        form = connection.rows("select value from meta where key = 'format'")
        if sound and form and form[0][0] == str(FORMAT):
            return connection, head_of(connection)
    except (TablesError, ValueError) as error:
        if writing and isinstance(error, TablesError) and "lock" in str(error):
            raise
    if connection is not None:
        connection.close()
    return None


def _vectors_format(connection: Connection) -> int:
    return int(connection.rows("pragma user_version")[0][0])


class FileVectors:
    """The file of vectors, opened where it is; one that takes its place is opened instead."""

    name = VECTORS
    compares = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: SqliteConnection | None = None
        self._place = 0
        """The inode of the file that is open."""

    def opened(self) -> tuple[Connection | None, bool]:
        """The connection, None where there is none to be read, and whether it is another one than before."""
        try:
            place = self._path.lstat().st_ino
        except FileNotFoundError:
            return None, False
        if place == self._place:
            return self._connection, False
        self.close()
        if not is_plain(self._path) or is_untouched(self._path) is False:
            return None, True
        connection = SqliteConnection(self._path, writing=False)
        if _vectors_format(connection) != VECTORS_FORMAT:
            connection.close()
            return None, True
        self._connection, self._place = connection, place
        return connection, True

    def candidates(self, embedder: int, signs: bytes, count: int) -> list[int]:
        """Never asked for, as signs are not compared here; see `VectorSource`."""
        raise NotImplementedError

    def close(self) -> None:
        """Close it."""
        self._place = 0
        if self._connection is not None:
            self._connection.close()
            self._connection = None
