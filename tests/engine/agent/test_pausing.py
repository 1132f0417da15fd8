"""Pause, step, breakpoint and stop: the journal's order proves that nothing acts that may not."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from engine_flight import Flight, act, python

from app.projection.pane_views import status
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode, RunState
from engine.core.goals import GoalStatus
from engine.core.plan import StepStatus
from engine.inquiry.waiting import waiting_for

TINY = [act("write", path=f"f{n}", content="x") for n in range(30)]


async def test_nothing_starts_after_an_acknowledged_pause_until_run(flight: Flight) -> None:
    await flight.plan(*TINY)
    for round_ in range(5):
        await flight.do(cmd.Run)
        await flight.until(lambda s, done=round_ * 3 + 1: s.actions >= done)
        await flight.do(cmd.Pause)
        await flight.until(lambda s: not s.acting)
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED)

    paused = False
    pauses = 0
    for event in await flight.events():
        if event.kind in ("agent.paused", "agent.resumed"):
            paused = event.kind == "agent.paused"
            pauses += paused
        assert not (paused and event.kind == "action.started"), event.ref
    assert pauses >= 5
    assert len(list(flight.sandbox.glob("f*"))) == 30


async def test_each_step_runs_exactly_one_action(flight: Flight) -> None:
    """Behaviour 24."""
    steps = await flight.plan(*TINY[:5])
    for count in (1, 2, 3):
        await flight.at_gate(steps[count - 1])
        await flight.do(cmd.Step)
        state = await flight.until(lambda s, n=count: s.actions == n and not s.acting and not s.grants)
        assert state.run is RunState.PAUSED
    await flight.at_gate(steps[3])
    assert await flight.started() == steps[:3]


async def test_steps_pressed_faster_than_the_actions_run_as_many_actions(flight: Flight) -> None:
    steps = await flight.plan(*[python("print(1)")] * 6)
    for _ in range(4):
        await flight.do(cmd.Step)
    await flight.at_gate(steps[4])
    assert await flight.started() == steps[:4]
    assert (await flight.state()).mode is Mode.PAUSED


async def test_steps_left_over_when_the_goal_ends_allow_nothing_later(flight: Flight) -> None:
    await flight.plan(act("write", path="a", content=""))
    for _ in range(3):
        await flight.submit(cmd.Step)
    state = await flight.until(lambda s: not s.open_goals)
    assert (state.grants, state.mode) == (0, Mode.PAUSED)

    steps = await flight.plan(act("write", path="b", content=""))
    await flight.at_gate(steps[0])
    assert not (flight.sandbox / "b").exists()


async def test_step_while_an_action_runs_pauses_behind_it(flight: Flight) -> None:
    steps = await flight.plan(python("import sys; sys.stdin.read(); print(1)"), *TINY[:2])
    slow = python("import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.01)")
    await flight.do(cmd.EditStep, step=steps[0], args=slow["params"]["args"])
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting)
    receipt = await flight.do(cmd.Step)
    assert "the running action is this step" in receipt.message
    (flight.sandbox / "go").touch()
    await flight.at_gate(steps[1])
    assert await flight.started() == steps[:1]


async def test_step_while_running_between_actions_allows_one_more(flight: Flight) -> None:
    await flight.plan(*TINY)
    await flight.do(cmd.Run)
    await flight.do(cmd.Step)
    state = await flight.until(lambda s: s.mode is Mode.PAUSED)
    events = await flight.events()
    granted = max((e.version for e in events if e.kind == "agent.step_granted"), default=0)
    paused = max((e.version for e in events if e.kind == "agent.paused"), default=0)
    after = [e for e in events if e.kind == "action.started" and e.version > max(granted, paused)]
    assert len(after) == (1 if granted > paused else 0)
    assert state.actions < 60


async def test_a_breakpoint_holds_before_its_step_survives_a_restart_and_releases_once(
    flight: Flight,
) -> None:
    steps = await flight.plan(*TINY[:4])
    await flight.do(cmd.SetBreakpoint, step=steps[2])
    await flight.reopen()
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.breakpoint_hit == steps[2])
    assert state.run is RunState.PAUSED
    assert await flight.started() == steps[:2]

    await flight.reopen()
    assert (await flight.state()).breakpoint_hit == steps[2]
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.goals["g1"].status is GoalStatus.ACHIEVED)
    assert await flight.started() == steps
    assert len(await flight.payloads(ev.BreakpointHit)) == 1


async def test_a_step_passes_a_breakpoint_and_a_cleared_one_holds_nothing(flight: Flight) -> None:
    steps = await flight.plan(*TINY[:3])
    for step in steps[:2]:
        await flight.do(cmd.SetBreakpoint, step=step)
    await flight.at_gate(steps[0])
    await flight.do(cmd.Step)
    await flight.at_gate(steps[1])
    await flight.do(cmd.SetBreakpoint, step=steps[1], on=False)
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    assert await flight.started() == steps
    assert not await flight.payloads(ev.BreakpointHit)
    assert "will not run again" in await flight.refused(cmd.SetBreakpoint, step=steps[0])


async def test_stop_ends_the_running_program_and_run_goes_on_with_its_step(flight: Flight) -> None:
    program = (
        "import os, pathlib, time  # stopped-and-gone\n"
        "again = pathlib.Path('pid').exists()\n"
        "pathlib.Path('pid').write_text(str(os.getpid()))\n"
        "time.sleep(0 if again else 60)"
    )
    steps = await flight.plan(python(program), act("write", path="done", content=""))
    await flight.do(cmd.Run)
    await flight.until(lambda s: (flight.sandbox / "pid").exists() and (flight.sandbox / "pid").read_text())
    await flight.do(cmd.Stop)
    state = await flight.until(lambda s: not s.acting)
    assert state.mode is Mode.STOPPED
    assert not _alive(b"stopped-and-gone")
    assert state.plan
    assert state.plan.steps[-2].status is StepStatus.PLANNED
    assert len(await flight.payloads(ev.ActionCancelled)) == 1

    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    assert await flight.started() == [steps[0], steps[0], steps[1]]


def _alive(words: bytes) -> bool:
    """Whether a process bears these words; the ids that jailed programs see of themselves are their own."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if words in path.read_bytes():
                return True
    return False


