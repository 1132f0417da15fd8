"""A model at the helm, by a scripted server: how fast its stream is cut, how fast what it did is replayed.

* cutting a stream: from the key to the partial answer, recorded and shown as cut off in a real cockpit on a
  pseudo-terminal, beside the limit of 250 ms;
* replaying: fifty sessions of ten kinds, recorded with a model that takes its time (0.4 to 1.2 s to the first
  byte, then piece by piece), replayed without it, beside the time that they took.

Run it with `python -m tests.benchmarks.model`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.cli.sessions import query_sessions
from tests.benchmarks.cockpit import Screen, pilothouse, row
from tests.engine.agent.recorded_sessions import Recorded, record
from tests.messages_server import MessagesServer, Reply, Seen

CUTS = 24
CUT_LIMIT_MS = 250.0
SESSIONS = 50
SIDE_BY_SIDE = 5
SPEED_WANTED = 50
COLUMNS = 220
"""So many that the line that says so stands in one row."""
CUT_OFF = b"cut off"
MODEL = "claude-opus-4-6"


# ------------------------------------------------------------------ cutting a stream


class _Slow:
    """A model that goes on speaking for longer than anybody waits; each answer begins with its number."""

    def __init__(self) -> None:
        self.answers = 0

    def __call__(self, _seen: Seen) -> Reply:
        self.answers += 1
        usage = {"input_tokens": 1_000 * (1_000 + self.answers), "output_tokens": 20}
        text = f"answer{self.answers} " + "and so on " * 500
        return Reply(text=text, usage=usage, event_delay_ms=20)


@contextmanager
def _speaking() -> Iterator[str]:
    """The slow model on a loop of its own; yields its address."""
    loop = asyncio.new_event_loop()
    server = MessagesServer([_Slow()], repeat=True)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result()
        yield server.url
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _cutting() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as place, _speaking() as url:
        os.environ.update(ANTHROPIC_BASE_URL=url, PILOTHOUSE_MODEL=MODEL)
        try:
            shown, pressed = _cuts(Path(place))
        finally:
            for name in ("ANTHROPIC_BASE_URL", "PILOTHOUSE_MODEL"):
                del os.environ[name]
        recorded = _recorded_after(Path(place), pressed)
    limit, beside = [CUT_LIMIT_MS], "limit of 250 ms"
    return [
        row("cockpit, key to cut stream, recorded, median", recorded, limit, "ms", CUTS, baseline=beside),
        row(
            "cockpit, key to cut stream, recorded, worst", [max(recorded)], limit, "ms", CUTS, baseline=beside
        ),
        row("cockpit, key to cut stream, shown, median", shown, limit, "ms", CUTS, baseline=beside),
        row("cockpit, key to cut stream, shown, worst", [max(shown)], limit, "ms", CUTS, baseline=beside),
    ]


def _cuts(workspace: Path) -> tuple[list[float], list[datetime]]:
    """Milliseconds from each key to the screen, and the moments of the keys."""
    made = pilothouse("do", "--workspace", str(workspace), "goal think for long")
    subprocess.run(
        pilothouse("do", "--workspace", str(workspace), "agent_create bdi_agent pilot-1"),
        check=True,
        capture_output=True,
    )
    subprocess.run(made, check=True, capture_output=True)
    shown: list[float] = []
    pressed: list[datetime] = []
    with Screen(pilothouse("--workspace", str(workspace)), columns=COLUMNS) as screen:
        screen.wait_for(b"6 Mind", b"think for long")
        screen.drain(1.0)
        for number in range(1, CUTS + 1):
            screen.press(b" ")
            screen.wait_for(f"answer{number} ".encode())
            screen.drain(0.3)
            pressed.append(datetime.now(UTC))
            key = screen.press(b".")
            # Its tokens tell the line of this answer from those of the answers before.
            shown.append((screen.wait_for(f"{MODEL}: {1_000 + number}".encode(), CUT_OFF) - key) * 1000)
            screen.drain(0.5)
    return shown, pressed


def _recorded_after(workspace: Path, pressed: Sequence[datetime]) -> list[float]:
    """Milliseconds from each key to the time of the partial answer in the journal."""
    with closing(sqlite3.connect(f"file:{workspace}/.pilothouse/journal.db?mode=ro", uri=True)) as database:
        rows = database.execute("select at, body from events where kind = 'model.called' order by seq")
        calls = [(datetime.fromisoformat(at), json.loads(body)) for at, body in rows]
    if len(calls) != len(pressed) or not all(call["partial"] and not call["error"] for _, call in calls):
        raise AssertionError(f"{len(pressed)} keys, and not as many answers that were cut off and kept")
    return [(at - key).total_seconds() * 1000 for (at, _), key in zip(calls, pressed, strict=True)]


# ------------------------------------------------------------------ replaying


async def _record_all(place: Path) -> list[Recorded]:
    turn = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(number: int) -> Recorded:
        async with turn:
            return await record(place / f"session{number}", number, leisurely=True)

    return await asyncio.gather(*(one(number) for number in range(SESSIONS)))


def _took(workspace: Path) -> float:
    """Seconds from the first to the last event of a journal."""
    with closing(sqlite3.connect(f"file:{workspace}/.pilothouse/journal.db?mode=ro", uri=True)) as database:
        (first, last) = database.execute("select min(at), max(at) from events").fetchone()
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def _replay(recorded: Recorded) -> float:
    """Seconds that reading and replaying a session takes; a wrong head or a call of a model is an error."""

    async def again() -> dict[str, Any]:
        return (await query_sessions(recorded.workspace, "replay", ""))[1]

    begin = time.perf_counter()
    answer = asyncio.run(again())
    took = time.perf_counter() - begin
    if not answer["matches"] or answer["head"] != recorded.head or answer["model_calls"]:
        raise AssertionError(f"{recorded.name}: {answer}")
    return took


def _replaying() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        # The servers are gone before the first replay: what is asked then would be an error.
        sessions = asyncio.run(_record_all(Path(place)))
        lasted = [_took(one.workspace) for one in sessions]
        took = [_replay(one) for one in sessions]
    asked = sum(one.requests for one in sessions)
    name = (
        f"replay, {SESSIONS} recorded sessions, {len(took)} of them to the same head, {asked} calls of the "
        f"model recorded and 0 made again; ratio is how many times faster (wanted: {SPEED_WANTED})"
    )
    return row(name, [sum(took)], [sum(lasted)], "s", SESSIONS, baseline="recorded time") | {
        "ratio": round(sum(lasted) / sum(took), 1),
        "slowest": round(min(a / b for a, b in zip(lasted, took, strict=True)), 1),
        "median_session_s": round(statistics.median(lasted), 2),
    }


def rows() -> list[dict[str, Any]]:
    """The rows of CONTRACTS.md's bench form."""
    return [*_cutting(), _replaying()]


if __name__ == "__main__":
    for found in rows():
        print(json.dumps(found))
