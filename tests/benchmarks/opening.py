"""How long a workspace of 100,000 events takes to open, beside the limit of two seconds.

Ours is `Engine.open`: journal, agent, sandbox and snapshots are there when it returns, memory goes on opening
behind it. Measured are an opening as usual, one whose tables of memory were thrown away (they are folded from
the journal, and when that is done is a row of its own), and the first one with memory of a workspace that had
none. A cockpit's first screen on it is compared with that on a workspace in which nothing happened yet, plus
300 ms; both were opened before. Run it with `python -m tests.benchmarks.opening`.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

from app.commands.user import user_home
from engine.api.engine import Engine
from engine.core import events as ev
from engine.core.actions import ResultStatus, Reversibility
from engine.core.agents import AgentConfig
from engine.core.goals import GoalStatus
from engine.core.journal import GENESIS
from engine.core.plan import PlanStep, StepStatus
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from engine.core.streams import StreamLog
from engine.core.trust import FolderTrust
from tests.benchmarks.cockpit import Screen, pilothouse, row

EVENTS = int(os.environ.get("PILOTHOUSE_BENCH_EVENTS", "100000"))
STEPS = 10
LIMIT_S = 2.0
LATER_S = 0.3
"""How much later the first screen of so many events may come than that of none."""
ROUNDS = 5


class Flight:
    """Writes the stream of an agent that works through goals of ten actions each."""

    def __init__(self, log: StreamLog) -> None:
        self._log = log
        self._last = ""

    def say(self, payload: ev.Payload) -> None:
        causes = (self._last,) if self._last else ()
        event = self._log.append(payload, actor="agent", causes=causes, tick=1)
        self._last = event.ref

    def goal(self, number: int) -> None:
        goal = f"g{number}"
        steps = tuple(
            PlanStep(f"s{number}-{n}", f"Write file {n}", tool="simple_coder", command="write")
            for n in range(STEPS)
        )
        self.say(ev.GoalAdopted(goal=goal, text=f"write {STEPS} files about subject {number}"))
        self.say(ev.GoalSelected(goal=goal))
        self.say(ev.PlanAdopted(plan=f"p{number}", goal=goal, steps=steps))
        for place, step in enumerate(steps):
            self._act(goal, step, f"a{number * STEPS + place}")
        self.say(ev.GoalEnded(goal=goal, status=GoalStatus.ACHIEVED, reason="all is written"))

    def _act(self, goal: str, step: PlanStep, action: str) -> None:
        args = {"path": f"{step.id}.txt", "content": f"what {step.id} has to say\n"}
        call = {"tool": step.tool, "command": step.command, "args": args}
        self.say(ev.ActionRequested(action=action, step=step.id, goal=goal, **call))
        self.say(ev.ActionStarted(action=action, undo=Reversibility.WORKSPACE, mutates=True))
        told = {"message": f"Wrote 30 bytes to {step.id}.txt"}
        done = ResultStatus.SUCCESS
        self.say(ev.ActionFinished(action=action, status=done, result=told, summary=told["message"]))
        self.say(ev.StepEnded(goal=goal, step=step.id, status=StepStatus.COMPLETED))


async def _make(workspace: Path) -> None:
    clock = SystemClock()
    store = await SqliteJournal.open(workspace, clock=clock)
    log = StreamLog("pilot", 0, GENESIS, clock, store.commit)
    flight = Flight(log)
    config = AgentConfig(thinker="procedural")
    flight.say(ev.AgentCreated(agent_id="pilot", agent_type="bdi_agent", config=config))
    number = 0
    while log.version < EVENTS:
        number += 1
        flight.goal(number)
        if number % 50 == 0:
            await log.commit()
    await log.commit()
    await log.close()
    await store.close()


async def _opened(workspace: Path) -> tuple[float, float, float]:
    """Seconds until the engine is open, until memory is, and until memory holds all that was done."""
    begin = time.perf_counter()
    engine = await Engine.open(workspace)
    is_open = time.perf_counter() - begin
    assert engine.memory is not None
    await engine.memory.ready()
    has_memory = time.perf_counter() - begin
    await engine.kept()
    keeps_up = time.perf_counter() - begin
    await engine.close()
    return is_open, has_memory, keeps_up


async def _measure(workspace: Path) -> list[dict[str, Any]]:
    await _make(workspace)
    first = await _opened(workspace)
    usual = await _opened(workspace)
    for path in (workspace / ".pilothouse").glob("memory.db*"):
        path.unlink()
    anew = await _opened(workspace)
    return [
        _row("opening as usual", usual[0]),
        _row("memory open as usual", usual[1]),
        _row("opening with memory.db thrown away", anew[0]),
        _row("memory folded anew", anew[1]),
        _row("opening for the first time with memory", first[0]),
        _row("memory written of all events", first[2]),
    ]


def _row(name: str, ours: float) -> dict[str, Any]:
    return {
        "name": f"workspace of {EVENTS} events, {name} (lower is better) vs limit",
        "ours": round(ours, 3),
        "baseline": LIMIT_S,
        "ratio": round(ours / LIMIT_S, 3),
        "unit": "s",
        "n": EVENTS,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
    }


def _first_screen(workspace: Path, *texts: bytes) -> float:
    with Screen(pilothouse("--workspace", str(workspace))) as screen:
        seconds = screen.wait_for(b"6 Mind", *texts, limit_s=120) - screen.began
        screen.leave()
    return seconds


def _screens(workspace: Path, new: Path) -> dict[str, Any]:
    folder = FolderTrust(workspace, user_home())
    folder.trust(folder.digest)
    ours, base = [], []
    for _ in range(ROUNDS + 1):
        ours.append(_first_screen(workspace, b"achieved"))
        base.append(_first_screen(new, b"PAUSED") + LATER_S)
    folder.revoke()
    name = f"cockpit, first screen of {EVENTS} events"
    return row(name, ours[1:], base[1:], "s", ROUNDS, baseline="that of none and 300 ms")


def rows() -> list[dict[str, Any]]:
    """The rows of CONTRACTS.md's bench form; the limit is that of opening."""
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as new:
        return [*asyncio.run(_measure(Path(place))), _screens(Path(place), Path(new))]


if __name__ == "__main__":
    for found in rows():
        print(json.dumps(found))
