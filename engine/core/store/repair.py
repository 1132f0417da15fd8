"""What is done about a journal that is not what was written: found out at opening, repaired by the operator.

An opening builds upon a journal only where it is sound. Where only what SQLite keeps beside the events is
damaged (indexes, kept states, free pages), the events are copied into a new database, which loses nothing. A
repair writes a new database too, so the old files are always kept, under other names. Blocking.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import cast

from engine.core.actions import ActionFinished
from engine.core.agents import AgentCreated, WorkspaceCreated
from engine.core.events import payload_of
from engine.core.fold import fold
from engine.core.journal import (
    WORKSPACE,
    BlobError,
    Event,
    JournalCorrupt,
    JournalError,
    JournalMissing,
    JournalUnsound,
    Payload,
    chain_hash,
    of_agent,
)
from engine.core.reasons import Reason
from engine.core.soundness import BreakAccepted, JournalRestored
from engine.core.store.blobs import BlobStore, blob_named
from engine.core.store.places import (
    is_untouched,
    lacks_log,
    lost_journal,
    note_closed,
    remove_cache,
    set_aside,
)
from engine.core.store.port import DATA_DIRECTORY, DATABASE, START, Head, Row
from engine.core.store.schema import (
    COLUMNS,
    create_tables,
    insert,
    prepare,
    read_only_uri,
    sync_directory,
    to_event,
    to_row,
)
from engine.core.store.verify import Verification, row_digest, verify_rows
from engine.core.store.writer import WriterLock
from engine.value import dataclass

CACHES = ("memory.db", "vectors.db", "index.db")
"""Databases in the data directory that are built again from the journal."""
NO_LOG = "its log is missing, and the last session did not end in good order: newest events may be lost"
_PROBLEMS = (
    ("Its hash", Reason("journal.hash")),
    ("It has ", Reason("journal.place")),
    ("It names", Reason("journal.causes")),
    ("Its causes", Reason("journal.causes")),
    ("It cannot be read", Reason("journal.unreadable")),
    ("What was accepted", Reason("journal.accepted")),
    ("it is ", Reason("journal.lost")),
    ("there is ", Reason("journal.lost")),
    (NO_LOG, Reason("journal.no-log")),
)
"""How verification begins to say what is wrong, and what is recorded of it."""
_SKIPPED = 50_000
"""Places in a row that are passed over because nothing can be read there, before the search ends."""


def prepare_sound(path: Path, now: str) -> list[str]:
    """See that there is a sound journal at a path; what was put right, in sentences.

    Raises:
        JournalUnsound: it is not what was written; nothing was changed.
        JournalError: as `prepare`.
    """
    if why := lost_journal(path):
        raise JournalUnsound(path, "", why, 0)
    # Before SQLite looks, which may make a log.
    there, untouched, no_log, notes = path.exists(), is_untouched(path), lacks_log(path), []
    try:
        prepare(path, now, whole=untouched is not True)
    except JournalCorrupt as error:
        notes = [_rebuild(path, now, error)]
    if there and untouched is not True:
        check = check_rows(path)
        if not check.ok:
            raise JournalUnsound(path, check.first_bad or "", check.reason, check.events)
        if no_log:
            raise JournalUnsound(path, f"seq {check.events + 1}", NO_LOG, check.events)
    return notes


def check_rows(path: Path) -> Verification:
    """Whether the events of a journal are sound; that it cannot be read is a verdict as well."""
    try:
        with closing(connect_rows(path)) as connection:
            return verify_rows(connection)
    except sqlite3.Error as error:
        return Verification(False, 0, "", "seq 1", f"It cannot be read: {error}")


def _rebuild(path: Path, now: str, error: JournalCorrupt) -> str:
    """Copy sound events out of a database that is damaged beside them, and say so.

    Raises:
        JournalUnsound: the events are not sound either, or it is no journal.
    """
    check = check_rows(path)
    if not check.ok or not check.events:
        problem = error.reason if check.events == 0 else check.reason
        raise JournalUnsound(path, check.first_bad or "", problem, check.events) from error
    with closing(connect_rows(path)) as connection:
        fresh, _ = write_journal(path, now, connection, _rows(connection))
    kept = _swap(path, fresh)
    return (
        f"{path.name} was damaged beside its events ({error.reason}): all {check.events:,} are in a new "
        f"file, and the old one is {kept}"
    )


def look(path: Path) -> Verification:
    """What is wrong with a journal, as an opening sees it.

    Raises:
        JournalError: there is none and never was, or another version wrote it.
    """
    if why := lost_journal(path):
        return Verification(False, 0, "", "", why)
    if not path.exists():
        raise JournalMissing(f"There is no journal at {path}: start an agent there first.")
    no_log, check = lacks_log(path), check_rows(path)
    if check.ok and no_log:
        return Verification(False, check.events, "", f"seq {check.events + 1}", NO_LOG)
    return check


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did."""

    events: int
    """Events in the new journal, the one that tells of the repair included."""
    left: int
    """Events that are in the old file only."""
    kept: str
    """The name of the old file; empty where there was none."""
    event: str
    """The event that tells of the repair."""


