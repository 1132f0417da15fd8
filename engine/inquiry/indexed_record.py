"""An index of the journal, so that searching and asking why need not read all of it.

It is a cache in a database of its own, written in the background, deleted at will and built again. It holds
the letters of each group of events, three by three, and what each event depends on. It lags a little: a
record takes in what is newer from the journal and keeps that in memory until the index is flushed.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from engine.core.journal import WORKSPACE, Event, JournalReadError
from engine.core.store import JOURNAL
from engine.core.store.places import is_plain, is_untouched
from engine.core.store.port import DATA_DIRECTORY, DATABASE, JournalStore, Row, parse_ref
from engine.core.store.schema import COLUMNS, read_only_uri, to_event
from engine.inquiry.record import Record
from engine.inquiry.relations import Basis, Relation

INDEX = "index.db"
"""The file, in the data directory."""
FORMAT = "3"
"""Raised whenever what is kept changes its shape; an index of another format is thrown away."""
GROUP = 32
"""Events whose letters are kept together; a search looks through whole groups."""
BLOB_LIMIT = 8 * 1024 * 1024
"""Bytes of a blob that is looked into."""
MEMORYS = f"{WORKSPACE}@memory"
"""The stream of memory, which is searched as memory."""
LARGE = """(kind = 'action.finished' and body not like '%"blob":null%')"""
"""Which events have their whole answer in a blob."""

_RUN = re.compile(r"[ !#-\[\]-~]{2,}")
"""Letters that stand in stored JSON as they are; two at least, as one is everywhere."""
FEW = 200
"""Triples that two letters may stand in; where there are more, they are no help."""


def pieces(text: str) -> list[str]:
    """What of a text must be in the index where the text is in the journal: three letters each, or two."""
    runs = [run.lower() for run in _RUN.findall(text)]
    return list(dict.fromkeys(run[at : at + 3] for run in runs for at in range(max(1, len(run) - 2))))


def open_index(workspace: Path) -> tuple[sqlite3.Connection, int] | None:
    """A workspace's index with the journal beside it (`journal`), both for reading and as of one moment.

    Returns:
        The connection and the place up to which events are in it; None where there is none of this journal.
    """
    if os.environ.get(JOURNAL):
        return None  # a file that is left beside it is not the journal
    path = workspace / DATA_DIRECTORY / INDEX
    connection: sqlite3.Connection | None = None
    try:
        if not path.is_file() or not is_plain(path) or is_untouched(path) is False:
            return None
        connection = connect_index(read_only_uri(path), workspace)
        connection.execute("begin")
        if (reached := indexed_up_to(connection)) is not None:
            return connection, reached
    except (sqlite3.Error, ValueError):
        pass
    if connection is not None:
        connection.close()
    return None


def groups_with(connection: sqlite3.Connection, texts: Sequence[str], below: int) -> list[int]:
    """The groups of events below a place that may hold all of some texts, newest first.

    Raises:
        sqlite3.Error: the index cannot be read.
    """
    queries = [query for text in texts for piece in pieces(text) if (query := _query(connection, piece))]
    if not queries:
        return list(range((below - 1) // GROUP, -1, -1))
    rows = connection.execute(
        "select rowid from words where words match ? and rowid < ? order by rowid desc",
        (" AND ".join(queries), below // GROUP),
    )
    return [group for (group,) in rows]


def _query(connection: sqlite3.Connection, piece: str) -> str:
    """The question for three letters, or for those that two stand in; empty where that is no help."""
    if len(piece) == 3:
        return _quoted(piece)
    connection.execute("create virtual table if not exists temp.triples using fts5vocab(main, words, row)")
    terms = connection.execute(
        "select term from temp.triples where instr(term, ?) limit ?", (piece, FEW + 1)
    ).fetchall()
    if len(terms) > FEW:
        return ""
    # Where the letters are nowhere, three of them that are nowhere either stand for them.
    return "(" + " OR ".join(_quoted(term) for (term,) in terms or [(piece + piece[:1],)]) + ")"


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def connect_index(database: str, workspace: Path) -> sqlite3.Connection:
    """A database with the workspace's journal attached for reading, as `journal`."""
    connection = sqlite3.connect(database, uri=True, isolation_level=None, timeout=5, check_same_thread=False)
    try:
        connection.execute("attach ? as journal", (read_only_uri(workspace / DATA_DIRECTORY / DATABASE),))
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def indexed_up_to(connection: sqlite3.Connection) -> int | None:
    """Up to where events are indexed; None where the index is not of this journal or this format."""
    about = dict(connection.execute("select key, value from about where key <> 'relations'"))
    if about.get("format") != FORMAT:
        return None
    if "seq" not in about:
        return 0
    known = connection.execute(
        "select hash from journal.events where seq = ?", (int(about["seq"]),)
    ).fetchone()
    return int(about["seq"]) + 1 if known == (about.get("hash"),) else None


_FOLLOWERS = """
select e.stream || ':' || e.version, l.relation from links l join journal.events e on e.seq = l.seq
where l.basis = ? order by l.seq
"""
_BASES = """
select l.basis, l.relation from journal.events e join links l on l.seq = e.seq
where e.stream = ? and e.version = ? order by l.place
"""


def _rows(connection: sqlite3.Connection, sql: str, *values: object) -> list[Any]:
    """What a question to the index gives.

    Raises:
        JournalReadError: the index is damaged.
    """
    try:
        return connection.execute(sql, values).fetchall()
    except sqlite3.Error as error:
        raise JournalReadError(
            f"The index of the journal cannot be read ({error}): remove .pilothouse/{INDEX}, it is made anew."
        ) from error


