"""One flipped bit anywhere in a record: is it named? Some hundred bits of it, one by one.

A flip is found when `sessions verify` names an event, a blob or the database, or the journal is refused as
damaged. What is not found must be no part of the record for certain: all rows of events, and the place given
last, read as before. The baseline is the flips that fell on the record. Source: spec steering §4 T25.
Run it with `python -m tests.benchmarks.flipping`.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.cli.sessions import query_sessions
from app.commands.headless import open_engine
from app.commands.missions import wait_until
from engine.core import commands as cmd
from engine.core.journal import JournalError
from engine.core.store.schema import COLUMNS, read_only_uri

FLIPS = 400
JOURNAL = Path(".pilothouse/journal.db")


@dataclass
class Tally:
    """What came of many flips."""

    found: int = 0
    unused: int = 0
    """Flips that change nothing of the record."""
    silent: list[str] = field(default_factory=list)
    """Flips of the record that nobody noticed."""


async def recorded(workspace: Path) -> None:
    """A short session with an answer that lies in a blob, closed."""
    async with open_engine(workspace) as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        content = "x\n" * 60_000
        calls: list[tuple[str, dict[str, Any]]] = [
            *(("write", {"path": f"f{number}.txt", "content": f"text {number}\n"}) for number in range(6)),
            ("write", {"path": "long.txt", "content": content}),
            ("read", {"path": "long.txt"}),
        ]
        for command, args in calls:
            receipt = await engine.submit(cmd.CallTool(agent="pilot", command=command, args=args))
            assert receipt.ok, receipt.message
            await wait_until(engine, "pilot", lambda state: not state.requests and not state.busy)


async def flip(workspace: Path, places: Iterable[tuple[Path, int]], dice: random.Random) -> Tally:
    """Flip one bit at each place of a copy of a workspace, look what verification says, and put it back.

    Args:
        workspace: a closed workspace; it is as before when this returns.
        places: files from the workspace, and a byte in each.
        dice: chooses the bit.
    """
    tally, whole = Tally(), _record_of(workspace)
    for name, place in places:
        path = workspace / name
        with path.open("r+b") as file:
            _flip(file.fileno(), place, bit := 1 << dice.randrange(8))
        if await _is_named(workspace):
            tally.found += 1
        elif name == JOURNAL and _record_of(workspace) == whole:
            tally.unused += 1
        else:
            tally.silent.append(f"{name} byte {place} bit {bit}")
        with path.open("r+b") as file:
            _flip(file.fileno(), place, bit)
    return tally


def _flip(descriptor: int, place: int, bit: int) -> None:
    (byte,) = os.pread(descriptor, 1, place)
    os.pwrite(descriptor, bytes([byte ^ bit]), place)


async def _is_named(workspace: Path) -> bool:
    try:
        code, answer, _ = await query_sessions(workspace, "verify", "")
    except JournalError:
        return True
    return code == 1 and bool(answer["first_bad"]) and bool(answer["reason"])


def _record_of(workspace: Path) -> list[tuple[Any, ...]] | None:
    """All that belongs to the record in the database, as it is read row by row; None where it cannot be."""
    try:
        with closing(sqlite3.connect(read_only_uri(workspace / JOURNAL), uri=True)) as database:
            rows = database.execute(f"select {COLUMNS} from events not indexed order by seq").fetchall()
            return [*rows, *database.execute("select * from sqlite_sequence")]
    except sqlite3.Error:
        return None


def columns_of(workspace: Path, dice: random.Random, rows: int) -> list[tuple[Path, int]]:
    """A byte of every text column of some rows, where it lies in the file."""
    content = (workspace / JOURNAL).read_bytes()
    with closing(sqlite3.connect(read_only_uri(workspace / JOURNAL), uri=True)) as database:
        everything = database.execute(f"select {COLUMNS} from events order by seq").fetchall()
    found = []
    for row in dice.sample(everything, rows):
        at = content.find(row[9].encode())
        body = content.rfind(str(row[8])[-40:].encode(), 0, at)
        if at < 0 or body < 0:
            continue  # the row goes on in another page
        found.append(at + dice.randrange(64))
        found += [max(0, body - back) for back in range(0, len(row[8]), max(1, len(row[8]) // 6))]
        head = content.rfind(f"{row[1]}".encode(), 0, max(1, body - len(row[8]) + 41))
        found += [head + more for more in range(-12, 70, 5)]
    return [(JOURNAL, place) for place in found if 0 <= place < len(content)]


def everywhere(workspace: Path, dice: random.Random, count: int) -> list[tuple[Path, int]]:
    """Random bytes of the journal, one in eight of a blob."""
    blobs = sorted(path for path in (workspace / ".pilothouse/blobs").rglob("*") if path.is_file())
    files = [JOURNAL] * 7 + [path.relative_to(workspace) for path in blobs[:1]]
    chosen = [dice.choice(files) for _ in range(count)]
    return [(name, dice.randrange((workspace / name).stat().st_size)) for name in chosen]


async def _measured(flips: int, seed: int) -> Tally:
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        await recorded(Path(place))
        shutil.rmtree(Path(place, "sandbox"))
        places = columns_of(Path(place), dice, 8) + everywhere(Path(place), dice, flips)
        return await flip(Path(place), places, dice)


def rows(flips: int = FLIPS, seed: int = 20261122) -> list[dict[str, Any]]:
    """One row: flips of the record that nothing named, beside all that fell on it."""
    tally = asyncio.run(_measured(flips, seed))
    on_record = tally.found + len(tally.silent)
    return [
        {
            "name": "one flipped bit that nothing names (lower is better) vs flips that fell on the record",
            "ours": len(tally.silent),
            "baseline": on_record,
            "ratio": round(len(tally.silent) / max(1, on_record), 4),
            "unit": "flips",
            "n": on_record + tally.unused,
            "unused": tally.unused,
            "silent": tally.silent[:10],
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
            f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
        }
    ]


if __name__ == "__main__":
    for one in rows():
        print(json.dumps(one))
