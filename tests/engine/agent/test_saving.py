"""The workspace is saved before each action that may change it, and what comes meanwhile holds the action."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine_flight import Flight, QuickClock, act, python
from saving_flight import WRITE, make_large, picture, slow, snapshots_of, store_of, until_reading

from engine.agent.actions.snapshots import Saved, SnapshotRule, WorkspaceSaver
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode
from engine.core.goals import GoalStatus
from engine.core.recovery import ActiveAction
from tests.engine.sandbox.snapshots.snapshot_samples import kept

WRECKS = python(
    "import os, pathlib, shutil\n"
    "pathlib.Path('kept').write_text('changed'); os.chmod('kept', 0o600)\n"
    "os.remove('gone'); shutil.rmtree('full'); os.mkdir('new')\n"
    "pathlib.Path('new/file').write_bytes(bytes(70_000)); os.symlink('kept', 'link')"
)


# ------------------------------------------------------------------ what is saved


async def test_what_an_action_did_is_brought_back_byte_for_byte(flight: Flight) -> None:
    (flight.sandbox / "kept").write_text("content")
    (flight.sandbox / "gone").write_bytes(bytes(range(256)))
    (flight.sandbox / "full" / "deep").mkdir(parents=True)
    (flight.sandbox / "full" / "deep" / "file").write_text("deep")
    before = picture(flight.sandbox)
    await flight.plan(WRECKS, act("rm", path="kept"))
    await flight.do(cmd.Step)
    await flight.until(lambda s: s.actions == 1 and not s.acting)
    assert picture(flight.sandbox) != before

    (started,) = await flight.payloads(ev.ActionStarted)
    (taken,) = await flight.payloads(ev.SnapshotTaken)
    assert (started.snapshot, taken.files) == (taken.snapshot, 3)
    assert (await snapshots_of(flight).restore(started.snapshot)).verified
    assert picture(flight.sandbox) == before


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
    labels = [info.label for info in kept(snapshots_of(flight))]
    assert labels[-1].endswith("mkdir")


async def test_a_hostile_tree_is_saved_as_far_as_it_can_be(flight: Flight) -> None:
    hostile = (
        "import os\n"
        "os.mkfifo('pipe'); os.symlink('/dev/zero', 'zero')\n"
        "with open('sparse', 'wb') as f: f.truncate(900 << 20)\n"
        "os.mkdir('x'); os.chdir('x')\n"
        "for _ in range(60): os.mkdir('d'); os.chdir('d')\n"
        "open('\\x1b[31mred\\n', 'w').close()"
    )
    await flight.plan(python(hostile), WRITE, act("read", path="made"))
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals or s.intervention)
    assert state.goals["g1"].status is GoalStatus.ACHIEVED, state.intervention
    taken = (await flight.payloads(ev.SnapshotTaken))[-1]
    info = kept(snapshots_of(flight))[-1]
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
    assert not store_of(flight).exists()


# ------------------------------------------------------------------ what comes while it is saved


async def test_a_pause_holds_an_action_that_is_saved_for(flight: Flight) -> None:
    steps = await flight.plan(WRITE)
    await flight.at_gate(steps[0])
    async with slow(flight):
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


class _PausesInTheLastMoment(WorkspaceSaver):
    """Saves; in the step of the loop in which that is done, the operator's pause arrives."""

    engine: Engine

    async def save(self, agent: str, action: ActiveAction) -> Saved:
        saved = await super().save(agent, action)
        if action.id == "a1":
            assert self.engine._agents[agent].handle(cmd.Pause(agent=agent), "operator:test").ok
        return saved


async def test_a_pause_in_the_moment_in_which_it_is_saved_holds_too(flight: Flight) -> None:
    saver = _PausesInTheLastMoment(snapshots_of(flight), flight.engine.time_travel._recent_snapshots)
    saver.engine, flight.engine.time_travel.main = flight.engine, saver
    await flight.do(cmd.CreateAgent, agent="other")
    await flight.do(cmd.AdoptGoal, agent="other", text="create a directory named 'made'")
    await flight.do(cmd.Run, agent="other")
    await flight.until(lambda s: s.mode is Mode.PAUSED and s.action, "other")
    assert not (flight.sandbox / "made").exists()
    assert not await flight.payloads(ev.SnapshotTaken, "other")
    await flight.do(cmd.DropGoal, agent="other", goal="g1")


