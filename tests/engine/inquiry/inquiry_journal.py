"""Journals with events that were never lived through, for searches that need many."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from engine.core.ports import SystemClock
from engine.core.store.port import DATA_DIRECTORY, DATABASE
from engine.core.store.sqlite import SqliteJournal


async def journal_of(workspace: Path, events: Iterable[tuple[str, str, dict[str, Any]]]) -> None:
    """A journal with these events (stream, kind, payload), a second apart; their hashes are empty."""
    store = await SqliteJournal.open(workspace, clock=SystemClock())
    await store.close()
    await asyncio.to_thread(_insert, workspace / DATA_DIRECTORY / DATABASE, events)


def _insert(path: Path, events: Iterable[tuple[str, str, dict[str, Any]]]) -> None:
    versions: dict[str, int] = {}
    rows = []
    for at, (stream, kind, payload) in enumerate(events):
        versions[stream] = versions.get(stream, 0) + 1
        time = f"2026-01-{1 + at // 86_400:02}T{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}.000000Z"
        body = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        rows.append((stream, versions[stream], time, 0, "agent", "[]", kind, body, ""))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "insert into events(stream, version, at, tick, actor, causes, kind, body, hash) "
            "values(?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
