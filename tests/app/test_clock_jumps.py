"""The machine's clock is set while agents work: timeouts, order, budgets and verification hold."""

from __future__ import annotations

import asyncio
import contextlib
import glob
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any

import pytest

from tests.engine.agent.engine_flight import journal_holds_together
from tests.patience import PATIENCE_S
from tests.rounds import FULL

LIBRARY = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), "")
pytestmark = pytest.mark.skipif(not LIBRARY, reason="libfaketime is not installed: NO clock jump was tested")
ROOT = Path(__file__).parents[2]
LIFE = """
import asyncio, json, sys, time
from pathlib import Path
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import commands as cmd

WAITS = 'w(0). !go. +!go : w(N) & N < 12 <- -w(N); +w(N + 1); .wait(300); mkdir(N); !go. +!go <- mkdir(end).'

def act(mark):
    args = {"command": f"python mark.py {mark}"}
    return {"type": "EXECUTE_TOOL", "params": {"tool_id": "simple_coder", "command": "run", "args": args}}

async def live(engine, sandbox):
    async def do(command):
        receipt = await engine.submit(command)
        assert receipt.ok, receipt.message
    await do(cmd.CreateAgent(agent="robot", agent_type="asl_agent", config={"program": WAITS}))
    await do(cmd.CreateAgent(agent="pilot"))
    await do(cmd.SetBudget(agent="pilot", seconds=600))
    await do(cmd.AdoptGoal(agent="pilot", text="list the files"))
    while not (state := await engine.view("pilot")).plans:
        await asyncio.sleep(0.01)
    await do(cmd.ReplacePlan(agent="pilot", goal="g1", plan=json.dumps([act(n) for n in range(9)])))
    for agent in ("pilot", "robot"):
        await do(cmd.Run(agent=agent))
    while (await engine.view("pilot")).open_goals or not (sandbox / "end").exists():
        print("at work", time.time(), flush=True)
        await asyncio.sleep(0.05)
    state = await engine.view("pilot")
    print(json.dumps({
        "goals": [goal.status for goal in state.goals.values()], "worked_us": state.worked_us,
        "holds": str(state.run_reason), "failures": len(state.failures),
    }), flush=True)

async def main(workspace):
    engine = await Engine.open(workspace)
    try:
        await live(engine, workspace / "sandbox")
    finally:
        await engine.close()

asyncio.run(main(Path(sys.argv[1])))
"""
MARK = 'import sys, time\nopen("witness", "a").write(sys.argv[1])\ntime.sleep(0.3)\n'


TICKS = """
import sys, time
from engine.core.ports import SystemClock
for line in sys.stdin:
    print("at work", time.time(), SystemClock().now(), flush=True)
"""


class Jumping:
    """A program whose clock is set by a file."""

    def __init__(self, directory: Path, code: str, *arguments: str) -> None:
        self._clock = directory / "clock"
        self.jump("+0")
        environment = {
            **os.environ,
            "LD_PRELOAD": LIBRARY,
            "FAKETIME_TIMESTAMP_FILE": str(self._clock),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        command = [sys.executable, "-c", code, *arguments]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True
        )

    def jump(self, by: str) -> None:
        """Set the program's clock, relative to ours."""
        fresh = self._clock.with_suffix(".new")
        fresh.write_text(by)
        fresh.replace(self._clock)

    @property
    def out(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def tick(self) -> tuple[float, str]:
        """The time that its machine says, and what stands behind it."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        line = self.out.readline()
        assert line.startswith("at work"), f"it ended: {line}"
        _, _, now, *rest = line.split()
        return float(now), " ".join(rest)

    def until(self, holds: Callable[[float], object]) -> str:
        """Read the times that it prints until something holds; what stands behind the last one."""
        while True:
            now, rest = self.tick()
            if holds(now):
                return rest
            time.sleep(0.05)  # it looks at its file once a second

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_the_time_of_events_goes_on_where_the_machines_clock_is_set(tmp_path: Path) -> None:
    jumping = Jumping(tmp_path, TICKS)
    try:
        began, first = jumping.tick()
        jumping.jump("-1h")
        back = jumping.until(lambda now: now < began - 3_000)
        jumping.jump("+365d")
        ahead = jumping.until(lambda now: now > began + 300 * 86_400)
    finally:
        jumping.end()
    assert first < back < ahead, "times of events are in their order"
    passed = datetime.fromisoformat(ahead) - datetime.fromisoformat(first)
    assert passed < timedelta(seconds=PATIENCE_S)


@pytest.mark.slow
@pytest.mark.skipif(not FULL, reason="libfaketime takes a processor for itself: only in make endurance")
def test_a_clock_that_jumps_back_an_hour_and_forward_a_year_changes_nothing(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "sandbox").mkdir(parents=True)
    (workspace / "sandbox" / "mark.py").write_text(MARK)
    witness = workspace / "sandbox" / "witness"

    def marks() -> int:
        return len(witness.read_text()) if witness.exists() else 0

    jumping = Jumping(tmp_path, LIFE, str(workspace))
    try:
        jumping.until(lambda _: marks() >= 1)
        began, _ = jumping.tick()
        jumping.jump("-1h")
        jumping.until(lambda now: now < began - 3_000)
        jumping.jump("+365d")
        jumping.until(lambda now: now > began + 300 * 86_400)
        assert marks() < 9, "the clock jumped too late: nothing was tested"
        state: dict[str, Any] = json.loads(jumping.out.read().splitlines()[-1])
        assert jumping.process.wait(PATIENCE_S) == 0
    finally:
        jumping.end()
    assert state["goals"] == ["achieved"]
    assert state["failures"] == 0
    assert state["worked_us"] < PATIENCE_S * 1e6, "a year is no time at work"
    assert witness.read_text() == "012345678"
    asyncio.run(journal_holds_together(workspace))
