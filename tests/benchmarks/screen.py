"""How fast the cockpit answers at 200×50 in a real terminal: idle, in a stream of events, and after a burst.

* keys: from a key to the changed cells, idle and while 1,000 events a second arrive and one core is busy with
  something else; every key must be answered;
* paint: from an event's being durable to its being on the screen, at 200 events a second;
* burst: the longest that the cockpit's loop, and a key, had to wait while 50,000 events arrive at once.

Baselines are the targets of spec steering §4 T1, T2, T3; the load of the machine stands beside. Run it with
`python -m tests.benchmarks.screen`.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.benchmarks.cockpit import CURSOR, Screen, _flown, row

COLUMNS, LINES = 200, 50
KEYS = int(os.environ.get("PILOTHOUSE_BENCH_KEYS", "100"))
PAINT_S = 8.0
BURST = 50_000
P50_MS, P99_MS, PAINT_MS, PAINT_MOST_MS, FREEZE_MS = 25.0, 100.0, 100.0, 250.0, 100.0
_MARK = re.compile(rb"mark(\d{7})")


class Cockpit:
    """A driven cockpit in a terminal."""

    def __init__(self, workspace: Path, *more: str) -> None:
        read, self._orders = os.pipe()
        os.set_inheritable(read, True)
        self.notes = workspace / "notes"
        driven = [sys.executable, "-m", "tests.benchmarks.driven", str(workspace), str(read), str(self.notes)]
        self.screen = Screen([*driven, *more], columns=COLUMNS, lines=LINES)
        os.close(read)

    def order(self, text: str) -> None:
        """Have something recorded."""
        os.write(self._orders, f"{text}\n".encode())

    def noted(self, what: str) -> list[list[str]]:
        """What stands in the notes of one sort."""
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        return [line.split()[1:] for line in lines if line.startswith(f"{what} ")]


@contextmanager
def _cockpit() -> Iterator[Cockpit]:
    with tempfile.TemporaryDirectory() as place:
        _flown(Path(place))
        cockpit = Cockpit(Path(place))
        with cockpit.screen as screen:
            screen.wait_for(b"6 Mind", b"flight_plan.py", limit_s=60)
            screen.drain(3.0)
            yield cockpit


@contextmanager
def _busy_core() -> Iterator[None]:
    """One core that has something else to do."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def _keys(screen: Screen, count: int) -> list[float]:
    """Milliseconds from a cursor key to the cursor's new row; a key that is not answered ends the run."""
    found = []
    for number in range(count):
        screen.drain(0.04)
        pressed = screen.press(b"j" if number % 2 == 0 else b"k")
        found.append((screen.wait_for(CURSOR) - pressed) * 1000)
    return found


def _part(found: Sequence[float], part: float) -> float:
    return sorted(found)[min(len(found) - 1, int(len(found) * part))]


def _row(name: str, found: float, limit: float, n: int) -> dict[str, Any]:
    made = row(f"{name} (lower is better)", [found], [limit], "ms", n, baseline="limit")
    return {**made, "load": round(os.getloadavg()[0], 1)}


def _key_rows(name: str, found: Sequence[float]) -> list[dict[str, Any]]:
    return [
        _row(f"screen 200x50, key {name}, p50", _part(found, 0.5), P50_MS, len(found)),
        _row(f"screen 200x50, key {name}, p99", _part(found, 0.99), P99_MS, len(found)),
    ]


def _painted(cockpit: Cockpit, seconds: float) -> dict[int, float]:
    """The moment when each mark, or a later one, was first on the screen."""
    seen: dict[int, float] = {}
    until, rest = time.monotonic() + seconds, b""
    while (left := until - time.monotonic()) > 0:
        if select.select([cockpit.screen.fd], [], [], left)[0]:
            rest = rest[-16:] + os.read(cockpit.screen.fd, 1 << 16)
            now = time.monotonic()
            for found in _MARK.findall(rest):
                seen.setdefault(int(found), now)
    return seen


def _paint(cockpit: Cockpit) -> list[dict[str, Any]]:
    before = len(cockpit.noted("d"))
    cockpit.order("rate 200")
    seen = _painted(cockpit, PAINT_S)
    cockpit.order("rate 0")
    seen |= {mark: at for mark, at in _painted(cockpit, 1.0).items() if mark not in seen}
    found = []
    for mark, at in ((int(mark), float(at)) for mark, at in cockpit.noted("d")[before:]):
        shown = [moment for other, moment in seen.items() if other >= mark]
        if shown:
            found.append((min(shown) - at) * 1000)
        else:
            raise AssertionError(f"event {mark} was never shown")
    name = "screen 200x50, durable event to paint at 200 events/s"
    return [
        _row(f"{name}, p95", _part(found, 0.95), PAINT_MS, len(found)),
        _row(f"{name}, worst", max(found), PAINT_MOST_MS, len(found)),
    ]


def _burst(cockpit: Cockpit) -> list[dict[str, Any]]:
    before = len(cockpit.noted("s"))
    cockpit.order(f"burst {BURST}")
    found: list[float] = []
    deadline = time.monotonic() + 120
    while not cockpit.noted("b") and time.monotonic() < deadline:
        found += _keys(cockpit.screen, 2)
    found += _keys(cockpit.screen, 20)
    stalls = [float(late) * 1000 for (late,) in cockpit.noted("s")[before:]]
    name = f"screen 200x50, burst of {BURST} events"
    return [
        _row(f"{name}, longest turn of the loop", max(stalls, default=0.0), FREEZE_MS, len(stalls)),
        _row(f"{name}, key p50", _part(found, 0.5), FREEZE_MS, len(found)),
        _row(f"{name}, slowest key", max(found), FREEZE_MS, len(found)),
    ]


def rows() -> list[dict[str, Any]]:
    """The rows of CONTRACTS.md's bench form."""
    with _cockpit() as cockpit:
        found = _key_rows("idle", _keys(cockpit.screen, KEYS))
        with _busy_core():
            cockpit.order("rate 1000")
            cockpit.screen.drain(2.0)
            found += _key_rows("while 1,000 events/s arrive, one core busy", _keys(cockpit.screen, KEYS))
            cockpit.order("rate 0")
        cockpit.screen.drain(1.0)
    with _cockpit() as cockpit:
        found += _paint(cockpit)
    with _cockpit() as cockpit:
        found += _burst(cockpit)
    return found


if __name__ == "__main__":
    for one in rows():
        print(json.dumps(one))
