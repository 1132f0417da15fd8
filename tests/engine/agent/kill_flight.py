"""An engine that is busy until `kill -9`, and what must hold of what it left behind."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.fold import fold
from engine.core.journal import Event
from engine.core.plan import StepStatus
from engine.core.ports import SystemClock
from engine.core.state import AgentState
from engine.core.store.sqlite import SqliteJournal
from engine.core.store.verify import verify
from tests import forking
from tests.engine.agent.engine_flight import journal_holds_together

KILLS = 10
"""Lives end so often on each workspace; several keep the journals short, so that checking is cheap."""


@dataclass
class Tally:
    """What many kills came to; each of them was checked."""

    kills: int = 0
    unknowns: int = 0
    """Actions that were under way, found and left to the operator."""
    acknowledged: int = 0
    """Events of which it was said that they are durable; all of them were there."""


LIFE = """
import asyncio, json, os, random, sys
from pathlib import Path
from engine.core import commands as cmd
from engine.core.state import RunState
from engine.api.engine import Engine

def act(command, /, **args):
    return {"type": "EXECUTE_TOOL", "params": {"tool_id": "simple_coder", "command": command, "args": args}}

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

async def tell(engine):
    async for event in engine.events(await engine.head()):
        say("durable", event.ref, event.hash)

async def live(workspace, dice):
    engine = await Engine.open(workspace)
    asyncio.create_task(tell(engine))

    async def do(kind, **fields):
        receipt = await engine.submit(kind(agent="pilot", **fields))
        if receipt.ok:
            say("durable", receipt.event, "-")
        return receipt

    if "pilot" not in engine.agents:
        await do(cmd.CreateAgent)
    while True:
        state = await engine.view("pilot")
        if not state.open_goals:
            await do(cmd.AdoptGoal, text="list the files")
            goal = (await engine.view("pilot")).open_goals[0].id
            marks = [f"{goal}-{n}" for n in range(10)]
            write = "import sys; open('log', 'a').write(sys.argv[1] + chr(10))"
            plan = [
                act("run", command=["python", "-c", write, mark]) if n % 3 == 0
                else act("append", path="log", content=mark + "\\n")
                for n, mark in enumerate(marks)
            ]
            await do(cmd.ReplacePlan, goal=goal, plan=json.dumps(plan))
        state = await engine.view("pilot")
        pending = [s.id for p in state.plans.values() for s in p.steps if not s.status.terminal]
        if pending:
            await do(cmd.SetBreakpoint, step=dice.choice(pending))
        await do(cmd.Run)
        if dice.random() < 0.3:
            await asyncio.sleep(dice.uniform(0, 0.05))
            await do(cmd.Pause)
        while (state := await engine.view("pilot")).run is RunState.RUNNING and state.open_goals:
            await asyncio.sleep(0.002)

