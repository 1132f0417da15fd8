"""The workspace is saved before each action that may change it, and what comes meanwhile holds the action."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from engine_flight import PATIENCE_S, Flight, QuickClock, act, python

from engine.actions.saving import KEPT_ACTIONS, SnapshotRule, WorkspaceSaver
from engine.domain import commands as cmd
from engine.domain.failure import FailureKind
from engine.domain.goal import GoalStatus
from engine.domain.plan import StepStatus
from engine.domain.state import ActiveAction, Mode
from engine.engine import EngineConfig
from engine.journal import events as ev
from engine.snapshots import SnapshotPolicy, Snapshots

WRECKS = python(
    "import os, pathlib, shutil\n"
    "pathlib.Path('kept').write_text('changed'); os.chmod('kept', 0o600)\n"
    "os.remove('gone'); shutil.rmtree('full'); os.mkdir('new')\n"
    "pathlib.Path('new/file').write_bytes(bytes(70_000)); os.symlink('kept', 'link')"
)
WRITE = act("write", path="made", content="1")


def _store(flight: Flight) -> Path:
    return flight.workspace / ".pilothouse" / "snapshots"


def _snapshots(flight: Flight) -> Snapshots:
    assert flight.engine._saver is not None
    return flight.engine._saver.snapshots


@asynccontextmanager
async def _slow(flight: Flight) -> AsyncIterator[None]:
    """Saving waits its turn, as when another agent's save takes long."""
    async with _snapshots(flight)._busy:
        yield


@contextmanager
def _broken_store(flight: Flight) -> Iterator[None]:
    _store(flight).write_text("in the way")
    yield
    _store(flight).unlink()