class IndexedRecord(Record):
    """A record whose older part stands in the index of a journal.

    Args:
        connection: the index, with the journal attached; it is closed with the record.
        below: the place of the first event that the index does not have.
    """

    def __init__(self, connection: sqlite3.Connection, below: int) -> None:
        super().__init__()
        for (saved,) in _rows(connection, "select value from about where key = 'relations'"):
            self._names.restore(json.loads(saved))
        self.below = below
        self._connection = connection
        self._seqs: dict[str, int] = {}
        """The place of each event that was taken in here."""
        self._looked_up: dict[str, Event | None] = {}
        self._kept_bases: dict[str, tuple[Basis, ...]] = {}
        self._kept_followers: dict[str, tuple[Basis, ...]] = {}
        weakref.finalize(self, connection.close)

    def event(self, ref: str) -> Event | None:
        """The event of the journal with this reference, or None."""
        if ref not in self._known and ref not in self._looked_up:
            events = self._where("stream = ? and version = ?", *(parse_ref(ref) or ("", 0)))
            self._looked_up[ref] = next((event for event in events if event.ref == ref), None)
        return self._known.get(ref) or self._looked_up.get(ref)

    def _where(self, condition: str, *values: object) -> Iterable[Event]:
        """The journal's events that a condition selects."""
        rows = _rows(self._connection, f"select {COLUMNS} from journal.events where {condition}", *values)
        return (to_event(cast("Row", row)) for row in rows)

    def add(self, event: Event) -> None:
        """Take the next event in; one that the index has changes nothing."""
        if event.seq >= self.below and event.ref not in self._seqs:
            self._seqs[event.ref] = event.seq
            super().add(event)

    def bases(self, ref: str) -> tuple[Basis, ...]:
        """What an event depends on: recorded causes first."""
        if ref in self._seqs:
            return super().bases(ref)
        if ref not in self._kept_bases:
            rows = _rows(self._connection, _BASES, *(parse_ref(ref) or ("", 0)))
            self._kept_bases[ref] = tuple(Basis(basis, Relation(relation)) for basis, relation in rows)
        return self._kept_bases[ref]

    def followers(self, ref: str) -> tuple[Basis, ...]:
        """What depends on an event, in the order of the record."""
        if ref not in self._kept_followers:
            rows = _rows(self._connection, _FOLLOWERS, ref)
            self._kept_followers[ref] = tuple(Basis(row, Relation(relation)) for row, relation in rows)
        return self._kept_followers[ref] + super().followers(ref)

    def newest(self, kind: str, agent: str = "") -> Event | None:
        """The newest event of a kind, or of any where it is empty; of one agent, or of all."""
        newest = super().newest(kind, agent)
        chosen = "(?1 = '' or kind = ?1) and (?2 = '' or stream = ?2)"
        by_kind = f"seq = (select max(seq) from journal.events where kind = ?1) and {chosen}"
        for condition in (by_kind, f"{chosen} order by seq desc limit 1"):
            newest = newest or next(iter(self._where(condition, kind, agent)), None)
        return newest

    def of_kind(self, kind: str) -> Iterable[Event]:
        """All events of a kind, oldest first."""
        return self._where("kind = ? order by seq", kind)

    def _find(self, agent: str, name: str) -> list[str]:
        sql = "select owner, ref from named where name = ?1 and (?2 = '' or owner = ?2) order by seq"
        rows = _rows(self._connection, sql, name, agent)
        names: dict[str, list[str]] = {}
        for owner, ref in rows:
            names.setdefault(owner, []).append(ref)
        for (owner, known), refs in self._names.named.items():
            if known == name and agent in ("", owner):
                names.setdefault(owner, []).extend(refs)
        return next(iter(names.values())) if len(names) == 1 else []

    def _owners(self, names: Iterable[str]) -> list[str]:
        rows = _rows(self._connection, "select distinct owner from named where name in (?, ?)", *names)
        return list(dict.fromkeys([*(owner for (owner,) in rows if owner), *super()._owners(names)]))

    def flush(self) -> None:
        """Write what was taken in to the index, within its writer's transaction, and forget it here."""
        links = [
            (seq, place, basis.ref, basis.relation.value)
            for ref, seq in self._seqs.items()
            for place, basis in enumerate(super(IndexedRecord, self).bases(ref))
        ]
        self._connection.executemany("insert into links values(?, ?, ?, ?)", links)
        known = self._names.named.items()
        named = [(name, owner, self._seqs[ref], ref) for (owner, name), refs in known for ref in refs]
        self._connection.executemany("insert or ignore into named values(?, ?, ?, ?)", named)
        saved = json.dumps(self._names.save(), separators=(",", ":"))
        self._connection.execute("insert or replace into about values('relations', ?)", (saved,))
        self._names.named.clear()
        self.below = max(self._seqs.values(), default=self.below - 1) + 1
        for store in (self._seqs, self._known, self._bases, self._followers):
            store.clear()


async def record_of(workspace: Path, store: JournalStore) -> Record:
    """The record of a workspace as of now: its index, and what the journal has besides.

    Raises:
        JournalError: the journal cannot be read.
    """
    index = await asyncio.to_thread(open_index, workspace)
    record = IndexedRecord(*index) if index is not None else Record()
    events = [event async for event in store.events(max(0, index[1] - 1) if index else 0, follow=False)]
    await asyncio.to_thread(record.take_in, events)
    return record