async def test_allowed_steps_do_not_outlive_the_session(flight: Flight) -> None:
    steps = await flight.plan(python("import time; time.sleep(60)"), *TINY[:2])
    for _ in range(3):
        await flight.do(cmd.Step)
    await flight.until(lambda s: s.acting)
    await flight.reopen()
    state = await flight.at_gate(steps[0])
    assert (state.grants, state.mode) == (0, Mode.PAUSED)
    assert await flight.started() == steps[:1]
    assert not [name for name in os.listdir(flight.sandbox) if not name.startswith(".")]


async def test_closing_with_a_running_action_records_its_end_and_run_repeats_it(flight: Flight) -> None:
    steps = await flight.plan(python("import time; time.sleep(60)"))
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting)
    await flight.reopen()
    state = await flight.state()
    assert (state.run, state.intervention, state.acting) == (RunState.PAUSED, None, False)
    assert not await flight.payloads(ev.ActionOutcomeUnknown)
    assert [said.reason for said in await flight.payloads(ev.ActionCancelled)] == ["the session closed"]
    await flight.do(cmd.EditStep, step=steps[0], command="write", args={"path": "x", "content": ""})
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)


async def test_max_loops_counts_from_each_run_whenever_it_comes(flight: Flight) -> None:
    """Behaviour 16."""
    steps = await flight.plan(*TINY[:6])
    await flight.at_gate(steps[0])
    await flight.do(cmd.Run, max_loops=2)
    state = await flight.until(lambda s: s.run is RunState.PAUSED)
    assert await flight.started() == steps[:2]
    assert (state.mode, state.goal_at_hand, state.plans["g1"].id) == (Mode.TIMED_OUT, "g1", "p1")
    assert "TIMED_OUT" in waiting_for(state).what
    line = status(state, flight.engine.health, flight.engine.sandbox(state.agent_id))
    assert (line.mode, line.point) == ("PAUSED", "TIMED_OUT: before acting · MAX_LOOPS: 2 loops")
    await flight.reopen()
    assert (await flight.state()).mode is Mode.TIMED_OUT
    await flight.do(cmd.Run, max_loops=3)
    state = await flight.until(lambda s: s.run is RunState.PAUSED)
    assert await flight.started() == steps[:5]
    assert (state.mode, state.plans["g1"].id) == (Mode.TIMED_OUT, "p1")
    assert state.run_reason.startswith("MAX_LOOPS")
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals)
    assert await flight.started() == steps
    assert state.mode is Mode.IDLE


async def test_the_operators_call_comes_before_the_step_at_the_gate(flight: Flight) -> None:
    steps = await flight.plan(*TINY[:1])
    await flight.at_gate(steps[0])
    await flight.do(cmd.CallTool, command="write", args={"path": "mine", "content": "1"})
    await flight.until(lambda s: s.operator_actions == 1 and not s.acting)
    assert (flight.sandbox / "mine").read_text() == "1"
    await flight.at_gate(steps[0])
    withdrawn = await flight.payloads(ev.ActionWithdrawn)
    assert withdrawn[-1].reason == "the operator acts first"
    assert await flight.started() == [""]
