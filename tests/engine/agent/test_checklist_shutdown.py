"""State and shutdown: the numbers 42 to 46 of spec master-loop-and-memory §5.

The original keeps one state file. Here the journal is what is kept, and a state's snapshot is a cache of it:
"the state loads as it was saved" becomes "the state is the fold of the journal", whatever became of that.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight, act, journal_holds_together, live_state_is_the_fold, python

from app.commands.headless import RunOptions, run_goal
from engine.agent.actions.snapshots import SnapshotRule
from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.fold import SNAPSHOT_FORMAT, dump_state, fold, load_state
from engine.core.goals import GoalStatus
from engine.core.plan import StepStatus
from engine.core.ports import SystemClock
from engine.core.store.port import DATA_DIRECTORY
from engine.core.store.sqlite import SqliteJournal
from engine.core.store.verify import verify
from engine.core.streams import restore
from tests.patience import PATIENCE_S

UNSAVED = EngineConfig(snapshots=SnapshotRule.OFF)


async def run(workspace: Path, goal: str, **more: Any) -> dict[str, Any]:
    options = RunOptions(workspace, goal=goal, quiet=True, **more)
    return await run_goal(options, out=io.StringIO(), err=io.StringIO())


# ------------------------------------------------------------------ 42, 43: saving


async def test_a_state_is_kept_and_comes_back_equal_while_jobs_and_an_action_run(flight: Flight) -> None:
    """Checklist 42: what lives beside the state is no part of it."""
    sleeps = ["python", "-c", "import time; time.sleep(60)"]
    await flight.plan(act("start", command=sleeps), act("run", command=sleeps))
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.running_jobs and s.action and s.action.started and s.actions == 1)
    assert load_state(dump_state(state)) == state
    await flight.until_durable("pilot")
    state = await flight.state()
    await flight.engine.store.save_snapshot("pilot", state.version, SNAPSHOT_FORMAT, dump_state(state))
    assert await restore(flight.engine.store, "pilot", state.version) == (state, "")
    assert fold((await flight.events())[: state.version]) == state
    await flight.do(cmd.Stop)
    await flight.until(lambda s: not s.acting and not s.running_jobs)


DIES_WITHIN_A_TRANSACTION = """
import os, signal, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("pragma synchronous = full")
database.execute("pragma cache_size = 1")  # so that pages of the transaction reach the file
database.execute("begin immediate")
database.execute("delete from snapshots")
database.execute("update events set body = '{}' where stream = 'pilot'")
os.kill(os.getpid(), signal.SIGKILL)
"""


async def test_after_a_crash_between_write_and_commit_the_state_before_it_loads(tmp_path: Path) -> None:
    """Checklist 43: half a write is none. Behaviour 23."""
    assert (await run(tmp_path, "create the directories src and docs"))["status"] == "GOAL_ACHIEVED"
    database = tmp_path / DATA_DIRECTORY / "journal.db"
    before, why = await state_of(tmp_path)
    process = subprocess.run([sys.executable, "-c", DIES_WITHIN_A_TRANSACTION, database], timeout=PATIENCE_S)
    assert process.returncode == -signal.SIGKILL
    assert await state_of(tmp_path) == (before, why) == (before, "")
    await journal_holds_together(tmp_path)


async def state_of(workspace: Path, agent: str = "pilot-1") -> tuple[Any, str]:
    store = await SqliteJournal.open(workspace, clock=SystemClock(), read_only=True)
    try:
        return await restore(store, agent)
    finally:
        await store.close()


# ------------------------------------------------------------------ 44: damage


def without_its_end(text: str) -> str:
    return text[: len(text) // 2]


def with_an_unknown_key(text: str) -> str:
    return altered(text, levitates=True)


def with_a_threshold_of_99(text: str) -> str:
    return altered(text, consecutive_errors=99)


def with_a_current_goal_that_is_not_there(text: str) -> str:
    return altered(text, current_goal="g99")


def empty(text: str) -> str:
    return ""


def altered(text: str, **changes: object) -> str:
    digest, _, body = text.partition("\n")
    return f"{digest}\n{json.dumps({**json.loads(body), **changes})}"


def of_another_journal(text: str) -> str:
    """Whole and well-formed, with its own digest, and not what happened here."""
    return dump_state(replace(load_state(text), hash="0" * 64, consecutive_errors=99))


DAMAGES = [
    without_its_end,
    with_an_unknown_key,
    with_a_threshold_of_99,
    with_a_current_goal_that_is_not_there,
    empty,
    of_another_journal,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
async def test_a_damaged_state_is_built_again_from_the_journal_and_that_is_said(
    flight: Flight, damage: Callable[[str], str]
) -> None:
    """Checklist 44: half of it, unknown keys, a value out of range, a goal that is not there: a notice."""
    await flight.plan(act("write", path="a", content=""), act("write", path="b", content=""))
    await flight.do(cmd.Step)
    await flight.until(lambda s: s.actions == 1 and not s.acting)
    await flight.engine.close()
    spoil(flight.workspace, damage)
    await flight.open()
    (notice,) = flight.engine.health.states
    assert notice.startswith("pilot: the state kept at event ")
    assert notice.endswith("could not be used; it was built again from the events")
    await live_state_is_the_fold(flight, "pilot")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED


def spoil(workspace: Path, damage: Callable[[str], str]) -> None:
    with sqlite3.connect(workspace / DATA_DIRECTORY / "journal.db") as database:
        kept = database.execute("select rowid, state from snapshots where stream = 'pilot'").fetchall()
        assert kept
        for row, text in kept:
            database.execute("update snapshots set state = ? where rowid = ?", (damage(text), row))
    database.close()


async def test_an_older_state_stands_in_for_a_damaged_one(flight: Flight) -> None:
    """Checklist 44: the backup is the snapshot before."""
    store = flight.engine.store
    await flight.plan(act("ls"))
    events = await flight.events()
    half = fold(events[: len(events) // 2])
    await store.save_snapshot("pilot", half.version, SNAPSHOT_FORMAT, dump_state(half))
    await store.save_snapshot("pilot", len(events), SNAPSHOT_FORMAT, "{}")
    state, why = await restore(store, "pilot", len(events))
    assert state == fold(events)
    assert f"at event {len(events)} (" in why


async def test_the_notice_is_printed_by_a_run_without_a_screen(tmp_path: Path) -> None:
    """Checklist 44: visible also where there is no cockpit."""
    await run(tmp_path, "create a directory named 'a'", agent="pilot")
    spoil(tmp_path, without_its_end)
    err = io.StringIO()
    options = RunOptions(tmp_path, goal="create a directory named 'b'", agent="pilot", quiet=True)
    assert (await run_goal(options, out=io.StringIO(), err=err))["status"] == "GOAL_ACHIEVED"
    assert err.getvalue().startswith("states: pilot: the state kept at event ")


# ------------------------------------------------------------------ 45: going on


async def test_a_run_of_ten_loops_after_thirty_runs_ten_more(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    """Checklist 45: loops are counted by the run, in another session too."""
    flight = await open_flight(tmp_path, config=UNSAVED)
    await flight.plan(*(act("ls") for _ in range(45)))
    await flight.do(cmd.Run, max_loops=30)
    await flight.until(lambda s: s.run is RunState.PAUSED and s.loops == 30)
    assert (await flight.state()).actions == 30
    await flight.reopen()
    await flight.do(cmd.Run, max_loops=10)
    state = await flight.until(lambda s: s.run is RunState.PAUSED and s.actions > 30)
    assert state.actions == 40
    assert state.run_reason.startswith("MAX_LOOPS: 10 loops")


@pytest.mark.parametrize("again", ["create a directory named 'two'", "create a directory named 'one'"])
async def test_a_new_goal_after_an_achieved_one_is_a_root_goal_of_its_own(tmp_path: Path, again: str) -> None:
    """Checklist 45: what was achieved stays so, and the same words again are a new goal."""
    assert (await run(tmp_path, "create a directory named 'one'"))["status"] == "GOAL_ACHIEVED"
    await run(tmp_path, again)
    state, _ = await state_of(tmp_path)
    first, second = state.goals.values()
    assert (first.status, first.parent) == (GoalStatus.ACHIEVED, None)
    assert (second.text, second.parent) == (again, None)
    assert second.id in state.plans
    assert second.status.terminal or state.intervention


# ------------------------------------------------------------------ 46: an interrupt

TIDIES = """
import signal, sys, time

