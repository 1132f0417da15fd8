"""Where a journal comes from, looked at before it is opened: its first event, and how much it holds."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from engine.core.journal import GENESIS, WORKSPACE
from engine.core.store.schema import read_only_uri

UNREADABLE = "unreadable"
"""Stands for the hash of a journal that cannot be read."""
WAIT_S = 5
"""How long a writer of the journal is waited for."""


def first_hash(path: Path) -> str:
    """The hash of the workspace's first event; empty where there is none yet. Blocking."""
    if not os.path.lexists(path):
        return GENESIS
    rows = _ask(path, "select hash from events where stream = ? order by version limit 1", (WORKSPACE,))
    return UNREADABLE if rows is None else str(rows[0][0]) if rows else GENESIS


def count_kinds(path: Path) -> dict[str, int]:
    """How many events of each kind a journal has; empty where it cannot be read. Blocking."""
    rows = _ask(path, "select kind, count(*) from events group by kind", ())
    return {str(kind): int(count) for kind, count in rows or ()}


def _ask(path: Path, sql: str, values: Sequence[str]) -> list[tuple[str, ...]] | None:
    if not path.is_file():
        return None
    try:
        with closing(sqlite3.connect(read_only_uri(path), uri=True, timeout=WAIT_S)) as database:
            return database.execute(sql, values).fetchall()
    except (sqlite3.Error, UnicodeDecodeError):
        return None