asyncio.run(live(Path(sys.argv[1]), random.Random(int(sys.argv[2]))))
"""


async def live_until_killed(workspace: Path, seed: int, dice: random.Random) -> dict[str, str]:
    """Let an engine live, kill it at a random moment, and give what it said is durable."""
    reading, writing = os.pipe()
    with Path(os.devnull).open("rb") as nothing:
        files = (nothing.fileno(), writing, 2)
        process = forking.start(LIFE, str(workspace), str(seed), cwd=workspace, files=files)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        lines: list[bytes] = []
        if dice.random() < 0.5:
            # some moment of opening, planning or acting
            await asyncio.sleep(dice.uniform(0, 0.35))
        else:
            # right behind a commit
            lines = [await asyncio.to_thread(told.readline) for _ in range(dice.randint(1, 60))]
        process.kill()
        lines += (await asyncio.to_thread(told.read)).splitlines(keepends=True)
    assert process.wait() == -signal.SIGKILL
    said: dict[str, str] = {}
    for line in lines:
        if line.endswith(b"\n"):
            _word, ref, digest = line.decode().split()
            said[ref] = digest if digest != "-" else said.get(ref, "")
    return said


async def journal_of(workspace: Path) -> list[Event]:
    if not (workspace / ".pilothouse" / "journal.db").exists():
        return []
    store = await SqliteJournal.open(workspace, clock=SystemClock(), read_only=True)
    try:
        verdict = await verify(store)
        assert verdict.ok, verdict.reason
        return [event async for event in store.events()]
    finally:
        await store.close()


def _of_pilot(events: list[Event]) -> list[Event]:
    return [event for event in events if event.stream == "pilot"]


def _is_as_it_was(before: AgentState, after: AgentState) -> None:
    unknown = before.action.step if before.acting and before.action else ""
    assert after.goals == before.goals
    assert after.breakpoints == before.breakpoints
    assert after.beliefs == before.beliefs
    for goal, plan in before.plans.items():
        for was, is_ in zip(plan.steps, after.plans[goal].steps, strict=True):
            assert is_ == was or (was.id == unknown and is_.status is StepStatus.FAILED)
    assert after.run is (RunState.PAUSED if before.run is RunState.RUNNING else before.run)
    assert not after.grants
    if unknown:
        assert after.intervention is not None
        assert after.intervention.step == unknown
    else:
        assert after.intervention == before.intervention


async def reopen_and_decide(workspace: Path, before: list[Event], dice: random.Random) -> int:
    """Open what the dead left, see that it is as it was, and decide about what is unknown."""
    was = fold(_of_pilot(before))
    engine = await Engine.open(workspace)
    try:
        if "pilot" not in engine.agents:
            return 0
        state = await engine.view("pilot", was.version + 6) if was.version else await engine.view("pilot")
        news = (await engine.store.read("pilot"))[was.version :]
        unknown = sum(event.kind == "action.outcome_unknown" for event in news)
        assert unknown == int(was.acting)
        assert not any(event.kind == "action.started" for event in news)
        if was.version:
            settled = [event for event in news if event.actor == "system" or event.kind == "agent.opened"]
            _is_as_it_was(was, fold(_of_pilot(before) + news[: len(settled)]))
        if state.intervention is not None:
            step = state.intervention.step
            refused = await engine.submit(cmd.Run(agent="pilot"))
            assert not refused.ok
            decision = dice.choice([cmd.RetryStep, cmd.SkipStep])
            receipt = await engine.submit(decision(agent="pilot", step=step))
            assert receipt.ok, receipt.message
        return unknown
    finally:
        await engine.close()


def _nothing_was_repeated_undecided(events: list[Event], log: Path) -> None:
    """Between two starts of one step lies the operator's word that it be tried again."""
    step_of: dict[str, str] = {}
    decided: dict[str, bool] = defaultdict(lambda: True)
    starts: dict[str, int] = defaultdict(int)
    for event in events:
        said = ev.payload_of(event)
        match said:
            case ev.ActionRequested():
                step_of[said.action] = said.step
            case ev.ActionStarted():
                step = step_of[said.action]
                assert decided[step], f"{event.ref}: {step} started again"
                decided[step] = False
                starts[step] += 1
            case ev.CommandReceived() if said.command["do"] == "retry_step":
                decided[said.command["step"]] = True
    marks: dict[str, int] = defaultdict(int)
    for line in log.read_text().splitlines() if log.exists() else ():
        marks[line] += 1
    assert sum(marks.values()) <= sum(starts.values())


async def kill_often(root: Path, times: int, seed: int) -> Tally:
    """Let an engine live and kill it, so many times, and check after each that nothing is lost or repeated.

    Args:
        root: an empty directory for the workspaces.
        times: kills, 1 or more.
        seed: of the moments and of what the engine does.

    Raises:
        AssertionError: something was lost, repeated, or does not hold together; it says what.
    """
    dice, tally = random.Random(seed), Tally()
    places = [root / f"w{number // KILLS}" for number in range(times)]
    for place in set(places):
        place.mkdir()
    for number, workspace in enumerate(places):
        said = await live_until_killed(workspace, seed + number, dice)
        tally.kills += 1
        before = await journal_of(workspace)
        kept = {event.ref: event.hash for event in before}
        for ref, digest in said.items():
            assert ref in kept, f"{ref} was acknowledged and is gone"
            assert digest in ("", kept[ref])
        tally.acknowledged += len(said)
        tally.unknowns += await reopen_and_decide(workspace, before, dice)
        if number % KILLS == KILLS - 1 or number == times - 1:
            events = _of_pilot(await journal_of(workspace))
            _nothing_was_repeated_undecided(events, workspace / "sandbox" / "log")
            await journal_holds_together(workspace)
    return tally
