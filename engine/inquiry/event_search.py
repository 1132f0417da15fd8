"""Searching the events of a journal, newest first, through a connection that cannot write.

The index says which groups of events may hold the words; what it does not have yet is looked through event by
event, and so is everything where there is no index. SQLite looks through bodies as they are stored; what it
brings up is looked at again as text, so that names of fields and escapes do not count. The whole answer of an
action lies in a blob where it is large: that is read.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from engine.core.journal import BlobError, JournalError
from engine.core.ports import SystemClock
from engine.core.store import JOURNAL
from engine.core.store.blobs import BlobStore, blob_named
from engine.core.store.opening import blobs_of, open_journal
from engine.core.store.port import DATA_DIRECTORY, DATABASE
from engine.core.store.schema import read_only_uri
from engine.inquiry.indexed_record import BLOB_LIMIT, GROUP, LARGE, MEMORYS, groups_with, open_index
from engine.inquiry.search import Batch, Hit, SearchQuery, Source, Tell, contains_words, excerpt, in_thread

VALUES = 20_000
"""Texts of one event that are looked at."""
FIRST_CHUNK, LARGEST_CHUNK = 500, 16_000
"""Events looked at before it is reported again; the first hits come soon, and later chunks cost less each."""
GROUPS = 8
"""Groups that are looked through before the first report; then twice as many each time."""

_CHUNK = """
select seq, stream, version, at, kind, body from {events}
where seq > ? and seq <= ? and stream <> ? {conditions} and ({words} or {large})
order by seq desc
"""
Stretch = tuple[int, int]
"""Events behind one place up to another."""


class EventSearch:
    """Looks through the journal of a workspace, also while an engine writes to it."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace

    async def __call__(self, what: SearchQuery, tell: Tell) -> None:
        """Tell what is found, newest first."""
        if os.environ.get(JOURNAL):
            await self._through_server(what, tell)
            return
        scan = _Scan(self._workspace, what)
        try:
            await in_thread(scan.run, tell)
        finally:
            scan.interrupt()

    async def _through_server(self, what: SearchQuery, tell: Tell) -> None:
        """Look through a journal that has no file, in chunks from its end."""
        clock = SystemClock()
        try:
            store = await open_journal(self._workspace, clock=clock, read_only=True)
        except JournalError as error:
            tell(Batch(Source.EVENT, done=True, problem=f"the journal cannot be read just now ({error})"))
            return
        try:
            blobs = await asyncio.to_thread(blobs_of, self._workspace, clock)
            opened = await store.of_kinds(["session.opened"], 0, VALUES)
            sessions = [(event.seq, str(json.loads(event.body).get("session", ""))) for event in opened]
            sql, values = _statement(what, "events")
            end, size, left, over = await store.head_seq(), FIRST_CHUNK, what.limit, False
            while not over:
                begin = max(0, end - size)
                rows = await store.fetch(sql.replace(" like ", " ilike "), begin, end, MEMORYS, *values)
                found = islice(_hits_of(rows, what.words, blobs, sessions), left + 1)
                batch, left = _batch(await asyncio.to_thread(list, found), left, begin, end)
                tell(batch)
                end, size, over = begin, min(2 * size, LARGEST_CHUNK), batch.done
        except JournalError as error:
            tell(Batch(Source.EVENT, done=True, problem=f"the journal cannot be read just now ({error})"))
        finally:
            await store.close()


