"""An index of the journal, so that searching and asking why need not read all of it.

A cache in a database of its own, written behind the screen, thrown away at will and built again: the
transactions of the journal know nothing of it. It lags a little; what is newer is read from the journal. It
holds the letters of each group of events, three by three, and what each event stands on.
Source: spec steering §4 T18, §1 row 43.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from engine.journal.blobs import BlobStore, blob_named
from engine.journal.errors import BlobError, JournalReadError
from engine.journal.event import WORKSPACE
from engine.journal.events import SnapshotTaken
from engine.journal.rows import COLUMNS, to_event
from engine.journal.schema import read_only_uri
from engine.journal.store import DATA_DIRECTORY, DATABASE

if TYPE_CHECKING:
    from engine.inquiry.kept import KeptRecord

INDEX = "index.db"
"""The file, in the data directory."""
FORMAT = "2"
"""Raised whenever what is kept changes its shape; an index of another format is thrown away."""
GROUP = 32
"""Events whose letters are kept together; a search looks through whole groups."""
STEP = 512
"""Events taken in at a time; a multiple of a group."""
LEAST = 1_024
"""Events that are not indexed before it is worth going on."""
AHEAD = 256
"""Newest events that are left to be read from the journal: what a program did to files, a later one tells."""
PAUSE_S = 0.05
"""Between two steps, so that a long journal that is indexed for the first time leaves room for all else."""
BLOB_LIMIT = 8 * 1024 * 1024
"""Bytes of a blob that is looked into."""
MEMORYS = f"{WORKSPACE}@memory"
"""The stream of memory, which is searched as memory."""
LARGE = """(kind = 'action.finished' and body not like '%"blob":null%')"""
"""Which events have their whole answer in a blob."""

_TABLES = (
    "create table about(key text primary key, value text not null) strict",
    "create virtual table words using fts5(body, content='', detail=none, tokenize='trigram')",
    """create table links(seq integer not null, place integer not null, basis text not null,
        relation text not null, primary key(seq, place)) strict, without rowid""",
    "create index links_by_basis on links(basis, seq)",
    """create table named(name text not null, owner text not null, seq integer not null, ref text not null,
        primary key(name, owner, seq)) strict, without rowid""",
    """create table held(sort text not null, owner text not null, key text not null, value text not null,
        primary key(sort, owner, key)) strict""",
)
_WORDS = f"""
insert into words(rowid, body)
select seq / {GROUP}, group_concat(stream || ' ' || kind || ' ' || body
    || case when {LARGE} then char(10) || blob_text(body) else '' end, char(10))
from journal.events where seq >= ? and seq < ? and stream <> '{MEMORYS}' group by seq / {GROUP}
"""
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
    path = workspace / DATA_DIRECTORY / INDEX
    connection: sqlite3.Connection | None = None
    try:
        if not path.is_file():
            return None
        connection = _connected(read_only_uri(path), workspace)
        connection.execute("begin")
        if (reached := _reached(connection)) is not None:
            return connection, reached
    except sqlite3.Error:
        pass
    if connection is not None:
        connection.close()
    return None


def groups_with(connection: sqlite3.Connection, texts: Sequence[str], below: int) -> list[int]:
    """The groups of events below a place that may hold all of some texts, newest first.

    Raises:
        sqlite3.Error: the index cannot be read.
    """
    wanted = [query for text in texts for piece in pieces(text) if (query := _query(connection, piece))]
    if not wanted:
        return list(range((below - 1) // GROUP, -1, -1))
    found = connection.execute(
        "select rowid from words where words match ? and rowid < ? order by rowid desc",
        (" AND ".join(wanted), below // GROUP),
    )
    return [group for (group,) in found]


def _query(connection: sqlite3.Connection, piece: str) -> str:
    """The question for three letters, or for those that two stand in; empty where that is no help."""
    if len(piece) == 3:
        return _quoted(piece)
    connection.execute("create virtual table if not exists temp.triples using fts5vocab(main, words, row)")
    found = connection.execute(
        "select term from temp.triples where instr(term, ?) limit ?", (piece, FEW + 1)
    ).fetchall()
    if len(found) > FEW:
        return ""
    # Where the letters are nowhere, three of them that are nowhere either stand for them.
    return "(" + " OR ".join(_quoted(term) for (term,) in found or [(piece + piece[:1],)]) + ")"


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _connected(database: str, workspace: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(database, uri=True, isolation_level=None, timeout=5, check_same_thread=False)
    try:
        connection.execute("attach ? as journal", (read_only_uri(workspace / DATA_DIRECTORY / DATABASE),))
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _reached(connection: sqlite3.Connection) -> int | None:
    """Up to where events are indexed; None where the index is not of this journal or this format."""
    about = dict(connection.execute("select key, value from about"))
    if about.get("format") != FORMAT:
        return None
    if "seq" not in about:
        return 0
    known = connection.execute(
        "select hash from journal.events where seq = ?", (int(about["seq"]),)
    ).fetchone()
    return int(about["seq"]) + 1 if known == (about.get("hash"),) else None


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
        self._record: KeptRecord | None = None
        self._below = 0
        """The place of the first event that is not in it."""
        self._failures = 0

    async def bring_forward(self, last_seq: int) -> None:
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
        for _ in range(2):
            connection = _connected(self._path.absolute().as_uri(), self._workspace)
            try:
                connection.execute("pragma journal_mode = wal")
                # A cache: after a power cut it is found out to be damaged, or to lag.
                connection.execute("pragma synchronous = off")
                if not connection.execute("select 1 from sqlite_schema limit 1").fetchone():
                    _begin(connection)
                reached = _reached(connection) if _has_about(connection) else None
            except BaseException:
                connection.close()
                raise
            if reached is not None:
                self._use(connection, reached)
                return
            connection.close()
            self._remove()

    def _use(self, connection: sqlite3.Connection, reached: int) -> None:
        from engine.inquiry.kept import KeptRecord

        connection.create_function("blob_text", 1, self._blob_text)
        self._connection, self._below = connection, reached
        self._record = KeptRecord(connection, reached)

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

    def _blob_text(self, body: str) -> str:
        """What the blob that an event names says; empty where it cannot be had."""
        from engine.inquiry.finding_events import text_of

        try:
            content = self._blobs.read(blob_named(body))[:BLOB_LIMIT]
        except (BlobError, ValueError):
            return ""
        return text_of(content.decode("utf-8", "replace"))

    def _let_go(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.execute("pragma wal_checkpoint(truncate)")
            self._connection.close()
        self._connection = self._record = None

    def _remove(self) -> None:
        self._below = 0
        for path in (self._path, *(self._path.with_name(f"{INDEX}-{more}") for more in ("wal", "shm"))):
            with suppress(OSError):
                path.unlink()


def _has_about(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("select 1 from sqlite_schema where name = 'about'").fetchone())


def _begin(connection: sqlite3.Connection) -> None:
    """Make the tables of an index that has nothing yet."""
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute("insert into about values('format', ?)", (FORMAT,))


def as_json(value: object) -> str:
    """A value as it is held."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
