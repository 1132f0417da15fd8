"""Searching the events of a journal, newest first, through a connection that cannot write.

The index says which groups of events may hold the words; what it does not have yet is looked through event by
event, and so is everything where there is no index. SQLite looks through bodies as they are stored; what it
brings up is looked at again as text, so that names of fields and escapes do not count. The whole answer of an
action lies in a blob where it is large: that is read.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from engine.inquiry.finding import Batch, Hit, Source, Tell, Wanted, around, holds
from engine.inquiry.index import BLOB_LIMIT, GROUP, LARGE, MEMORYS, groups_with, open_index
from engine.journal.blobs import BlobStore, blob_named
from engine.journal.errors import BlobError
from engine.journal.schema import read_only_uri
from engine.journal.store import DATA_DIRECTORY, DATABASE

FIRST_CHUNK, LARGEST_CHUNK = 500, 16_000
"""Events looked at before it is told again; the first hits come soon, and later chunks cost less each."""
VALUES = 20_000
"""Texts of one event that are looked at."""
GROUPS = 8
"""Groups that are looked through before it is told for the first time; then twice as many each time."""

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
        self._path = workspace / DATA_DIRECTORY / DATABASE
        self._blobs = BlobStore(workspace / DATA_DIRECTORY / "blobs")

    async def __call__(self, what: Wanted, tell: Tell) -> None:
        """Tell what is found, newest first."""
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1, "search-events")
        scan = _Scan(self._path, what)
        try:
            try:
                end = await loop.run_in_executor(thread, scan.open)
            except sqlite3.Error as error:
                tell(Batch(Source.EVENT, done=True, problem=f"the journal cannot be read just now ({error})"))
                return
            await self._through(what, scan, thread, end, tell)
        finally:
            scan.interrupt()
            # Behind whatever the thread still does, so that the connection is closed where it is used.
            thread.submit(scan.close)
            thread.shutdown(wait=False)

    async def _through(
        self, what: Wanted, scan: _Scan, thread: ThreadPoolExecutor, end: int, tell: Tell
    ) -> None:
        loop = asyncio.get_running_loop()
        left = what.limit
        for stretches in scan.course(end):
            try:
                candidates = await loop.run_in_executor(thread, scan.look, stretches, left)
            except sqlite3.Error as error:
                tell(Batch(Source.EVENT, done=True, problem=f"the journal cannot be read ({error})"))
                return
            hits = [hit for one in candidates if (hit := await self._hit(what, one)) is not None]
            more = len(hits) > left
            hits = hits[:left]
            left -= len(hits)
            begin = stretches[-1][0]
            over = more or not begin or not left
            tell(
                Batch(
                    Source.EVENT, tuple(hits), end - begin, done=over, more=more or (not left and begin > 0)
                )
            )
            if over:
                return
        tell(Batch(Source.EVENT, (), end, done=True))

    async def _hit(self, what: Wanted, one: tuple[Hit, str]) -> Hit | None:
        """The candidate, unless its words stand only in a blob that does not have them."""
        hit, blob = one
        if not blob:
            return hit
        try:
            content = await self._blobs.get(blob)
        except BlobError:
            return None
        if len(content) > BLOB_LIMIT:
            content = content[:BLOB_LIMIT]
        return await asyncio.to_thread(_in_blob, hit, content, what.words)


def _in_blob(hit: Hit, content: bytes, words: Sequence[str]) -> Hit | None:
    text = text_of(content.decode("utf-8", "replace"))
    if not holds(text, words):
        return None
    return Hit(hit.source, hit.ref, hit.at, hit.agent, hit.kind, around(text, words), hit.session)


class _Scan:
    """One search through the database; all but `interrupt` runs in its thread."""

    def __init__(self, path: Path, what: Wanted) -> None:
        self._path = path
        self._what = what
        self._connection: sqlite3.Connection | None = None
        self._sql, self._values = "", tuple[str, ...]()
        self._groups: list[int] = []
        self._below = 0
        """The place of the first event that the index does not have; 0 without an index."""
        self._sessions: list[tuple[int, str]] = []

    def open(self) -> int:
        """Connect, to the index if there is one; answers the place of the newest event."""
        self._connection = self._indexed()
        events = "events" if self._connection is None else "journal.events"
        if self._connection is None:
            self._connection = sqlite3.connect(
                read_only_uri(self._path), uri=True, isolation_level=None, timeout=5, check_same_thread=False
            )
        self._sql, self._values = _statement(self._what, events)
        opened = self._connection.execute(
            f"select seq, body from {events} where kind = 'session.opened' order by seq"
        )
        self._sessions = [(seq, str(json.loads(body).get("session", ""))) for seq, body in opened]
        ((seq,),) = self._connection.execute(f"select coalesce(max(seq), 0) from {events}").fetchall()
        return int(seq)

    def _indexed(self) -> sqlite3.Connection | None:
        """The index, with the groups that may hold the words; None where there is none or it is damaged."""
        index = open_index(self._path.parents[1])
        if index is None:
            return None
        filters = [text for text in (self._what.agent, self._what.event_kind) if text]
        try:
            groups = groups_with(index[0], [*self._what.words, *filters], index[1])
        except sqlite3.Error:
            index[0].close()
            return None
        self._groups, self._below = groups, index[1]
        return index[0]

    def course(self, end: int) -> Iterator[list[Stretch]]:
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
            taken = self._groups[place : place + count]
            yield _joined(taken)
            place, count = place + count, min(2 * count, LARGEST_CHUNK // GROUP)

    def look(self, stretches: Sequence[Stretch], most: int) -> list[tuple[Hit, str]]:
        """What may fit in some stretches, with the blob that is to be looked into."""
        found: list[tuple[Hit, str]] = []
        for begin, end in stretches:
            found += self.chunk(begin, end, most - len(found))
            if len(found) > most:
                break
        return found

    def chunk(self, begin: int, end: int, most: int) -> list[tuple[Hit, str]]:
        """What may fit of the events behind `begin` up to `end`, with the blob that is to be looked into.

        It ends when more than `most` fit for certain.
        """
        assert self._connection is not None
        found: list[tuple[Hit, str]] = []
        certain = 0
        with closing(self._connection.execute(self._sql, (begin, end, MEMORYS, *self._values))) as rows:
            for seq, stream, version, at, kind, body in rows:
                text = text_of(body)
                fits = holds(text, self._what.words)
                blob = "" if fits else blob_named(body)
                if fits or blob:
                    shown, session = around(text, self._what.words), self._session(seq)
                    hit = Hit(Source.EVENT, f"{stream}:{version}", at, stream, kind, shown, session)
                    found.append((hit, blob))
                certain += fits
                if certain > most:
                    break
        return found

    def _session(self, seq: int) -> str:
        at = bisect_right(self._sessions, seq, key=lambda one: one[0])
        return self._sessions[at - 1][1] if at else ""

    def interrupt(self) -> None:
        """Cut off what the thread looks through just now."""
        if self._connection is not None:
            self._connection.interrupt()

    def close(self) -> None:
        """Give the connection up."""
        if self._connection is not None:
            self._connection.close()


def _joined(groups: Sequence[int]) -> list[Stretch]:
    """The events of some groups, newest first; groups that are neighbours are one stretch."""
    found: list[Stretch] = []
    for group in groups:
        begin, end = group * GROUP - 1, group * GROUP + GROUP - 1
        if found and found[-1][0] == end:
            end = found.pop()[1]
        found.append((begin, end))
    return found


def _statement(what: Wanted, events: str) -> tuple[str, tuple[str, ...]]:
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