class _Scan:
    """One search through the database; all but `interrupt` runs in its thread."""

    def __init__(self, workspace: Path, what: SearchQuery) -> None:
        self._workspace = workspace
        self._blobs = BlobStore(workspace / DATA_DIRECTORY / "blobs")
        self._what = what
        self._connection: sqlite3.Connection | None = None
        self._events, self._sql, self._values = "events", "", tuple[str, ...]()
        self._groups: list[int] = []
        self._below = 0
        """The place of the first event that the index does not have; 0 without an index."""
        self._sessions: list[tuple[int, str]] = []

    def run(self, tell: Tell, stop: threading.Event) -> None:
        """Look through all events, newest first."""
        try:
            with closing(self._open()) as connection:
                self._through(connection, tell, stop)
        except sqlite3.Error as error:
            tell(Batch(Source.EVENT, done=True, problem=f"the journal cannot be read just now ({error})"))
        finally:
            self._connection = None

    def interrupt(self) -> None:
        """Cut off what the thread looks through just now."""
        connection = self._connection
        if connection is not None:
            with suppress(sqlite3.ProgrammingError):  # it was closed meanwhile
                connection.interrupt()

    def _open(self) -> sqlite3.Connection:
        """Connect, to the index if there is one that can say which groups may hold the words."""
        connection, self._events = None, "journal.events"
        index = open_index(self._workspace)
        if index is not None:
            filters = [text for text in (self._what.agent, self._what.event_kind) if text]
            try:
                self._groups = groups_with(index[0], [*self._what.words, *filters], index[1])
                connection, self._below = index
            except sqlite3.Error:
                index[0].close()
        if connection is None:
            path, self._events = self._workspace / DATA_DIRECTORY / DATABASE, "events"
            connection = sqlite3.connect(
                read_only_uri(path), uri=True, isolation_level=None, timeout=5, check_same_thread=False
            )
        self._connection = connection
        self._sql, self._values = _statement(self._what, self._events)
        opened = connection.execute(
            f"select seq, body from {self._events} where kind = 'session.opened' order by seq"
        )
        self._sessions = [(seq, str(json.loads(body).get("session", ""))) for seq, body in opened]
        return connection

    def _through(self, connection: sqlite3.Connection, tell: Tell, stop: threading.Event) -> None:
        ((end,),) = connection.execute(f"select coalesce(max(seq), 0) from {self._events}").fetchall()
        left = self._what.limit
        for stretches in self._course(end):
            if stop.is_set():
                return
            hits, begin = list(islice(self._hits(connection, stretches), left + 1)), stretches[-1][0]
            batch, left = _batch(hits, left, begin, end)
            tell(batch)
            if batch.done:
                return
        tell(Batch(Source.EVENT, (), end, done=True))

    def _course(self, end: int) -> Iterator[list[Stretch]]:
        """What is to be looked through from a place back, a little first: events, then the index's groups."""
        size = FIRST_CHUNK
        while end >= self._below and end > 0:
            begin = max(0, self._below - 1, end - size)
            yield [(begin, end)]
            end, size = begin, min(2 * size, LARGEST_CHUNK)
            if begin == self._below - 1:
                break
        count, place = GROUPS, 0
        while place < len(self._groups):
            yield _joined(self._groups[place : place + count])
            place, count = place + count, min(2 * count, LARGEST_CHUNK // GROUP)

    def _hits(self, connection: sqlite3.Connection, stretches: Sequence[Stretch]) -> Iterator[Hit]:
        """What fits in some stretches, newest first."""
        for begin, end in stretches:
            with closing(connection.execute(self._sql, (begin, end, MEMORYS, *self._values))) as rows:
                yield from _hits_of(rows, self._what.words, self._blobs, self._sessions)


def _batch(hits: Sequence[Hit], left: int, begin: int, end: int) -> tuple[Batch, int]:
    """What to tell of the events behind one place up to another, and how many hits are still wanted."""
    more, hits = len(hits) > left, hits[:left]
    left -= len(hits)
    over = more or not begin or not left
    more = more or (not left and begin > 0)
    return Batch(Source.EVENT, tuple(hits), end - begin, done=over, more=more), left


def _hits_of(
    rows: Iterable[tuple[Any, ...]],
    words: Sequence[str],
    blobs: BlobStore,
    sessions: Sequence[tuple[int, str]],
) -> Iterator[Hit]:
    """What fits among events, in their order."""
    for seq, stream, version, at, kind, body in rows:
        text = text_of(body)
        if not contains_words(text, words):
            text = text_of_blob(blobs, body)
        if text and contains_words(text, words):
            place = bisect_right(sessions, seq, key=lambda session: session[0])
            session = sessions[place - 1][1] if place else ""
            yield Hit(Source.EVENT, f"{stream}:{version}", at, stream, kind, excerpt(text, words), session)


def _joined(groups: Sequence[int]) -> list[Stretch]:
    """The events of some groups, newest first; groups that are neighbours are one stretch."""
    stretches: list[Stretch] = []
    for group in groups:
        begin, end = group * GROUP - 1, group * GROUP + GROUP - 1
        if stretches and stretches[-1][0] == end:
            end = stretches.pop()[1]
        stretches.append((begin, end))
    return stretches


def _statement(what: SearchQuery, events: str) -> tuple[str, tuple[str, ...]]:
    """The statement for one chunk, and its values behind the first three."""
    conditions, values = "", []
    if what.agent:
        conditions += " and stream = ?"
        values.append(what.agent)
    if what.event_kind:
        conditions += " and (kind = ? or kind like ? escape '\\')"
        values += [what.event_kind, f"{_plain(what.event_kind)}.%"]
    words = " and ".join(["body like ? escape '\\'"] * len(what.words))
    sql = _CHUNK.format(events=events, conditions=conditions, words=f"({words})", large=LARGE)
    return sql, (*values, *map(_pattern, what.words))


def _pattern(word: str) -> str:
    """What the stored JSON holds where it holds a word; letters that are not ASCII are looked at later."""
    stored = json.dumps(word, ensure_ascii=False)[1:-1]
    return "%" + "".join(char if char.isascii() else "%" for char in _plain(stored)) + "%"


def _plain(text: str) -> str:
    """A text that stands for itself in a pattern."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def text_of(body: str) -> str:
    """All that a stored payload says, value by value; names of its own fields are not part of it."""
    try:
        payload = json.loads(body)
    except ValueError:
        return body
    return " · ".join(islice(_values(payload), VALUES))


def text_of_blob(blobs: BlobStore, body: str) -> str:
    """What the blob that a stored payload names says; empty where there is none to be read."""
    try:
        content = blobs.read(name) if (name := blob_named(body)) else b""
    except (BlobError, ValueError):
        return ""
    return text_of(content[:BLOB_LIMIT].decode("utf-8", "replace"))


def _values(payload: Any) -> Iterator[str]:
    """Texts and numbers in the order of the payload, nothing recursing on its depth."""
    waiting: list[Any] = [iter([payload])]
    while waiting:
        value = next(waiting[-1], None)
        if value is None:
            waiting.pop()
        elif isinstance(value, dict):
            waiting.append(iter([each for each in value.values() if each is not None]))
        elif isinstance(value, list):
            waiting.append(iter([each for each in value if each is not None]))
        elif value != "":
            yield value if isinstance(value, str) else str(value)
