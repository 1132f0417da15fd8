"""Going to any point of 100,000 events, searching 200,000, and asking why: how long an answer takes.

The session is long but real (`long_session`). Baselines are the limits of spec steering §4: any point in 200
ms (T10), first hits in 300 ms (T18). Rows that say so are of a workspace just opened, with nothing prepared.
Run it with `python -m tests.benchmarks.looking_back`.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import random
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from engine.core.streams import StreamHistory
from engine.inquiry.event_search import EventSearch
from engine.inquiry.index_writer import JournalIndex
from engine.inquiry.indexed_record import record_of
from engine.inquiry.search import Batch, Source, parse_query, run_search
from engine.inquiry.why import backward
from tests.benchmarks.long_session import AGENT, make, named

EVENTS = int(os.environ.get("PILOTHOUSE_BENCH_EVENTS", "100000"))
POINTS, TRIES = 60, 5
PREPARE_MS = 60_000.0
SEEK_MS, SCRUB_MS, SEARCH_MS, WHY_MS = 200.0, 50.0, 300.0, 200.0
ABSENT = "quetzalcoatlus"
"""A word that the journal does not have."""


def row(name: str, found: Sequence[float], limit: float, n: int, part: float = 0.95) -> dict[str, Any]:
    """One row: the part of the times that is named, in milliseconds, beside its limit."""
    worst = sorted(found)[min(len(found) - 1, int(len(found) * part))] * 1000
    return {
        "name": f"{name} (lower is better) vs limit",
        "ours": round(worst, 1),
        "baseline": limit,
        "ratio": round(worst / limit, 3),
        "unit": "ms",
        "median": round(sorted(found)[len(found) // 2] * 1000, 1),
        "n": n,
        "load": round(os.getloadavg()[0], 1),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
    }


async def _looking_back(store: SqliteJournal, dice: random.Random) -> list[dict[str, Any]]:
    past = StreamHistory(store, AGENT)
    head = await past.head()
    cold = await _timed_state(StreamHistory(store, AGENT), dice.randint(1, head))
    begin = time.perf_counter()
    await past.prepare()
    prepared = time.perf_counter() - begin
    jumps = [await _timed_state(past, dice.randint(1, head)) for _ in range(POINTS)]
    marks = [mark.version for mark in await past.marks()]
    begin_at = dice.randrange(len(marks) - POINTS)
    scrub = [await _timed_state(past, version) for version in marks[begin_at : begin_at + POINTS]]
    of = f"of {head} events"
    return [
        row(f"state at a random point {of}, p95", jumps, SEEK_MS, POINTS),
        row(f"state at the next mark {of}, p95", scrub, SCRUB_MS, POINTS),
        row(f"state at the first point looked at {of}, nothing prepared", [cold], SEEK_MS, 1),
        row(f"preparing all points {of}, behind the screen", [prepared], PREPARE_MS, 1),
    ]


async def _timed_state(past: StreamHistory, at: int) -> float:
    begin = time.perf_counter()
    await past.state(at)
    return time.perf_counter() - begin


async def _searching(workspace: Path, seq: int, note: str) -> list[dict[str, Any]]:
    asked = {
        "a word of the oldest event": named(0),
        "a word that is nowhere, until that is said": ABSENT,
        "a word of nearly all": "navigation",
        "two letters": "zq",
    }
    found = {what: [await _first(workspace, text) for _ in range(TRIES)] for what, text in asked.items()}
    return [
        row(f"search of {seq} events{note}, {what}, worst", took, SEARCH_MS, TRIES, 1.0)
        for what, took in found.items()
    ]


async def _first(workspace: Path, text: str) -> float:
    """Seconds until the first hit, or until it is said that there is none."""
    begin, first = time.perf_counter(), 0.0

    def tell(batch: Batch) -> None:
        nonlocal first
        if batch.hits and not first:
            first = time.perf_counter() - begin

    searches = [(Source.EVENT, EventSearch(workspace))]
    await run_search(parse_query(text), searches, tell)
    return first or time.perf_counter() - begin


async def _asking(store: SqliteJournal, workspace: Path, note: str, count: int) -> dict[str, Any]:
    dice, head, found = random.Random(11), (await store.head(AGENT)).version, []
    for _ in range(count):
        ref = f"{AGENT}:{dice.randint(1, head)}"
        begin = time.perf_counter()
        record = await record_of(workspace, store)
        backward(record, record.subject(ref).newest)
        found.append(time.perf_counter() - begin)
    return row(f"why of {head} events{note}, back to its source, p95", found, WHY_MS, count)


async def _measure(workspace: Path, count: int, *, back: bool) -> list[dict[str, Any]]:
    await asyncio.to_thread(make, workspace, count)
    store = await SqliteJournal.open(workspace, clock=SystemClock(), read_only=True)
    try:
        found = await _looking_back(store, random.Random(7)) if back else []
        seq = await store.head_seq()
        found += [
            *(await _searching(workspace, seq, ", no index yet")),
            await _asking(store, workspace, ", no index yet", 1),
        ]
        index, begin = JournalIndex(workspace), time.perf_counter()
        await index.update(seq)
        await index.close()
        took = time.perf_counter() - begin
        found.append(row(f"indexing {seq} events, behind the screen", [took], PREPARE_MS, 1))
        return [*found, *(await _searching(workspace, seq, "")), await _asking(store, workspace, "", POINTS)]
    finally:
        await store.close()


def rows() -> list[dict[str, Any]]:
    """The rows of CONTRACTS.md's bench form."""
    found = []
    for count, back in ((EVENTS, True), (2 * EVENTS, False)):
        with tempfile.TemporaryDirectory() as place:
            found += asyncio.run(_measure(Path(place), count, back=back))
    return found


if __name__ == "__main__":
    for one in rows():
        print(json.dumps(one))