def _picture(root: Path) -> dict[str, tuple[int, bytes | str]]:
    """Every name with its mode and content, without what the sandbox keeps for its programs."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if not name.startswith((".home", ".tmp")):
            content = "" if path.is_dir() else os.readlink(path) if path.is_symlink() else path.read_bytes()
            found[name] = (path.lstat().st_mode, content)
    return found


def _large(flight: Flight, files: int = 4_000) -> None:
    """A tree that takes long to be saved for the first time."""
    (flight.sandbox / "large").mkdir()
    for number in range(files):
        (flight.sandbox / "large" / str(number)).write_text(f"content {number}")


async def _until_reading(flight: Flight) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not (_store(flight) / "passing").is_dir() or not os.listdir(_store(flight) / "passing"):
            await asyncio.sleep(0)


# ------------------------------------------------------------------ what is saved


async def test_what_an_action_did_is_brought_back_byte_for_byte(flight: Flight) -> None:
    (flight.sandbox / "kept").write_text("content")
    (flight.sandbox / "gone").write_bytes(bytes(range(256)))
    (flight.sandbox / "full" / "deep").mkdir(parents=True)
    (flight.sandbox / "full" / "deep" / "file").write_text("deep")
    before = _picture(flight.sandbox)
    await flight.plan(WRECKS, act("rm", path="kept"))
    await flight.do(cmd.Step)
    await flight.until(lambda s: s.actions == 1 and not s.acting)
    assert _picture(flight.sandbox) != before

    (started,) = await flight.payloads(ev.ActionStarted)
    (taken,) = await flight.payloads(ev.SnapshotTaken)
    assert (started.snapshot, taken.files) == (taken.snapshot, 3)
    assert (await _snapshots(flight).restore(started.snapshot)).verified
    assert _picture(flight.sandbox) == before


async def test_each_action_that_may_change_something_is_saved_for_and_no_other(flight: Flight) -> None:
    await flight.plan(act("ls"), WRITE, act("read", path="made"), *[python("pass")] * 3)
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    await flight.do(cmd.CallTool, command="ls")
    await flight.do(cmd.CallTool, command="mkdir", args={"path": "mine"})
    await flight.until(lambda s: s.operator_actions == 2 and not s.acting)

    started = await flight.payloads(ev.ActionStarted)
    assert [said.mutates for said in started] == [False, True, False, True, True, True, False, True]
    assert [said.snapshot is not None for said in started] == [said.mutates for said in started]
    snapshots = [said.snapshot for said in started if said.mutates]
    assert len(set(snapshots[:3])) == 3
    assert len(set(snapshots[2:])) == 1, "the tree did not change after the first program had its home"
    kinds = [event.kind for event in await flight.events() if event.kind.startswith(("action", "snapshot"))]
    first = kinds.index("action.finished")
    assert kinds[first + 1 : first + 4] == ["action.requested", "snapshot.taken", "action.started"]
    labels = [info.label for info in await _snapshots(flight).list()]
    assert labels[-1].endswith("mkdir")


async def test_a_hostile_tree_is_saved_as_far_as_it_can_be(flight: Flight) -> None:
    hostile = (
        "import os\n"
        "os.mkfifo('pipe'); os.symlink('/dev/zero', 'zero')\n"
        "with open('sparse', 'wb') as f: f.truncate(10 << 30) if False else f.truncate(900 << 20)\n"
        "os.mkdir('x'); os.chdir('x')\n"
        "for _ in range(60): os.mkdir('d'); os.chdir('d')\n"
        "open('\\x1b[31mred\\n', 'w').close()"
    )
    await flight.plan(python(hostile), WRITE, act("read", path="made"))
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals or s.intervention)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED, state.intervention
    taken = (await flight.payloads(ev.SnapshotTaken))[-1]
    info = (await _snapshots(flight).list())[-1]
    assert taken.skipped == len(info.skipped) >= 1
    assert "sparse" in [skip.path for skip in info.skipped]


async def test_agents_that_share_a_root_save_one_after_the_other(flight: Flight) -> None:
    names = [f"agent-{number}" for number in range(8)]
    for name in names:
        await flight.do(cmd.CreateAgent, agent=name)
        await flight.do(cmd.AdoptGoal, agent=name, text=f"create the directories {name}/a and {name}/b")
        await flight.do(cmd.Run, agent=name)
    for name in names:
        await flight.until(lambda s: not s.open_goals, name)
        assert all(said.snapshot for said in await flight.payloads(ev.ActionStarted, name))


async def test_with_snapshots_off_none_is_taken(tmp_path: Path, open_flight: Callable[..., Any]) -> None:
    flight: Flight = await open_flight(tmp_path, config=EngineConfig(snapshots=SnapshotRule.OFF))
    await flight.plan(WRITE)
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    assert [said.snapshot for said in await flight.payloads(ev.ActionStarted)] == [None]
    assert not await flight.payloads(ev.SnapshotTaken)
    assert not _store(flight).exists()


# ------------------------------------------------------------------ what comes while it is saved


async def test_a_pause_holds_an_action_that_is_saved_for(flight: Flight) -> None:
    steps = await flight.plan(WRITE)
    await flight.at_gate(steps[0])
    async with _slow(flight):
        await flight.do(cmd.Run)
        await flight.do(cmd.Pause)
        await flight.do(cmd.Run)
        await flight.do(cmd.Pause)
    await flight.until(lambda s: s.mode is Mode.PAUSED)
    assert not await flight.payloads(ev.SnapshotTaken)
    assert not (flight.sandbox / "made").exists()
    await flight.do(cmd.Step)
    await flight.until(lambda s: not s.open_goals)
    assert len(await flight.payloads(ev.SnapshotTaken)) == 1
    assert await flight.started() == steps


async def test_a_stop_withdraws_an_action_that_is_saved_for(flight: Flight) -> None:
    steps = await flight.plan(WRITE)
    await flight.at_gate(steps[0])
    async with _slow(flight):
        await flight.do(cmd.Run)
        await flight.do(cmd.Stop, reason="enough")
        await flight.until(lambda s: s.action is None)
    assert (await flight.payloads(ev.ActionWithdrawn))[-1].reason == "enough"
    assert (await flight.state()).mode is Mode.STOPPED
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    assert await flight.started() == steps


async def test_a_stop_in_the_middle_of_the_files_leaves_nothing_behind(flight: Flight) -> None:
    _large(flight)
    await flight.plan(WRITE)
    await flight.do(cmd.Run)
    await _until_reading(flight)
    await flight.do(cmd.Stop)
    await flight.until(lambda s: s.action is None)
    assert await _snapshots(flight).list() == ()
    assert os.listdir(_store(flight) / "passing") == []
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    (taken,) = await flight.payloads(ev.SnapshotTaken)
    assert taken.files == 4_000


async def test_an_edit_while_it_is_saved_runs_what_was_edited(flight: Flight) -> None:
    steps = await flight.plan(WRITE, act("ls"))
    await flight.at_gate(steps[0])
    async with _slow(flight):
        await flight.do(cmd.Run)
        await flight.do(cmd.EditStep, step=steps[0], args={"path": "other", "content": "2"})
        await flight.do(cmd.SetBreakpoint, step=steps[1])
    await flight.until(lambda s: s.breakpoint_hit)
    assert sorted(_picture(flight.sandbox)) == ["other"]
    assert "the plan changed" in (await flight.payloads(ev.ActionWithdrawn))[-1].reason
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)


async def test_a_breakpoint_set_while_it_is_saved_holds(flight: Flight) -> None:
    steps = await flight.plan(WRITE)
    await flight.at_gate(steps[0])
    async with _slow(flight):
        await flight.do(cmd.Run)
        await flight.do(cmd.SetBreakpoint, step=steps[0])
        await flight.until(lambda s: s.breakpoint_hit)
    assert not await flight.started()
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)


async def test_an_operators_call_comes_before_the_step_that_is_saved_for(flight: Flight) -> None:
    steps = await flight.plan(WRITE)
    await flight.at_gate(steps[0])
    async with _slow(flight):
        await flight.do(cmd.Run)
        await flight.do(cmd.CallTool, command="mkdir", args={"path": "mine"})
        await flight.until(lambda s: s.action and not s.action.step)
    await flight.until(lambda s: not s.open_goals)
    assert await flight.started() == ["", *steps]
    mine, its = await flight.payloads(ev.SnapshotTaken)
    assert (await _snapshots(flight).diff(mine.snapshot, its.snapshot)).added == ("mine",)


async def test_an_operators_call_is_stopped_while_it_is_saved_for_and_while_it_runs(flight: Flight) -> None:
    await flight.do(cmd.Stop)
    async with _slow(flight):
        await flight.do(cmd.CallTool, command="mkdir", args={"path": "mine"})
        await flight.until(lambda s: s.action)
        await flight.do(cmd.Stop, reason="not that")
        await flight.until(lambda s: s.action is None)
    assert [said.reason for said in await flight.payloads(ev.ActionWithdrawn)] == ["not that"]
    await flight.do(cmd.CallTool, command="run", args={"command": "python -c 'import time; time.sleep(60)'"})
    await flight.until(lambda s: s.acting)
    await flight.do(cmd.Stop)
    await flight.until(lambda s: s.action is None)
    assert len(await flight.payloads(ev.ActionCancelled)) == 1
    assert "already stopped" in (await flight.do(cmd.Stop)).message


async def test_an_agent_deleted_while_it_is_saved_starts_nothing(flight: Flight) -> None:
    steps = await flight.plan(WRITE)
    await flight.at_gate(steps[0])
    async with _slow(flight):
        await flight.do(cmd.Run)
        await flight.do(cmd.DeleteAgent)
    assert not (flight.sandbox / "made").exists()


async def test_closing_while_it_is_saved_withdraws_the_action(flight: Flight) -> None:
    _large(flight)
    steps = await flight.plan(WRITE)
    await flight.do(cmd.Run)
    await _until_reading(flight)
    await flight.reopen()
    assert "session ended" in (await flight.payloads(ev.ActionWithdrawn))[-1].reason
    assert not await flight.started()
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    assert await flight.started() == steps


async def test_a_retrys_delay_is_waited_out_once_though_it_is_saved_twice(flight: Flight) -> None:
    steps = await flight.plan(python("raise SystemExit(3)"))
    await flight.at_gate(steps[0])
    await flight.do(cmd.Step)
    await flight.until(lambda s: s.retry and s.action and not s.acting)
    assert isinstance(flight.clock, QuickClock)
    async with _slow(flight):
        await flight.do(cmd.Run)
        await flight.do(cmd.Pause)
        await flight.do(cmd.Run)
    await flight.until(lambda s: s.intervention)
    retries = [said for said in await flight.payloads(ev.RecoveryChosen) if said.delay_s]
    assert len(flight.clock.slept) <= len(retries)


# ------------------------------------------------------------------ what cannot be saved


async def test_a_step_that_cannot_be_saved_for_is_the_operators_decision(flight: Flight) -> None:
    steps = await flight.plan(WRITE)
    with _broken_store(flight):
        await flight.do(cmd.Run)
        turn = (await flight.until(lambda s: s.intervention)).intervention
        assert turn is not None
        assert (turn.step, turn.kind, turn.unsaved) == (steps[0], FailureKind.DEPENDENCY_NOT_MET, True)
        assert "cannot be opened" in turn.reason
        assert "run the step without a snapshot" in turn.reason
        (failed,) = await flight.payloads(ev.SnapshotFailed)
        assert failed.reason in turn.reason
        await flight.do(cmd.RetryStep, step=steps[0])
        await flight.until(lambda s: s.intervention)
        assert len(await flight.payloads(ev.SnapshotFailed)) == 2
    assert isinstance(flight.clock, QuickClock)
    assert not flight.clock.slept
    assert not await flight.started()
    await flight.do(cmd.RetryStep, step=steps[0])
    state = await flight.until(lambda s: not s.open_goals)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED
    assert (await flight.payloads(ev.ActionStarted))[-1].snapshot


async def test_a_waived_snapshot_lets_one_step_run_once(flight: Flight) -> None:
    steps = await flight.plan(WRITE, act("mkdir", path="next"))
    with _broken_store(flight):
        await flight.do(cmd.Run)
        await flight.until(lambda s: s.intervention)
        receipt = await flight.do(cmd.WaiveSnapshot, step=steps[0])
        assert "cannot be undone" in receipt.message
        state = await flight.until(lambda s: s.intervention and s.intervention.step == steps[1])
        assert state.unsaved_step == ""
        assert [said.snapshot for said in await flight.payloads(ev.ActionStarted)] == [None]
        await flight.do(cmd.SkipStep, step=steps[1])
        await flight.until(lambda s: not s.open_goals)
    assert await flight.started() == steps[:1]


async def test_a_waiver_given_beforehand_waits_for_its_step_but_not_for_another_session(
    flight: Flight,
) -> None:
    steps = await flight.plan(act("mkdir", path="first"), WRITE)
    await flight.do(cmd.WaiveSnapshot, step=steps[1])
    await flight.do(cmd.Step)
    await flight.at_gate(steps[1])
    assert (await flight.state()).unsaved_step == steps[1]
    await flight.reopen()
    assert (await flight.state()).unsaved_step == ""
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    assert all(said.snapshot for said in await flight.payloads(ev.ActionStarted))


async def test_a_waiver_cuts_a_slow_save_short(flight: Flight) -> None:
    steps = await flight.plan(WRITE)
    await flight.at_gate(steps[0])
    async with _slow(flight):
        await flight.do(cmd.Run)
        await flight.do(cmd.WaiveSnapshot, step=steps[0])
        await flight.until(lambda s: not s.open_goals)
    assert [said.snapshot for said in await flight.payloads(ev.ActionStarted)] == [None]


async def test_where_nobody_is_there_to_ask_the_goal_ends_with_the_reason(flight: Flight) -> None:
    await flight.plan(WRITE)
    with _broken_store(flight):
        await flight.do(cmd.Run, ask=False)
        state = await flight.until(lambda s: not s.open_goals)
    assert state.goals["g1"].status is GoalStatus.FAILED
    assert "cannot be opened" in state.goals["g1"].reason
    assert state.plans["g1"].steps[-1].status is not StepStatus.COMPLETED


async def test_the_operators_own_call_runs_though_it_cannot_be_saved_for(flight: Flight) -> None:
    with _broken_store(flight):
        await flight.do(cmd.CallTool, command="mkdir", args={"path": "mine"})
        await flight.until(lambda s: s.operator_actions == 1 and not s.acting)
    assert (flight.sandbox / "mine").is_dir()
    kinds = [event.kind for event in await flight.events()][-3:]
    assert kinds == ["snapshot.failed", "action.started", "action.finished"]
    assert (await flight.state()).intervention is None


async def test_a_full_disk_under_the_snapshots_holds_with_an_intervention(flight: Flight) -> None:
    _store(flight).mkdir()
    disk = str(_store(flight))
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"THIS MACHINE CANNOT MOUNT A SMALL DISK: {mounted.stderr.decode().strip()}")
    try:
        steps = await flight.plan(WRITE)
        ballast = _store(flight) / "ballast"
        ballast.write_bytes(bytes(60 << 20))
        await flight.do(cmd.Run)
        turn = (await flight.until(lambda s: s.intervention)).intervention
        assert turn is not None
        assert "256.0 MiB must stay free" in turn.reason
        ballast.unlink()
        await flight.do(cmd.RetryStep, step=steps[0])
        await flight.until(lambda s: not s.open_goals)
        assert (await flight.payloads(ev.ActionStarted))[-1].snapshot
    finally:
        subprocess.run(["umount", disk], check=True)


_KILLED = """
import asyncio, json, sys
from pathlib import Path
from engine.domain import commands as cmd
from engine.engine import Engine
async def main():
    engine = await Engine.open(Path(sys.argv[1]))
    async def do(kind, **fields):
        assert (await engine.submit(kind(agent="pilot", **fields))).ok
    await do(cmd.CreateAgent)
    await do(cmd.AdoptGoal, text="create a directory named 'made'")
    await do(cmd.Run)
    await asyncio.sleep(60)
