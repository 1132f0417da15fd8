"""The shape of the journal's database, events as rows, and torn ends of its log.

A database is only ever looked at through SQLite, never opened as a plain file: closing such a
descriptor would drop the POSIX locks that SQLite holds for this process.

The log is SQLite's write-ahead log: a header and frames, each with the header's salts and a running checksum;
a transaction ends with a frame that tells the size of the database. SQLite passes over a torn end in silence:
what stands behind the last whole transaction and bears the present salts was cut off, damaged, or never
finished. The format is SQLite's "WAL File Format".
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from engine.core.journal import (
    Event,
    JournalCorrupt,
    JournalReadError,
    JournalTooNew,
    JournalWriteError,
    canonical,
)
from engine.core.store.port import Row

COLUMNS = "seq, stream, version, at, tick, actor, causes, kind, body, hash"


def insert(rows: int) -> str:
    """The statement that inserts this many rows, all or none of them."""
    return f"insert into events({COLUMNS}) values " + ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"] * rows)


def to_row(event: Event) -> Row:
    """The row that keeps an event which has its place."""
    stream, version, at, tick, actor, causes, kind, body, digest, seq = event
    return seq, stream, version, at, tick, actor, _causes_text(causes), kind, body, digest


def placed(event: Event, seq: int) -> Event:
    """The event with its place in the workspace."""
    return Event(*event[:-1], seq)


def to_event(row: Row) -> Event:
    """The event a row keeps.

    Raises:
        ValueError: the causes are not a JSON list of texts.
    """
    seq, stream, version, at, tick, actor, causes, kind, body, digest = row
    return Event(stream, version, at, tick, actor, _causes(causes), kind, body, digest, seq)


def _causes_text(causes: tuple[str, ...]) -> str:
    """The causes as canonical JSON."""
    if not causes:
        return "[]"
    # Nearly all are plain references; going round the encoder saves a tenth of the cost of an event.
    text = '","'.join(causes)
    plain = (
        text.isascii() and text.isprintable() and "\\" not in text and text.count('"') == 2 * len(causes) - 2
    )
    return f'["{text}"]' if plain else canonical(causes)


def _causes(text: str) -> tuple[str, ...]:
    if text == "[]":
        return ()
    causes = json.loads(text)
    if not isinstance(causes, list) or not all(isinstance(cause, str) for cause in causes):
        raise ValueError("causes are not a list of texts")
    return tuple(causes)


SCHEMA_VERSION = 1
"""The version this code reads and writes."""
_TABLES = (
    "create table if not exists meta(key text primary key, value text not null) strict",
    # autoincrement makes SQLite remember the last seq, so that verification sees rows cut off the end
    """create table if not exists events(
        seq integer primary key autoincrement,
        stream text not null,
        version integer not null,
        at text not null,
        tick integer not null,
        actor text not null,
        causes text not null,
        kind text not null,
        body text not null,
        hash text not null,
        unique(stream, version)
    ) strict""",
    "create index if not exists events_by_kind on events(kind)",
    """create table if not exists snapshots(
        stream text not null,
        version integer not null,
        format integer not null,
        state text not null,
        primary key(stream, version)
    ) strict""",
)
_SHAPE = (
    "select key, value from meta limit 0",
    "select seq, stream, version, at, tick, actor, causes, kind, body, hash from events limit 0",
    "select stream, version, format, state from snapshots limit 0",
)


def inspect(path: Path, *, whole: bool = True) -> bool:
    """Whether a sound database has a journal, or nothing at all; not a byte of it is changed.

    Args:
        path: the database file.
        whole: look at every page; what is only read, or is as it was closed, need not be looked at.

    Raises:
        JournalCorrupt: it is not SQLite, is damaged, or is some other program's database.
        JournalTooNew: a newer Pilothouse wrote it.
        JournalReadError: it cannot be opened or is locked.
    """
    with _reading(path), closing(_connect_read_only(path)) as connection:
        findings = [str(row[0]) for row in connection.execute("pragma quick_check(1)")] if whole else ["ok"]
        if findings != ["ok"]:
            raise JournalCorrupt(path, "; ".join(findings))
        tables = _tables(connection)
        version = _version(connection, tables)
        if version > SCHEMA_VERSION:
            raise JournalTooNew(path, version, SCHEMA_VERSION)
        if tables and "events" not in tables:
            raise JournalCorrupt(path, "it is a database of some other program")
        if tables:
            _check_shape(connection, path)
        return bool(tables)


def require_journal(path: Path) -> None:
    """Accept only a journal that a reader can read.

    Raises:
        JournalError: as `inspect`, or there is nothing in it.
    """
    if not inspect(path, whole=False):
        raise JournalCorrupt(path, "there is nothing in it")


def prepare(path: Path, now: str, *, whole: bool = True) -> None:
    """See that there is a journal of the current schema at `path`; make it where there is none.

    Args:
        path: the database file.
        now: the current time, recorded as the time of creation.
        whole: look at every page, as it was not closed in good order or was changed since.

    Raises:
        JournalWriteError: a new one could not be created.
    """
    if not path.exists() or not inspect(path, whole=whole):
        _create(path, now)


def _create(path: Path, now: str) -> None:
    """Make a journal beside its place and move it there: a kill meanwhile leaves none, never half of one."""
    fresh = path.with_name(f"{path.name}.new")
    try:
        for suffix in ("", "-journal", "-wal", "-shm"):
            fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)
        with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
            create_tables(connection, fresh, now)
        fresh.replace(path)
        sync_directory(path.parent)
    except (sqlite3.Error, OSError) as error:
        raise JournalWriteError(
            f"{path} could not be created ({error}): check the room on the disk and who may write there."
        ) from error


def create_tables(connection: sqlite3.Connection, path: Path, now: str) -> None:
    """Make a journal of an empty database, in one transaction."""
    connection.execute("begin immediate")
    for statement in _TABLES:
        connection.execute(statement)
    _check_shape(connection, path)
    connection.execute("insert or ignore into meta values('created', ?)", (now,))
    connection.execute("insert or replace into meta values('schema_version', ?)", (str(SCHEMA_VERSION),))
    connection.execute(f"pragma user_version = {SCHEMA_VERSION}")
    connection.execute("commit")
    # A kill while the mode of a journal in its place is switched would leave what no reader can open.
    connection.execute("pragma journal_mode = wal")


def sync_directory(path: Path) -> None:
    """Press the names in a directory to the disk."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _check_shape(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a journal that lacks a table or a column this code uses."""
    try:
        for query in _SHAPE:
            connection.execute(query)
    except sqlite3.OperationalError as error:
        raise JournalCorrupt(path, str(error)) from error


