"""Writes the journal's index: takes events in by steps, and starts anew where the index is damaged."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from engine.core.actions import SnapshotTaken
from engine.core.journal import JournalReadError
from engine.core.store.blobs import BlobStore
from engine.core.store.places import is_plain, is_untouched, note_closed, note_open, remove_cache
from engine.core.store.port import DATA_DIRECTORY
from engine.core.store.schema import COLUMNS, to_event
from engine.inquiry.event_search import text_of_blob
from engine.inquiry.indexed_record import (
    FORMAT,
    GROUP,
    INDEX,
    LARGE,
    MEMORYS,
    IndexedRecord,
    connect_index,
    indexed_up_to,
)

STEP = 4_096
"""Events taken in at a time; a multiple of a group."""
LEAST = 1_024
"""Events that are not indexed before it is worth going on."""
AHEAD = 256
"""Newest events that are left to be read from the journal: what a program did to files, a later one tells."""
PAUSE_S = 0.05
"""Between two steps, so that a long journal that is indexed for the first time leaves room for all else."""


_TABLES = (
    "create table about(key text primary key, value text not null) strict",
    "create virtual table words using fts5(body, content='', detail=none, tokenize='trigram')",
    """create table links(seq integer not null, place integer not null, basis text not null,
        relation text not null, primary key(seq, place)) strict, without rowid""",
    "create index links_by_basis on links(basis, seq)",
    """create table named(name text not null, owner text not null, seq integer not null, ref text not null,
        primary key(name, owner, seq)) strict, without rowid""",
)


_WORDS = f"""
insert into words(rowid, body)
select seq / {GROUP}, group_concat(stream || ' ' || kind || ' ' || body
    || case when {LARGE} then char(10) || blob_text(body) else '' end, char(10))
from journal.events where seq >= ? and seq < ? and stream <> '{MEMORYS}' group by seq / {GROUP}
"""


class JournalIndex:
    """Writes the index of one workspace, in a thread of its own; there is one for each open engine.

    Whatever goes wrong with it is no fault of the workspace: it is thrown away, and begun once more.
    """

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._path = workspace / DATA_DIRECTORY / INDEX
        self._blobs = BlobStore(workspace / DATA_DIRECTORY / "blobs")
        self._thread = ThreadPoolExecutor(1, "journal-index")
        self._connection: sqlite3.Connection | None = None
        self._record: IndexedRecord | None = None
        self._below = 0
        """The place of the first event that is not in it."""
        self._failures = 0

    async def update(self, last_seq: int) -> None:
        """Take in what has happened up to a place, unless that is little."""
        if last_seq - self._below < LEAST or self._failures > 1:
            return
        loop = asyncio.get_running_loop()
        more = True
        while more:
            more = await loop.run_in_executor(self._thread, self._step, last_seq)
            await asyncio.sleep(PAUSE_S if more else 0)

    async def close(self) -> None:
        """End at once; what was not finished is begun again next time."""
        if self._connection is not None:
            self._connection.interrupt()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._let_go)
        self._thread.shutdown(wait=False)

    def _step(self, last_seq: int) -> bool:
        """Take in the next events; True when there are more."""
        try:
            if self._connection is None:
                self._open()
            end = min(self._below + STEP, (last_seq + 1 - AHEAD) // GROUP * GROUP)
            if end > self._below:
                self._take(self._below, end)
                self._below = end
        except (sqlite3.Error, JournalReadError, OSError, ValueError):
            self._failures += 1
            self._let_go()
            self._remove()
            return self._failures < 2
        return last_seq + 1 - AHEAD - self._below >= GROUP

    def _open(self) -> None:
        """Go on with the index that is there, or begin one."""
        if not is_plain(self._path) or is_untouched(self._path) is False:
            self._remove()
        for _ in range(2):
            connection = connect_index(self._path.absolute().as_uri(), self._workspace)
            try:
                connection.execute("pragma journal_mode = wal")
                # A cache: after a power cut it is found out to be damaged, or to lag.
                connection.execute("pragma synchronous = off")
                if not connection.execute("select 1 from sqlite_schema limit 1").fetchone():
                    for statement in _TABLES:
                        connection.execute(statement)
                    connection.execute("insert into about values('format', ?)", (FORMAT,))
                about = connection.execute("select 1 from sqlite_schema where name = 'about'")
                reached = indexed_up_to(connection) if about.fetchone() else None
            except BaseException:
                connection.close()
                raise
            if reached is not None:
                note_open(self._path)
                connection.create_function("blob_text", 1, partial(text_of_blob, self._blobs))
                self._connection, self._below = connection, reached
                self._record = IndexedRecord(connection, reached)
                return
            connection.close()
            self._remove()

    def _take(self, begin: int, end: int) -> None:
        """Index the events from one place to another, all or none."""
        connection, record = self._connection, self._record
        assert connection is not None
        assert record is not None
        connection.execute("begin immediate")
        try:
            connection.execute(_WORDS, (begin, end))
            rows = connection.execute(
                f"select {COLUMNS} from journal.events where seq >= ? and seq < ? order by seq", (begin, end)
            )
            events = [to_event(row) for row in rows]
            later = connection.execute(
                f"select {COLUMNS} from journal.events where seq >= ? and seq < ? and kind = ? order by seq",
                (end, end + AHEAD, SnapshotTaken.kind),
            )
            record.take_in(events, [to_event(row) for row in later])
            record.flush()
            about = [("seq", str(end - 1)), ("hash", events[-1].hash if events else "")]
            connection.executemany("insert or replace into about values(?, ?)", about)
            connection.execute("commit")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("rollback")
            raise

    def _let_go(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.execute("pragma wal_checkpoint(truncate)")
            self._connection.close()
            note_closed(self._path)
        self._connection = self._record = None

    def _remove(self) -> None:
        self._below = 0
        with suppress(OSError):
            remove_cache(self._path)