def tidy(*_):
    open("tidied", "w").write("in time")
    sys.exit(0)

signal.signal(signal.SIGTERM, tidy)
open("ready", "w").close()
time.sleep(60)
"""


async def test_an_interrupt_gives_the_tool_its_grace_saves_the_state_and_leaves_no_task(
    tmp_path: Path,
) -> None:
    """Checklist 46: the program tidies up, the journal is whole, nothing runs on; 130 is what it comes to."""
    sandbox = tmp_path / "sandbox"
    sandbox.mkdir()
    (sandbox / "tidies.py").write_text(TIDIES)
    going = asyncio.create_task(run(tmp_path, "run tidies.py"))
    async with asyncio.timeout(PATIENCE_S):
        while not (sandbox / "ready").exists():
            assert not going.done(), going.result()
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        result = await going
    assert (result["status"], result["message"]) == ("INTERRUPTED", "interrupted; what ran was cut off")
    assert (sandbox / "tidied").read_text() == "in time"
    assert asyncio.all_tasks() == {asyncio.current_task()}

    store = await SqliteJournal.open(tmp_path, clock=SystemClock(), read_only=True)
    try:
        assert (await verify(store)).ok
        events = await store.read("pilot-1")
        last = [ev.payload_of(event) for event in await store.last(1)]
        state, why = await restore(store, "pilot-1")
    finally:
        await store.close()
    assert isinstance(last[0], ev.SessionClosed)
    assert (state, why) == (fold(events), "")
    assert (state.action, state.run) == (None, RunState.STOPPED)
    (step,) = state.plans["g1"].steps
    assert step.status is StepStatus.PLANNED
    cancelled = [event for event in events if event.kind == ev.ActionCancelled.kind]
    assert len(cancelled) == 1


def test_an_interrupted_program_exits_with_130_and_says_nothing_of_lost_tasks(tmp_path: Path) -> None:
    """Checklist 46: the exit code, from outside."""
    sandbox = tmp_path / "sandbox"
    sandbox.mkdir()
    (sandbox / "tidies.py").write_text(TIDIES)
    process = subprocess.Popen(
        [sys.executable, "-X", "dev", "-m", "app.cli.main", "run", "run tidies.py", "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        while not (sandbox / "ready").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert json.loads(out.splitlines()[-1])["status"] == "INTERRUPTED"
    assert (sandbox / "tidied").exists()
    assert "Traceback" not in err
    assert "was destroyed" not in err
    assert "never retrieved" not in err


async def test_what_was_interrupted_runs_again_when_the_agent_goes_on(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    """Checklist 46: the step is open again, and is done once more from its beginning."""
    flight = await open_flight(tmp_path, config=UNSAVED)
    once = "import os, time; os.path.exists('seen') or (open('seen', 'w').close(), time.sleep(60))"
    steps = await flight.plan(python(once))
    await flight.do(cmd.Run)
    await flight.until(lambda _: (flight.sandbox / "seen").exists())
    await flight.reopen()
    state = await flight.state()
    assert (state.action, state.run) == (None, RunState.PAUSED)
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    assert await flight.started() == steps * 2
