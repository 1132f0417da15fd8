"""How fast the cockpit answers, measured from outside: a real process on a pseudo-terminal.

* first full screen: from starting the process until every pane shows the reopened workspace, beside a bare
  Textual app with as many stock panes;
* keys under a flood: from a key to the moved cursor, while a command prints 10,000 lines a second into the
  session pane, beside the same keys in an idle cockpit;
* pausing: from the key to the recorded pause of a busy agent, beside the limit of 100 ms.

Run it with `python -m tests.benchmarks.cockpit`.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import pty
import select
import signal
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROUNDS = 7
KEYS = 60
COLUMNS, LINES = 120, 40
PAUSE_LIMIT_MS = 100.0
CURSOR = "▌".encode()
"""What the cursor's row begins with; the flood does not print it."""

BARE = """
from textual.app import App
from textual.containers import Horizontal
from textual.widgets import DataTable, Footer, Input, Log, RichLog, Static, Tree
class Bare(App):
    def compose(self):
        yield Static("status")
        with Horizontal():
            yield Tree("goals"); yield DataTable(); yield RichLog()
        with Horizontal():
            yield Log(); yield RichLog(); yield Log()
        yield Input(placeholder="last of all"); yield Footer()
Bare().run()
"""
FLOOD = (
    "! run python -c 'import sys,time; t=time.time(); n=0\n"
    "while n < 80000:\n"
    '  n += 500; print(chr(10).join(f"line {n} " + "x" * 55 for _ in range(500)), flush=True)\n'
    "  time.sleep(max(0, t + n / 10000 - time.time()))'"
)


class Screen:
    """A program on a pseudo-terminal of its own."""

    def __init__(self, argv: Sequence[str], *, columns: int = COLUMNS, lines: int = LINES) -> None:
        self.began = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            usual = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}
            usual["PILOTHOUSE_NO_TOUR"] = "1"
            # Readline puts the size of another terminal there.
            given = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES")}
            os.execve(argv[0], list(argv), {**given, **usual})
        self._cockpit = 0
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    @property
    def cockpit(self) -> int:
        """The cockpit's process: what the started one holds the terminal for, once it is there."""
        if not self._cockpit:
            self._cockpit = held_by(self.pid)
        return self._cockpit or self.pid

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in {self.cockpit, self.pid}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    def wait_for(self, *texts: bytes, limit_s: float = 20.0) -> float:
        """Read until all texts were printed since the call; the moment when the last one was."""
        seen = b""
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            if select.select([self.fd], [], [], 0.05)[0]:
                seen += os.read(self.fd, 1 << 16)
                if all(text in seen for text in texts):
                    return time.monotonic()
        raise TimeoutError(f"{texts!r} did not appear")

    def leave(self) -> None:
        """Have the cockpit close its workspace, and wait for its end."""
        os.kill(self.cockpit, signal.SIGTERM)
        with suppress(OSError):
            while os.read(self.fd, 1 << 16):
                pass

    def drain(self, seconds: float) -> None:
        """Read and forget what is printed for a while."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                os.read(self.fd, 1 << 16)

    def press(self, keys: bytes) -> float:
        """Type keys; the moment of doing so."""
        now = time.monotonic()
        os.write(self.fd, keys)
        return now


def held_by(pid: int) -> int:
    """The process in a session of its own that a launcher holds the terminal for; 0 where there is none."""
    with suppress(OSError):
        for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            if os.getsid(child) == child:
                return child
    return 0


def pilothouse(*args: str) -> list[str]:
    """The command line of the program in this source tree."""
    return [sys.executable, "-m", "app.cli.main", *args]


def _flown(workspace: Path) -> None:
    """A workspace with the first mission behind it."""
    run = pilothouse("run", "--workspace", str(workspace), "--mission", "first-flight", "--quiet")
    subprocess.run(run, check=True, capture_output=True)


def _first_screen() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        _flown(Path(place))
        ours: list[float] = []
        bare: list[float] = []
        for _ in range(ROUNDS):
            with Screen(pilothouse("--workspace", place)) as screen:
                ours.append(screen.wait_for(b"6 Mind", b"flight_plan.py", b"achieved") - screen.began)
            with Screen([sys.executable, "-c", BARE]) as screen:
                bare.append(screen.wait_for(b"last of all") - screen.began)
    return row("cockpit, first full screen (lower is better)", ours, bare, "s", ROUNDS, baseline="bare app")


def _latencies(screen: Screen, count: int) -> list[float]:
    """Milliseconds from a cursor key to the cursor's new row."""
    found = []
    for number in range(count):
        screen.drain(0.05)
        pressed = screen.press(b"j" if number % 2 == 0 else b"k")
        found.append((screen.wait_for(CURSOR) - pressed) * 1000)
    return found