def repair(workspace: Path, *, accept: bool, operator: str, at: str) -> tuple[Verification, Repaired]:
    """Repair the journal of a workspace that nothing else has open.

    Args:
        workspace: its directory.
        accept: go on with all that can be read; else back to the newest sound event.
        operator: whose word this is.
        at: the time now.

    Raises:
        JournalLocked: an engine has it open.
        JournalError: it is sound, there is none, or the disk refused; nothing was changed.
    """
    path = workspace / DATA_DIRECTORY / DATABASE
    lock = WriterLock.acquire(path.with_name("lock"), at)
    try:
        check = look(path)
        if check.ok:
            raise JournalError(f"{path} is sound: there is nothing to repair.")
        return check, (accept_break if accept else restore_sound)(path, check, operator=operator, at=at)
    finally:
        lock.release()


def restore_sound(path: Path, check: Verification, *, operator: str, at: str) -> Repaired:
    """Write a new journal that ends with the newest sound event, and put it in the place of the old one.

    Raises:
        JournalError: the disk refused; nothing was changed.
    """
    with closing(_connect_any(path)) as connection:
        rows = _until(_rows(connection), check.events)
        return _replace(path, connection, rows, check, operator, at, accept=False)


def accept_break(path: Path, check: Verification, *, operator: str, at: str) -> Repaired:
    """Write a new journal with all that can be read, sealed as it is, and put it in the place of the old one.

    Raises:
        JournalError: the disk refused; nothing was changed.
    """
    with closing(_connect_any(path)) as connection:
        return _replace(path, connection, _usable(_rows(connection)), check, operator, at, accept=True)


def _replace(
    path: Path,
    old: sqlite3.Connection,
    rows: Iterable[Row],
    check: Verification,
    operator: str,
    at: str,
    *,
    accept: bool,
) -> Repaired:
    kept = f"{path.name}.aside-{hashlib.sha256(at.encode()).hexdigest()[:8]}"
    there = os.path.lexists(path)
    try:
        total = int(old.execute("select count(*) from events").fetchone()[0])
    except sqlite3.Error:
        total = 0
    try:
        fresh, tail = write_journal(path, at, old, rows)
        with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
            left = max(0, total - tail.count)
            writer = Appender(connection, tail, f"operator:{operator}", at)
            if WORKSPACE not in tail.heads:
                writer.append(WorkspaceCreated(workspace=f"workspace-{tail.digest[:8]}"))
            first, problem = check.first_bad or "", _problem(check)
            if accept:
                lost = tuple(sorted(_lost_blobs(connection, path)))
                told: Payload = BreakAccepted(
                    event=first,
                    problem=problem,
                    upto=tail.seq,
                    digest=tail.digest,
                    heads={stream: (head.version, head.hash) for stream, head in tail.heads.items()},
                    lost=lost,
                    left=left,
                    kept=kept if there else "",
                )
            else:
                told = JournalRestored(
                    event=first, problem=problem, upto=tail.seq, kept=kept if there else ""
                )
            event = writer.append(told)
            connection.execute("pragma wal_checkpoint(truncate)")
        old.close()
        _swap(path, fresh, kept)
        for name in CACHES:
            remove_cache(path.with_name(name))
        note_closed(path)
    except (OSError, sqlite3.Error) as error:
        raise JournalError(
            f"{path} could not be repaired ({error}): check the room on the disk and who may write there."
        ) from error
    return Repaired(tail.seq, left, kept if there else "", event.ref)


def _problem(check: Verification) -> Reason:
    """What is wrong, as it is recorded."""
    matches = (reason for begin, reason in _PROBLEMS if check.reason.startswith(begin))
    return next(matches, Reason("journal.missing"))


# ------------------------------------------------------------------ rows of a damaged database


def connect_rows(path: Path) -> sqlite3.Connection:
    """The journal for reading, also where its schema is damaged."""
    uri = read_only_uri(path)
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=5, check_same_thread=False)
    connection.execute("pragma writable_schema = on")
    return connection


def _connect_any(path: Path) -> sqlite3.Connection:
    """The journal for reading, or nothing where there is a link, no file or no database."""
    if lost_journal(path):
        return sqlite3.connect(":memory:")
    return connect_rows(path)


def _rows(connection: sqlite3.Connection) -> Iterator[Row]:
    """All rows that can be read, in order of their places; damaged ones are passed over one by one."""
    last, missed, whole = 0, 0, False
    statement = f"select {COLUMNS} from events where seq > ? order by seq"
    while not whole and missed < _SKIPPED:
        try:
            for row in connection.execute(statement, (last,)):
                if not isinstance(row[0], int) or row[0] <= last:
                    raise sqlite3.DatabaseError("pages lead back")  # noqa: TRY301  as SQLite would say it
                last, missed = row[0], 0
                yield cast("Row", row)
            whole = True
        except sqlite3.DatabaseError as error:
            whole = any(words in str(error) for words in ("no such table", "not a database"))
            last, missed = min(last + 1, 2**63 - 1), missed + 1