asyncio.run(main())
"""


async def test_kill_9_in_the_middle_of_a_save_leaves_a_store_that_works(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    flight = Flight(tmp_path, QuickClock())
    flight.sandbox.mkdir()
    _large(flight)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _KILLED, tmp_path, stderr=PIPE)
    await _until_reading(flight)
    process.send_signal(signal.SIGKILL)
    assert await process.wait() == -signal.SIGKILL
    await flight.open()
    state = await flight.state()
    assert (state.action, state.intervention) == (None, None)
    assert not (flight.sandbox / "made").exists()
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    (taken,) = await flight.payloads(ev.SnapshotTaken)
    assert (await _snapshots(flight).verify(taken.snapshot)).ok
    await flight.engine.close()


# ------------------------------------------------------------------ clearing away


async def test_old_snapshots_are_cleared_away_and_recent_ones_stay(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    snapshots = Snapshots(root, tmp_path / "store", SnapshotPolicy(floor_bytes=0, store_bytes=300_000))
    asked: list[int] = []
    ids: list[str] = []

    async def recent(actions: int) -> list[str]:
        asked.append(actions)
        return ids if actions == KEPT_ACTIONS[0] else []

    saver = WorkspaceSaver(snapshots, recent)
    for number in range(5):
        (root / "file").write_bytes(os.urandom(100_000))
        saved = await saver.save("pilot", ActiveAction(f"a{number}", "t", "write", {}, "agent"))
        assert isinstance(saved, ev.SnapshotTaken)
        ids.append(saved.snapshot)
    async with asyncio.timeout(PATIENCE_S):
        while len(await snapshots.list()) > 2:
            await asyncio.sleep(0.002)
    assert set(asked) == set(KEPT_ACTIONS), "what was asked to be kept was over the budget"
    assert [info.id for info in await snapshots.list()] == ids[-2:]
    await saver.close()


async def test_snapshots_that_cannot_be_cleared_away_are_a_notice(flight: Flight) -> None:
    await flight.do(cmd.CallTool, command="mkdir", args={"path": "a"})
    await flight.until(lambda s: s.operator_actions == 1 and not s.acting)
    (record,) = (_store(flight) / "snapshots").iterdir()
    record.write_text("{")
    assert flight.engine._saver is not None
    flight.engine._saver.tidy()
    async with asyncio.timeout(PATIENCE_S):
        while not flight.engine.health.snapshots:
            await asyncio.sleep(0.002)
    assert "not cleared away" in flight.engine.health.snapshots
    await flight.do(cmd.CallTool, command="mkdir", args={"path": "b"})
    await flight.until(lambda s: s.operator_actions == 2 and not s.acting)
    assert len(await flight.payloads(ev.SnapshotTaken)) == 2