def _keys_under_flood() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as place:
        _flown(Path(place))
        with Screen(pilothouse("--workspace", place)) as screen:
            screen.wait_for(b"6 Mind", b"flight_plan.py")
            screen.drain(1.0)
            idle = _latencies(screen, KEYS)
            screen.press(b":")
            screen.drain(0.3)
            screen.press(_one_line(FLOOD) + b"\r")
            screen.wait_for(b"line ")
            screen.press(b"\x1b")
            screen.drain(0.3)
            screen.press(b"2")
            screen.drain(0.3)
            flood = _latencies(screen, KEYS)
    rows = [row("cockpit, key under flood, median", flood, idle, "ms", KEYS, baseline="idle")]
    worst = sorted(flood)[int(len(flood) * 0.99) - 1]
    worst_idle = sorted(idle)[int(len(idle) * 0.99) - 1]
    rows.append(row("cockpit, key under flood, p99", [worst], [worst_idle], "ms", KEYS, baseline="idle"))
    return rows


def _one_line(text: str) -> bytes:
    """The flood as one line of the command bar: its script as an `exec` of an escaped string."""
    script = text.removeprefix("! run python -c '").removesuffix("'")
    return ("! run python -c 'exec(" + json.dumps(script).replace("'", "\\u0027") + ")'").encode()


def _pausing() -> dict[str, Any]:
    """Milliseconds from the key to the recorded pause of an agent that is busy with tiny actions."""
    clauses = ", ".join(f"write 'n{number}' to f{number}.txt" for number in range(90))
    found: list[float] = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as place:
            made = pilothouse("do", "--workspace", place, "agent_create bdi_agent pilot-1")
            subprocess.run(made, check=True, capture_output=True)
            given = pilothouse("do", "--workspace", place, f"goal {clauses}")
            subprocess.run(given, check=True, capture_output=True)
            with Screen(pilothouse("--workspace", place)) as screen:
                screen.wait_for(b"6 Mind", b"f1.txt")
                screen.drain(0.5)
                screen.press(b" ")
                screen.wait_for(b"RUNNING")
                screen.drain(0.1)
                pressed = datetime.now(UTC)
                screen.press(b" ")
                screen.wait_for(b"PAUSED")
                screen.drain(0.3)
            found.append(_pause_after(Path(place), pressed))
    return row(
        "cockpit, key to recorded pause", found, [PAUSE_LIMIT_MS], "ms", ROUNDS, baseline="limit of 100 ms"
    )


def _pause_after(workspace: Path, pressed: datetime) -> float:
    database = sqlite3.connect(f"file:{workspace}/.pilothouse/journal.db?mode=ro", uri=True)
    try:
        rows = database.execute(
            "select at, kind from events where stream = 'pilot-1' and at >= ? order by seq",
            (pressed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),),
        ).fetchall()
    finally:
        database.close()
    kinds = [kind for _, kind in rows]
    paused = kinds.index("agent.paused")
    if "action.started" in kinds[paused:]:
        raise AssertionError("an action started after the pause")
    at = datetime.strptime(rows[paused][0], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    return (at - pressed).total_seconds() * 1000


def row(
    name: str, ours: Sequence[float], base: Sequence[float], unit: str, n: int, *, baseline: str
) -> dict[str, Any]:
    """One row of CONTRACTS.md's bench form, by the medians of both."""
    mine, theirs = statistics.median(ours), statistics.median(base)
    return {
        "name": f"{name} vs {baseline}",
        "ours": round(mine, 3),
        "baseline": round(theirs, 3),
        "ratio": round(mine / theirs, 3),
        "unit": unit,
        "n": n,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}",
    }


def rows() -> list[dict[str, Any]]:
    """The rows of CONTRACTS.md's bench form."""
    return [_first_screen(), *_keys_under_flood(), _pausing()]


if __name__ == "__main__":
    for found in rows():
        print(json.dumps(found))