async def test_a_stop_withdraws_an_action_that_is_saved_for(flight: Flight) -> None:
    steps = await flight.plan(WRITE)
    await flight.at_gate(steps[0])
    async with slow(flight):
        await flight.do(cmd.Run)
        await flight.do(cmd.Stop, reason="enough")
        await flight.until(lambda s: s.action is None)
    assert (await flight.payloads(ev.ActionWithdrawn))[-1].reason == "enough"
    assert (await flight.state()).mode is Mode.STOPPED
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    assert await flight.started() == steps


async def test_a_stop_in_the_middle_of_the_files_leaves_nothing_behind(flight: Flight) -> None:
    make_large(flight)
    await flight.plan(WRITE)
    await flight.do(cmd.Run)
    await until_reading(flight)
    await flight.do(cmd.Stop)
    await flight.until(lambda s: s.action is None)
    async with snapshots_of(flight)._busy:
        assert kept(snapshots_of(flight)) == []
        assert os.listdir(store_of(flight) / "passing") == []
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    (taken,) = await flight.payloads(ev.SnapshotTaken)
    assert taken.files == 4_000


async def test_an_edit_while_it_is_saved_runs_what_was_edited(flight: Flight) -> None:
    steps = await flight.plan(WRITE, act("ls"))
    await flight.at_gate(steps[0])
    async with slow(flight):
        await flight.do(cmd.Run)
        await flight.do(cmd.EditStep, step=steps[0], args={"path": "other", "content": "2"})
        await flight.do(cmd.SetBreakpoint, step=steps[1])
    await flight.until(lambda s: s.breakpoint_hit)
    assert sorted(picture(flight.sandbox)) == ["other"]
    assert "the plan changed" in (await flight.payloads(ev.ActionWithdrawn))[-1].reason
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)


async def test_a_breakpoint_set_while_it_is_saved_holds(flight: Flight) -> None:
    steps = await flight.plan(WRITE)
    await flight.at_gate(steps[0])
    async with slow(flight):
        await flight.do(cmd.Run)
        await flight.do(cmd.SetBreakpoint, step=steps[0])
        await flight.until(lambda s: s.breakpoint_hit)
    assert not await flight.started()
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)


async def test_an_operators_call_comes_before_the_step_that_is_saved_for(flight: Flight) -> None:
    steps = await flight.plan(WRITE)
    await flight.at_gate(steps[0])
    async with slow(flight):
        await flight.do(cmd.Run)
        await flight.do(cmd.CallTool, command="mkdir", args={"path": "mine"})
        await flight.until(lambda s: s.action and not s.action.step)
    await flight.until(lambda s: not s.open_goals)
    assert await flight.started() == ["", *steps]
    mine, its = await flight.payloads(ev.SnapshotTaken)
    assert (await snapshots_of(flight).diff(mine.snapshot, its.snapshot)).added == ("mine",)


async def test_an_operators_call_is_stopped_while_it_is_saved_for_and_while_it_runs(flight: Flight) -> None:
    await flight.do(cmd.Stop)
    async with slow(flight):
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
    async with slow(flight):
        await flight.do(cmd.Run)
        await flight.do(cmd.DeleteAgent)
    assert not (flight.sandbox / "made").exists()


async def test_closing_while_it_is_saved_withdraws_the_action(flight: Flight) -> None:
    make_large(flight)
    steps = await flight.plan(WRITE)
    await flight.do(cmd.Run)
    await until_reading(flight)
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
    async with slow(flight):
        await flight.do(cmd.Run)
        await flight.do(cmd.Pause)
        await flight.do(cmd.Run)
    await flight.until(lambda s: s.intervention)
    retries = [said for said in await flight.payloads(ev.RecoveryChosen) if said.delay_s]
    assert len(flight.clock.slept) <= len(retries)