def _tables(connection: sqlite3.Connection) -> set[str]:
    names = connection.execute(
        "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'"
    )
    return {str(name) for (name,) in names}


def _version(connection: sqlite3.Connection, tables: set[str]) -> int:
    """The larger of the two places where the version is written, so that a newer journal never passes."""
    (version,) = connection.execute("pragma user_version").fetchone()
    if "meta" in tables:
        row = connection.execute("select value from meta where key = 'schema_version'").fetchone()
        if row is not None and str(row[0]).isdecimal():
            version = max(version, int(row[0]))
    return int(version)


def _connect_read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(read_only_uri(path), uri=True, isolation_level=None, timeout=5)


def read_only_uri(path: Path) -> str:
    """How SQLite is told to open a file without ever writing to it or checkpointing its log."""
    return f"{path.absolute().as_uri()}?mode=ro"


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into the journal's."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise JournalReadError(
            f"{path} cannot be read just now ({error}): check who may read it and what else has it open."
        ) from error
    except sqlite3.DatabaseError as error:
        raise JournalCorrupt(path, str(error)) from error


_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}
"""To the order of bytes in which its checksums are made."""
_WORD = 0xFFFFFFFF


def torn_end(log: Path) -> tuple[int, bool]:
    """Bytes at the end of a log that are no whole transaction; 0 when there are none, or no log.

    And whether the end of a transaction is among them: then events may be lost. Blocking; reads the whole
    log, which is there only where the last session did not end in good order.
    """
    try:
        content = log.read_bytes()
    except OSError:
        return 0, False
    if len(content) < _HEADER.size:
        return 0, False
    magic, _version, page, _number, *salts, first, second = _HEADER.unpack_from(content)
    order = _MAGIC.get(magic)
    if order is None or not 512 <= page <= 65536:
        return 0, True  # SQLite passes the whole log over
    sums = (first, second)
    whole = at = _HEADER.size
    while at + _FRAME.size <= len(content):
        _page, size, *theirs = _FRAME.unpack_from(content, at)
        if theirs[:2] != salts:
            break  # of an earlier round through the log
        end = at + _FRAME.size + page
        sums = _checked(content[at : at + 8] + content[at + _FRAME.size : end], order, sums)
        if end > len(content) or tuple(theirs[2:]) != sums:
            return _torn_from(content, whole, page, salts)
        at = end
        whole = at if size else whole
    return at - whole, False


def _torn_from(content: bytes, begin: int, page: int, salts: list[int]) -> tuple[int, bool]:
    """How many bytes behind a place have the present salts, and whether a transaction ends in them."""
    end, ends = begin, False
    while (
        end + _FRAME.size <= len(content) and list((frame := _FRAME.unpack_from(content, end))[2:4]) == salts
    ):
        end = min(end + _FRAME.size + page, len(content))
        ends = ends or bool(frame[1])
    return end - begin, ends


def _checked(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """The running checksum after some more bytes."""
    sum1, sum2 = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data[: len(data) // 4 * 4])
    for first, second in zip(words[::2], words[1::2], strict=False):
        sum1 = (sum1 + first + sum2) & _WORD
        sum2 = (sum2 + second + sum1) & _WORD
    return sum1, sum2
