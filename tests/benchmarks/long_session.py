"""Long sessions to measure in: the first mission, flown once for real and recorded again and again.

Each time it is another goal with other ids and another directory, and its events stand on one another as they
did; so kinds, sizes and causes of the events are those of a real session.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import cache, partial
from pathlib import Path

from engine.core.journal import GENESIS, Event, chain_hash
from engine.core.ports import SystemClock
from engine.core.store.schema import COLUMNS, read_only_uri, to_event
from engine.core.store.sqlite import SqliteJournal

AGENT = "pilot-1"
NAME = "first_flight"
"""What the mission calls its directory."""
_IDS = re.compile(rf'"({AGENT}:)?(bg|[gspa])(\d+)"')
_SHIFT = {"g": 1, "p": 1, "s": 20, "a": 20, "bg": 20}
"""How far ids of a kind are moved on each time."""
BATCH = 2_000


def named(number: int) -> str:
    """What the directory of the goal of that number is called, from 0; it occurs nowhere else."""
    return f"flight{number:05d}x"


def make(workspace: Path, count: int) -> None:
    """Record a session of at least so many events in an empty workspace."""
    asyncio.run(_write(workspace, list(_again(list(_flown()), count))))


@cache
def _flown() -> tuple[Event, ...]:
    """The agent's events of the first mission, flown once in this process' life."""
    with tempfile.TemporaryDirectory() as place:
        flown = [
            sys.executable,
            "-m",
            "app.cli.main",
            "run",
            "--workspace",
            place,
            "--mission",
            "first-flight",
        ]
        subprocess.run([*flown, "--quiet"], check=True, capture_output=True)
        with closing(
            sqlite3.connect(read_only_uri(Path(place, ".pilothouse/journal.db")), uri=True)
        ) as database:
            rows = database.execute(f"select {COLUMNS} from events where stream = ? order by seq", (AGENT,))
            return tuple(to_event(row) for row in rows)


def _again(events: list[Event], count: int) -> Iterator[Event]:
    """The events until the first command, then all behind it again and again."""
    begin = next(place for place, event in enumerate(events) if event.kind == "command.received")
    last = next(place for place, event in enumerate(events) if event.kind == "goal.ended")
    opening, flight = events[:begin], events[begin : last + 1]
    yield from opening
    digest = opening[-1].hash if opening else GENESIS
    version, number = len(opening), 0
    while version < count:
        moved = number * len(flight)
        for event in flight:
            version += 1
            body = _IDS.sub(partial(_moved, number), event.body).replace(NAME, named(number))
            causes = tuple(_cause(cause, begin, moved) for cause in event.causes)
            place = (
                AGENT,
                version,
                event.at,
                event.tick + number * 20,
                event.actor,
                causes,
                event.kind,
                body,
            )
            digest = chain_hash(digest, *place)
            yield Event(*place, digest)
        number += 1


def _moved(number: int, found: re.Match[str]) -> str:
    return f'"{found[1] or ""}{found[2]}{int(found[3]) + number * _SHIFT[found[2]]}"'


def _cause(cause: str, begin: int, moved: int) -> str:
    version = int(cause.rpartition(":")[2])
    return f"{AGENT}:{version + moved if version > begin else version}"


async def _write(workspace: Path, events: list[Event]) -> None:
    store = await SqliteJournal.open(workspace, clock=SystemClock())
    try:
        for place in range(0, len(events), BATCH):
            await store.commit(events[place : place + BATCH])
    finally:
        await store.close()
