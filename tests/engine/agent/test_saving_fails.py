"""Where the workspace cannot be saved, and clearing old snapshots away."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from engine_flight import PATIENCE_S, Flight, QuickClock, act, journal_holds_together
from saving_flight import WRITE, broken_store, make_large, slow, snapshots_of, store_of, until_reading

from engine.agent.actions.snapshots import KEPT_ACTIONS, WorkspaceSaver
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.plan import StepStatus
from engine.core.recovery import ActiveAction, FailureKind
from engine.sandbox.snapshots.walk import SnapshotPolicy
from engine.sandbox.snapshots.workspace import Snapshots
from tests.engine.sandbox.snapshots.snapshot_samples import is_whole, kept

# ------------------------------------------------------------------ what cannot be saved


async def test_a_step_that_cannot_be_saved_for_is_the_operators_decision(flight: Flight) -> None:
    steps = await flight.plan(WRITE)
    with broken_store(flight):
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
    with broken_store(flight):
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
    async with slow(flight):
        await flight.do(cmd.Run)
        await flight.do(cmd.WaiveSnapshot, step=steps[0])
        await flight.until(lambda s: not s.open_goals)
    assert [said.snapshot for said in await flight.payloads(ev.ActionStarted)] == [None]


async def test_where_nobody_is_there_to_ask_the_goal_ends_with_the_reason(flight: Flight) -> None:
    await flight.plan(WRITE)
    with broken_store(flight):
        await flight.do(cmd.Run, ask=False)
        state = await flight.until(lambda s: not s.open_goals)
    assert state.goals["g1"].status is GoalStatus.FAILED
    assert "cannot be opened" in state.goals["g1"].reason
    assert state.plans["g1"].steps[-1].status is not StepStatus.COMPLETED


async def test_the_operators_own_call_runs_though_it_cannot_be_saved_for(flight: Flight) -> None:
    with broken_store(flight):
        await flight.do(cmd.CallTool, command="mkdir", args={"path": "mine"})
        await flight.until(lambda s: s.operator_actions == 1 and not s.acting)
    assert (flight.sandbox / "mine").is_dir()
    kinds = [event.kind for event in await flight.events()][-3:]
    assert kinds == ["snapshot.failed", "action.started", "action.finished"]
    assert (await flight.state()).intervention is None


async def test_a_full_disk_under_the_snapshots_holds_with_an_intervention(flight: Flight) -> None:
    store_of(flight).mkdir()
    disk = str(store_of(flight))
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"THIS MACHINE CANNOT MOUNT A SMALL DISK: {mounted.stderr.decode().strip()}")
    try:
        steps = await flight.plan(WRITE)
        ballast = store_of(flight) / "ballast"
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
from engine.core import commands as cmd
from engine.api.engine import Engine
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


async def test_kill_9_in_the_middle_of_a_save_leaves_a_store_that_works(tmp_path: Path) -> None:
    flight = Flight(tmp_path, QuickClock())
    flight.sandbox.mkdir()
    make_large(flight)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _KILLED, tmp_path, stderr=PIPE)
    await until_reading(flight)
    process.send_signal(signal.SIGKILL)
    assert await process.wait() == -signal.SIGKILL
    await flight.open()
    state = await flight.state()
    assert (state.action, state.intervention) == (None, None)
    assert not (flight.sandbox / "made").exists()
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    (taken,) = await flight.payloads(ev.SnapshotTaken)
    assert is_whole(snapshots_of(flight), taken.snapshot)
    await flight.engine.close()
    await journal_holds_together(tmp_path)


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
        while len(kept(snapshots)) > 2:
            await asyncio.sleep(0.002)
    assert set(asked) == set(KEPT_ACTIONS), "what was asked to be kept was over the budget"
    assert [info.id for info in kept(snapshots)] == ids[-2:]
    await saver.close()


async def test_snapshots_that_cannot_be_cleared_away_are_a_notice(flight: Flight) -> None:
    await flight.do(cmd.CallTool, command="mkdir", args={"path": "a"})
    await flight.until(lambda s: s.operator_actions == 1 and not s.acting)
    (record,) = (store_of(flight) / "snapshots").iterdir()
    record.write_text("{")
    record.rename(record.with_name(f"{record.name[:-1]}{(int(record.name[-1], 16) + 1) % 16:x}"))
    assert flight.engine.time_travel.main is not None
    flight.engine.time_travel.main.tidy()
    async with asyncio.timeout(PATIENCE_S):
        while not flight.engine.health.snapshots:
            await asyncio.sleep(0.002)
    assert "not cleared away" in flight.engine.health.snapshots
    await flight.do(cmd.CallTool, command="mkdir", args={"path": "b"})
    await flight.until(lambda s: s.operator_actions == 2 and not s.acting)
    assert len(await flight.payloads(ev.SnapshotTaken)) == 2
