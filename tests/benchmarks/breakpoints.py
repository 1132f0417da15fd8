"""What breakpoints cost: folding events with 3, 10 and 50 of them beside folding without any, and a dry run.

The events are those of an agent that works through goals of ten actions each, read back from the journal as a
live agent folds them. None of the breakpoints holds. The baseline is the same fold without breakpoints;
`share` is what they add of the time that an event takes to be made, hashed, written and folded (limit 0.05).
Run it with `python -m tests.benchmarks.breakpoints`.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engine.core import events as ev
from engine.core.breakpoints import read_break
from engine.core.fold import apply, fold
from engine.core.journal import GENESIS, Event
from engine.core.ports import SystemClock
from engine.core.state import AgentState
from engine.core.store.sqlite import SqliteJournal
from engine.core.streams import StreamLog
from engine.inquiry.dry_run import DryRun
from tests.benchmarks.opening import Flight

EVENTS = int(os.environ.get("PILOTHOUSE_BENCH_EVENTS", "100000"))
FOLDED = 10_000
ROUNDS = 7
LINES = (
    "tool write path=*.toml when failures > 2",
    "belief tests_green true->false",
    "goal failed",
    "plan revised",
    "error NETWORK*",
    "result Traceback",
    "spend g1 $0.50",
    "every 1000000",
    "step nothing",
    "tool delete",
)


def rows() -> list[dict[str, Any]]:
    """The rows of CONTRACTS.md's bench form."""
    events, writing = asyncio.run(_written(EVENTS))
    few = events[:FOLDED]
    # By turns, so that whatever else the machine does meets all alike.
    times: dict[int, list[float]] = {0: [], 3: [], 10: [], 50: []}
    for _ in range(ROUNDS):
        for count in times:
            times[count].append(_per_event(few, count))
    base = min(times[0])
    found = [
        {
            **_row(
                f"fold of an event with {count} breakpoints vs none",
                min(times[count]) * 1e6,
                base * 1e6,
                "us",
            ),
            "share": round((min(times[count]) - base) / (base + writing), 4),
            "n": FOLDED,
        }
        for count in (3, 10, 50)
    ]
    dry = DryRun([read_break(line) for line in LINES])
    took = _timed(lambda: dry.take(events))
    plain = _timed(lambda: fold(events))
    found.append({**_row("dry run of 10 breakpoints vs fold alone", took, plain, "s"), "n": len(events)})
    return found


def _row(name: str, ours: float, baseline: float, unit: str) -> dict[str, Any]:
    return {
        "name": f"breakpoints: {name} (lower is better)",
        "ours": round(ours, 3),
        "baseline": round(baseline, 3),
        "ratio": round(ours / baseline, 3),
        "unit": unit,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}",
    }


def _per_event(events: Sequence[Event], count: int) -> float:
    """Seconds that an event takes to be folded with so many breakpoints."""
    state = AgentState()
    for number in range(count):
        line = LINES[number % len(LINES)]
        said = ev.BreakpointAdded(breakpoint=f"b{number + 1}", spec=read_break(line))
        apply(state, Event("pilot", number + 1, "", 0, "operator:x", (), said.kind, said.body(), ""))
    return _timed(lambda: fold(events, state)) / len(events)


def _timed(work: Callable[[], object]) -> float:
    # Of the processor, not of the clock on the wall: what else the machine does counts for neither side.
    began = time.process_time()
    work()
    return time.process_time() - began


async def _written(count: int) -> tuple[list[Event], float]:
    """The events of a long life, through a real journal; seconds of the processor to write one."""
    with tempfile.TemporaryDirectory() as directory:
        store = await SqliteJournal.open(Path(directory), clock=SystemClock())
        try:
            began = time.process_time()
            log = StreamLog("pilot", 0, GENESIS, SystemClock(), store.commit)
            flight, number = Flight(log), 0
            while log.version < count:
                number += 1
                flight.goal(number)
                await log.commit()
            await log.close()
            writing = (time.process_time() - began) / log.version
            return (await store.read("pilot"))[:count], writing
        finally:
            await store.close()


if __name__ == "__main__":
    for row in rows():
        print(json.dumps(row))
