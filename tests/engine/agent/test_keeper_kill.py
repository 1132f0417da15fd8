"""`kill -9` at any moment: what agents did is in memory once, as soon as a session has caught up."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest
from engine_flight import journal_holds_together

from engine.api.engine import Engine
from engine.core import events as ev
from engine.core import memory_events as me
from engine.core.journal import Event
from tests import forking

LIFE = """
import asyncio, json, os, sys
from pathlib import Path
from engine.core import commands as cmd
from engine.api.engine import Engine

def act(command, /, **args):
    return {"type": "EXECUTE_TOOL", "params": {"tool_id": "simple_coder", "command": command, "args": args}}

async def tell(engine):
    async for event in engine.events(await engine.head(), stream="workspace@memory"):
        os.write(1, f"{event.ref}\\n".encode())

async def live(workspace):
    engine = await Engine.open(workspace)
    telling = asyncio.create_task(tell(engine))
    if "pilot" not in engine.agents:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
    while True:
        if not (await engine.view("pilot")).open_goals:
            await engine.submit(cmd.AdoptGoal(agent="pilot", text="list the files"))
            goal = (await engine.view("pilot")).open_goals[0].id
            plan = [act("append", path=f"log-{n}", content="x") for n in range(5)]
            await engine.submit(cmd.ReplacePlan(agent="pilot", goal=goal, plan=json.dumps(plan)))
        await engine.submit(cmd.Run(agent="pilot"))
        if (await engine.view("pilot")).intervention:
            await engine.submit(cmd.HandBack(agent="pilot"))
        await engine.submit(cmd.CallTool(agent="pilot", command="ls", args={}))
        await asyncio.sleep(0.01)

os.write(1, b"ready\\n")
asyncio.run(live(Path(sys.argv[1])))
"""


async def _life(workspace: Path, lines: int) -> None:
    """Let an engine live until memory was written so many events, then kill it."""
    reading, writing = os.pipe()
    with Path(os.devnull).open("rb") as nothing:
        child = forking.start(LIFE, str(workspace), cwd=workspace, files=(nothing.fileno(), writing, 2))
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        for _ in range(lines):
            assert await asyncio.to_thread(said.readline)
        child.kill()
        await asyncio.to_thread(said.read)
    assert child.wait() == -signal.SIGKILL


@pytest.mark.slow
async def test_what_agents_did_is_in_memory_once_however_often_the_keeper_is_killed(tmp_path: Path) -> None:
    dice = random.Random(20261122)
    for turn in range(5):
        await _life(tmp_path, dice.randint(1, 120))
        if turn % 3 == 2:
            (tmp_path / ".pilothouse" / "memory.db").unlink(missing_ok=True)
    engine = await Engine.open(tmp_path)
    await engine.kept()
    assert engine.health.memory == ""
    told = [event async for event in engine.events(stream="pilot", follow=False)]
    kept = [event async for event in engine.events(stream="workspace@memory", follow=False)]
    await engine.close()
    _every_action_once(told, kept)
    await journal_holds_together(tmp_path)


def _every_action_once(told: list[Event], kept: list[Event]) -> None:
    did = [ev.payload_of(event) for event in told]
    made = [ev.payload_of(event) for event in kept]
    goals = [f"@pilot/{one.goal}" for one in did if isinstance(one, ev.GoalAdopted) and not one.parent]
    workflows = Counter(one.key for one in made if isinstance(one, me.WorkflowCreated))
    assert workflows - Counter({"@pilot/": 1}) == Counter(goals)
    # One whose end is not known yet was started; one that was refused ended without a start.
    ends = (ev.ActionFinished, ev.ActionCancelled, ev.ActionOutcomeUnknown)
    tried = {f"@pilot/{one.action}" for one in did if isinstance(one, (ev.ActionStarted, *ends))}
    assert Counter(one.key for one in made if isinstance(one, me.ActionRecorded)) == Counter(tried)
    over = {f"@pilot/{one.action}/end" for one in did if isinstance(one, ends)}
    assert Counter(one.key for one in made if isinstance(one, me.ActionEnded)) == Counter(over)
    asked = {one.action: one for one in did if isinstance(one, ev.ActionRequested)}
    wrote = [
        f"@pilot/{one.action}/file"
        for one in did
        if isinstance(one, ev.ActionFinished)
        and one.status == "SUCCESS"
        and asked[one.action].command == "append"
    ]
    assert Counter(one.key for one in made if isinstance(one, me.ArtifactRecorded)) == Counter(wrote)
    assert len(tried) > 30
    # What is written follows the order of what was done; background work comes when it is done.
    causes = [int(event.causes[0].split(":")[1]) for event in kept if event.actor != "background"]
    assert causes == sorted(causes)
