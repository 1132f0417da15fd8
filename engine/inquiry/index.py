"""An index of the journal, so that searching and asking why need not read all of it.

A cache in a database of its own, written behind the screen, thrown away at will and built again: the
transactions of the journal know nothing of it. It lags a little; what is newer is read from the journal. It
holds the letters of each group of events, three by three, and what each event depends on.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from engine.core.journal import WORKSPACE
from engine.core.store import JOURNAL
from engine.core.store.places import is_plain, is_untouched
from engine.core.store.port import DATA_DIRECTORY, DATABASE
from engine.core.store.schema import read_only_uri

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
