"""How the cockpit keeps up with many agents at work at once, measured in a real terminal at 200×50.

The same for one agent and for 200, each writing small files of its own in the sandbox, one after another:

* opening: from starting the process until the panes show the reopened workspace;
* keys: from a key to its letter in the command bar, while the agent that is looked at is at work as all are;
* another agent: from the key that shows the next one to its name in the status bar;
* what the agents get done (events a second), and the memory that the process takes;
* with the fleet board open: a cursor key while 1,000 events a second arrive (ontology spec §6, line 60);
* a crew at work with a model: a letter in the command bar, and one in the line for a task on the open board,
  while 20 handoffs are in flight, of which four at a time are answered piece by piece (by a scripted server
  that speaks the Messages API).

Baselines are the targets of spec steering §4 T1 and T14, or the same with one agent. Run it with
`python -m tests.benchmarks.fleet`; PILOTHOUSE_BENCH_FLEET is the number of agents.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.commands.settings import Settings
from engine.api.engine import Engine
from engine.core import commands as cmd
from tests.benchmarks.cockpit import Screen, row
from tests.benchmarks.screen import KEYS, P50_MS, P99_MS, Cockpit, _part

AGENTS = int(os.environ.get("PILOTHOUSE_BENCH_FLEET", "200"))
WRITES = 60
"""Files that a goal writes."""
GOALS_OF_ONE = 12
"""Goals of a single agent, which gets more done than one of many."""
SWITCHES = 20
IN_FLIGHT = 20
"""Handoffs of the crew that works with a model."""
ANSWER = {"text": "The plan holds, as far as one can see from here. " * 8, "event_delay_ms": 20}
"""What the model says: fifty pieces a second, for a second."""
OPEN_MS = 2_000.0
"""Of T19: starting with 100,000 events."""
LETTER = "ž"


@dataclass(slots=True)
class Measured:
    """What was found with so many agents."""

    agents: int
    opening_ms: float = 0.0
    idle: list[float] = field(default_factory=list)
    keys: list[float] = field(default_factory=list)
    switches: list[float] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    events_per_s: float = 0.0
    resident_mb: float = 0.0
    resident_at_rest_mb: float = 0.0
    board: list[float] = field(default_factory=list)


async def crewed(workspace: Path, agents: int, goals: int = 1) -> None:
    """Make a workspace with agents that have so many goals each, and have not begun."""
    engine = await Engine.open(workspace, config=Settings.load(workspace).engine_config())
    try:
        for number in range(1, agents + 1):
            name = f"hand-{number:03}"
            files = ", ".join(f"write 'n{file}' to {name}/f{file % 3}.txt" for file in range(WRITES))
            await engine.submit(cmd.CreateAgent(agent=name))
            for _ in range(goals):
                await engine.submit(cmd.AdoptGoal(agent=name, text=files))
    finally:
        await engine.close()


def measured(agents: int) -> Measured:
    """Everything with so many agents."""
    found = Measured(agents)
    with tempfile.TemporaryDirectory() as place:
        workspace = Path(place)
        asyncio.run(crewed(workspace, agents, GOALS_OF_ONE if agents == 1 else 1))
        cockpit = Cockpit(workspace)
        with cockpit.screen as screen:
            shown = screen.wait_for(b"6 Mind", b"hand-001", b"PAUSED", limit_s=60)
            found.opening_ms = (shown - screen.began) * 1000
            screen.drain(3.0)
            found.resident_at_rest_mb = _resident(screen.cockpit)
            found.idle = _typed(screen, KEYS)
            if agents > 1:
                found.board = _on_board(cockpit)
            cockpit.order("run 0")
            screen.drain(3.0)
            began, before, stalls = time.monotonic(), _head(workspace), len(cockpit.noted("s"))
            found.keys = _typed(screen, KEYS)
            found.events_per_s = (_head(workspace) - before) / (time.monotonic() - began)
            found.stalls = [float(late) * 1000 for (late,) in cockpit.noted("s")[stalls:]]
            if agents > 1:
                found.switches = _switched(screen)
            found.resident_mb = _resident(screen.cockpit)
    return found


@dataclass(slots=True)
class Staffed:
    """What was found with a crew at work with a model."""

    board: list[float]
    keys: list[float]
    ended_per_s: float
    in_flight: float


def staffed() -> Staffed:
    """The cockpit while a crew works with a model."""
    with tempfile.TemporaryDirectory() as place:
        workspace, script = Path(place), Path(place, "script.json")
        asyncio.run(crewed(workspace, 1))
        script.write_text(json.dumps([ANSWER]))
        served = [sys.executable, "-m", "tests.messages_server", str(script)]
        with subprocess.Popen(served, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                cockpit = Cockpit(workspace, server.stdout.readline().strip().partition("=")[2])
                with cockpit.screen as screen:
                    screen.wait_for(b"6 Mind", b"hand-001", b"PAUSED", limit_s=60)
                    cockpit.order(f"crew {IN_FLIGHT}")
                    while len(cockpit.noted("h")) < 40:
                        screen.drain(0.5)
                    before, began = len(cockpit.noted("h")), time.monotonic()
                    keys = _typed(screen, KEYS)
                    screen.press(b"F")
                    screen.drain(2.0)
                    board = _typed(screen, KEYS, b"d")
                    noted, took = cockpit.noted("h")[before:], time.monotonic() - began
            finally:
                server.kill()
    ended = int(noted[-1][0]) - int(noted[0][0])
    return Staffed(board, keys, ended / took, sum(int(busy) for _, busy in noted) / len(noted))


def _typed(screen: Screen, count: int, line: bytes = b":") -> list[float]:
    """Milliseconds from a letter typed in the command bar, or another line, to its being on the screen."""
    found = []
    screen.press(line)
    screen.drain(0.5)
    for _ in range(count):
        pressed = screen.press(LETTER.encode())
        found.append((screen.wait_for(LETTER.encode()) - pressed) * 1000)
        screen.drain(0.02)
        screen.press(b"\x7f")
        screen.drain(0.04)
    screen.press(b"\x1b")
    screen.drain(0.5)
    return found


def _on_board(cockpit: Cockpit) -> list[float]:
    """Milliseconds from a cursor key on the fleet board to changed cells, at 1,000 events a second."""
    screen, found = cockpit.screen, []
    screen.press(b"F")
    screen.drain(2.0)
    cockpit.order("rate 1000")
    screen.drain(2.0)
    for number in range(KEYS):
        pressed = screen.press(b"j" if number % 2 == 0 else b"k")
        found.append((screen.wait_for(b"hand-") - pressed) * 1000)
        screen.drain(0.04)
    cockpit.order("rate 0")
    screen.press(b"\x1b")
    screen.drain(1.0)
    return found


def _switched(screen: Screen) -> list[float]:
    """Milliseconds from the key that shows another agent to its name on the screen."""
    found = []
    for number in range(100, 100 + SWITCHES):
        name = f"hand-{number:03}".encode()
        screen.press(b":agent " + name)
        screen.drain(0.3)
        pressed = screen.press(b"\r")
        found.append((screen.wait_for(name) - pressed) * 1000)
        screen.drain(0.1)
    return found


def _head(workspace: Path) -> int:
    database = sqlite3.connect(f"file:{workspace}/.pilothouse/journal.db?mode=ro", uri=True)
    try:
        return int(database.execute("select max(seq) from events").fetchone()[0])
    finally:
        database.close()


def _resident(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def _row(name: str, ours: float, base: float, unit: str, n: int, baseline: str) -> dict[str, Any]:
    made = row(name, [ours], [base], unit, n, baseline=baseline)
    return {**made, "load": round(os.getloadavg()[0], 1)}


def rows() -> list[dict[str, Any]]:
    """The rows of CONTRACTS.md's bench form."""
    one, many, crew = measured(1), measured(AGENTS), staffed()
    name, alone = f"fleet of {AGENTS}", "1 agent"
    made = [
        _row(f"{name}, first full screen", many.opening_ms, OPEN_MS, "ms", 1, "limit"),
        _row(f"{name}, first full screen", many.opening_ms, one.opening_ms, "ms", 1, alone),
    ]
    for part, limit, title in ((0.5, P50_MS, "p50"), (0.99, P99_MS, "p99")):
        idle, keys = _part(many.idle, part), _part(many.keys, part)
        made.append(_row(f"{name} at rest, key {title}", idle, limit, "ms", len(many.idle), "limit"))
        made.append(_row(f"{name} at work, key {title}", keys, limit, "ms", len(many.keys), "limit"))
        base = _part(one.keys, part)
        made.append(_row(f"{name} at work, key {title}", keys, base, "ms", len(many.keys), alone))
        board = _part(many.board, part)
        told = f"{name}, board open, 1,000 events/s, key {title}"
        made.append(_row(told, board, limit, "ms", len(many.board), "limit"))
        told = f"crew of {IN_FLIGHT} at work with a model"
        board, keys = _part(crew.board, part), _part(crew.keys, part)
        made.append(_row(f"{told}, board open, key {title}", board, limit, "ms", len(crew.board), "limit"))
        made.append(_row(f"{told}, key {title}", keys, limit, "ms", len(crew.keys), "limit"))
    stall, stalled = max(many.stalls, default=0.0), len(many.stalls)
    switch = max(many.switches)
    return [
        *made,
        _row(f"{name} at work, longest turn of the loop", stall, P99_MS, "ms", stalled, "limit"),
        _row(f"{name} at work, another agent shown, slowest", switch, 250.0, "ms", SWITCHES, "limit"),
        _row(f"{name} at work, events", many.events_per_s, one.events_per_s, "1/s", 1, alone),
        _row(f"{name} at rest, memory", many.resident_at_rest_mb, one.resident_at_rest_mb, "MB", 1, alone),
        _row(f"{name} at work, memory", many.resident_mb, one.resident_mb, "MB", 1, alone),
    ]


if __name__ == "__main__":
    if sys.argv[1:] == ["crew"]:
        crew = staffed()
        print(f"{crew.ended_per_s:.1f} handoffs a second ended, {crew.in_flight:.1f} in flight")
        for what in ("board", "keys"):
            got = getattr(crew, what)
            print(what, len(got), *(f"{part}: {_part(got, part):.1f}" for part in (0.5, 0.9, 0.99, 1.0)))
    elif len(sys.argv) > 1:
        one = measured(int(sys.argv[1]))
        for what in ("idle", "board", "keys", "switches", "stalls"):
            got = getattr(one, what) or [0.0]
            print(what, len(got), *(f"{part}: {_part(got, part):.1f}" for part in (0.5, 0.9, 0.99, 1.0)))
        print(one.opening_ms, one.events_per_s, one.resident_at_rest_mb, one.resident_mb)
    else:
        for made in rows():
            print(json.dumps(made))
