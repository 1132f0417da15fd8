"""What an event takes on the disk, in real sessions once and ten times over, beside the limit of 5 KB.

Counted are the bytes of `journal.db` and of its index after closing, without blobs and without kept states.
Ten times as many events take ten times as much where the last row's ratio is 1. Source: spec steering §4 T9.
Run it with `python -m tests.benchmarks.storage`.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from engine.inquiry.index_writer import JournalIndex
from engine.inquiry.indexed_record import INDEX
from tests.benchmarks.cockpit import _flown
from tests.benchmarks.long_session import make
from tests.engine.agent.recorded_sessions import record

LIMIT_BYTES = 5 * 1024


def taken(workspace: Path, name: str = "journal.db") -> tuple[int, int]:
    """Events of a closed workspace, and the bytes that a database of it takes without free pages and states.

    Args:
        workspace: the workspace.
        name: the journal or its index.
    """
    data = workspace / ".pilothouse"
    with closing(sqlite3.connect(data / "journal.db")) as journal:
        ((events,),) = journal.execute("select count(*) from events")
        journal.execute("delete from snapshots")
        journal.commit()
        journal.execute("vacuum")
    return events, (data / name).stat().st_size if (data / name).exists() else 0


def _first_flight(workspace: Path) -> None:
    _flown(workspace)


def _by_a_model(workspace: Path) -> None:
    asyncio.run(record(workspace, 0))


def _by_rules(workspace: Path) -> None:
    asyncio.run(record(workspace, 4))


SESSIONS: dict[str, Callable[[Path], None]] = {
    "first flight": _first_flight,
    "planned by a model": _by_a_model,
    "a reasoner with generated plans": _by_rules,
}


def rows() -> list[dict[str, Any]]:
    """A row for each sort of session, and how the bytes grow from 2,000 events to 20,000."""
    found = []
    for name, fly in SESSIONS.items():
        with tempfile.TemporaryDirectory() as place:
            fly(Path(place))
            events, size = taken(Path(place))
            found.append(_row(f"journal, {name}", size / events, events))
    sizes: list[float] = []
    for count in (2_000, 20_000):
        with tempfile.TemporaryDirectory() as place:
            make(Path(place), count)
            asyncio.run(_index(Path(place), count))
            _, index = taken(Path(place), INDEX)
            events, size = taken(Path(place))
            sizes.append(size / events)
            found.append(_row(f"journal of {count} events", size / events, events))
            found.append(_row(f"index of {count} events", index / events, events))
    found.append({**found[-2], "name": "bytes an event, ten times as many vs once", "ours": round(sizes[1])})
    found[-1] |= {"baseline": round(sizes[0]), "ratio": round(sizes[1] / sizes[0], 3)}
    return found


async def _index(workspace: Path, seq: int) -> None:
    index = JournalIndex(workspace)
    await index.update(seq)
    await index.close()


def _row(name: str, ours: float, events: int) -> dict[str, Any]:
    return {
        "name": f"bytes an event, {name} (lower is better) vs limit",
        "ours": round(ours),
        "baseline": LIMIT_BYTES,
        "ratio": round(ours / LIMIT_BYTES, 3),
        "unit": "bytes",
        "n": events,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
    }


if __name__ == "__main__":
    for one in rows():
        print(json.dumps(one))