def _until(rows: Iterable[Row], last: int) -> Iterator[Row]:
    for row in rows:
        if row[0] > last:
            return
        yield row


def _usable(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows that are events of a known kind and follow those before them in their stream.

    What an agent's events no longer make a state of, and what follows a break in a stream that is no
    agent's, is left out: agents and services must be able to open what is there.
    """
    states: dict[str, object] = {}
    versions: dict[str, int] = {}
    hashes: dict[str, str] = {}
    ended: set[str] = set()
    for row in rows:
        try:
            event = to_event(row)
            payload = payload_of(event)
            broken = chain_hash(hashes.get(event.stream, ""), *event[:-2]) != event.hash
            if event.stream in ended or event.version <= versions.get(event.stream, 0):
                continue
            if of_agent(event.stream):
                if event.stream not in states and not isinstance(payload, AgentCreated):
                    ended.add(event.stream)
                    continue
                states[event.stream] = fold([event], states.get(event.stream))  # type: ignore[arg-type]
            elif event.stream != WORKSPACE and broken:
                ended.add(event.stream)
                continue
        except (JournalError, ValueError, TypeError, KeyError, LookupError, AttributeError, RecursionError):
            if isinstance(row[1], str) and row[1] != WORKSPACE:
                ended.add(row[1])
            continue
        versions[event.stream], hashes[event.stream] = event.version, event.hash
        yield row


# ------------------------------------------------------------------ the new database


class Tail:
    """Where a journal ends that is being written."""

    def __init__(self) -> None:
        """Begin with none."""
        self.seq = 0
        self.count = 0
        self.heads: dict[str, Head] = {}
        self._digest = hashlib.sha256()

    def take(self, row: Row) -> None:
        """Note a row that was written."""
        self.seq = row[0]
        self.count += 1
        self.heads[row[1]] = Head(row[2], row[9])
        self._digest.update(row_digest(row))

    @property
    def digest(self) -> str:
        """SHA-256 over all rows so far."""
        return self._digest.hexdigest()


class Appender:
    """Appends to the workspace's stream of a journal that nothing else has open."""

    def __init__(self, connection: sqlite3.Connection, tail: Tail, actor: str, at: str) -> None:
        self._connection, self._tail, self._actor, self._at = connection, tail, actor, at

    def append(self, payload: Payload) -> Event:
        """Add one event."""
        tail = self._tail
        head = tail.heads.get(WORKSPACE, START)
        place, body = (WORKSPACE, head.version + 1, self._at, 0, self._actor, ()), payload.body()
        digest = chain_hash(head.hash, *place, payload.kind, body)
        event = Event(*place, payload.kind, body, digest, tail.seq + 1)
        self._connection.execute(insert(1), to_row(event))
        tail.take(to_row(event))
        return event


def write_journal(path: Path, now: str, old: sqlite3.Connection, rows: Iterable[Row]) -> tuple[Path, Tail]:
    """A new database beside the journal with these rows, complete on the disk."""
    fresh, tail = path.with_name(f"{path.name}.new"), Tail()
    remove_cache(fresh)
    with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
        create_tables(connection, fresh, now)
        connection.execute("begin immediate")
        for row in rows:
            connection.execute(insert(1), row)
            tail.take(row)
        with suppress(sqlite3.Error):
            for key, value in old.execute(
                "select key, value from meta where key in ('created', 'written_by')"
            ):
                connection.execute("insert or replace into meta values(?, ?)", (str(key), str(value)))
        connection.execute("commit")
        connection.execute("pragma wal_checkpoint(truncate)")
    return fresh, tail


def _swap(path: Path, fresh: Path, kept: str = "") -> str:
    """Put a new database in the journal's place; the name of the old one, whose log goes with it."""
    aside = path.with_name(kept) if kept else None
    if os.path.lexists(path):
        if aside is None:
            aside = set_aside(path)
        else:
            path.rename(aside)
        for ending in ("-wal", "-shm"):
            beside = path.with_name(path.name + ending)
            if os.path.lexists(beside):
                beside.rename(aside.with_name(aside.name + ending))
    for ending in ("-wal", "-shm", "-journal"):
        if os.path.lexists(path.with_name(path.name + ending)):
            set_aside(path.with_name(path.name + ending))
    fresh.replace(path)
    sync_directory(path.parent)
    return aside.name if aside is not None else ""


def _lost_blobs(connection: sqlite3.Connection, path: Path) -> set[str]:
    """The blobs that the events name and that are missing or damaged."""
    blobs, lost = BlobStore(path.parent / "blobs"), set()
    named = connection.execute("select body from events where kind = ?", (ActionFinished.kind,))
    for digest in {blob_named(body) for (body,) in named} - {""}:
        try:
            blobs.read(digest)
        except BlobError:
            lost.add(digest)
    return lost
