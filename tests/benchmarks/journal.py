"""How fast the journal takes events, beside plain `sqlite3` doing the same transactions.

Ours is the whole way of an event: building it, its hash, a task that waits for it to be durable, and the
event handed back with its place. The baseline gets finished rows and only inserts and commits them, in one
thread, with the same schema, the same PRAGMAs (WAL, synchronous=FULL) and the same transaction sizes.
Run it with `python -m tests.benchmarks.journal`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from engine.core.journal import GENESIS, Event, canonical, chain_hash
from engine.core.ports import SystemClock
from engine.core.store.port import Row
from engine.core.store.schema import insert, placed, prepare, to_row
from engine.core.store.sqlite import SqliteJournal

ROUNDS = 5
BODY = canonical({"action": "a-12", "tool": "simple_coder", "command": "run", "output": "x" * 120})
"""About 200 bytes, the size of an ordinary payload."""


class Chain:
    """Builds the events of one stream."""

    def __init__(self, stream: str) -> None:
        self.stream, self.version, self.hash = stream, 0, GENESIS

    def next(self) -> Event:
        at, actor, kind = "2026-01-01T00:00:00.000000Z", "agent", "action.finished"
        causes = (f"{self.stream}:{self.version}",) if self.version else ()
        self.version += 1
        self.hash = chain_hash(self.hash, self.stream, self.version, at, 7, actor, causes, kind, BODY)
        return Event(self.stream, self.version, at, 7, actor, causes, kind, BODY, self.hash)


async def _ours(directory: Path, appenders: int, batch: int, commits: int) -> float:
    store = await SqliteJournal.open(directory, clock=SystemClock())

    async def appender(chain: Chain) -> None:
        for _ in range(commits):
            await store.commit([chain.next() for _ in range(batch)])

    try:
        begin = time.perf_counter()
        await asyncio.gather(*(appender(Chain(f"agent-{n}")) for n in range(appenders)))
        return appenders * batch * commits / (time.perf_counter() - begin)
    finally:
        await store.close()


def _plain(directory: Path, transactions: list[list[Row]]) -> float:
    path = directory / "plain.db"
    prepare(path, SystemClock().now())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        begin = time.perf_counter()
        for rows in transactions:
            connection.executemany(insert(1), rows)
            connection.commit()
        return sum(map(len, transactions)) / (time.perf_counter() - begin)


def _transactions(appenders: int, batch: int, commits: int) -> list[list[Row]]:
    """The rows that the appenders write, one transaction for each time that all have written once."""
    chains = [Chain(f"agent-{n}") for n in range(appenders)]
    seq = 0
    transactions = []
    for _ in range(commits):
        rows = []
        for chain in chains:
            for _ in range(batch):
                seq += 1
                rows.append(to_row(placed(chain.next(), seq)))
        transactions.append(rows)
    return transactions


def _fresh(measure: Callable[[Path], float]) -> float:
    gc.collect()
    with tempfile.TemporaryDirectory() as directory:
        return measure(Path(directory))


def _row(name: str, appenders: int, batch: int, commits: int) -> dict[str, Any]:
    transactions = _transactions(appenders, batch, commits)
    ours, plain = [], []
    for _ in range(ROUNDS):
        ours.append(_fresh(lambda path: asyncio.run(_ours(path, appenders, batch, commits))))
        plain.append(_fresh(lambda path: _plain(path, transactions)))
    our, base = statistics.median(ours), statistics.median(plain)
    return {
        "name": name,
        "ours": round(our),
        "baseline": round(base),
        "ratio": round(our / base, 3),
        "unit": "events/s",
        "n": appenders * batch * commits,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
    }


def rows() -> list[dict[str, Any]]:
    """Both ways of appending; a ratio of 1 means as fast as plain `sqlite3`, and below that slower."""
    return [
        _row("journal, batches of 100", 1, 100, 200),
        _row("journal, 16 appenders, one event each", 16, 1, 600),
    ]


if __name__ == "__main__":
    for found in rows():
        print(json.dumps(found))
