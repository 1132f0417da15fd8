"""The first minute: a plan before anything runs, one action a key, run, pause, stop."""

from __future__ import annotations

from pathlib import Path

from flight import WAIT, Flight, cockpit

from engine.core import events as ev
from engine.core.agents import Mode, RunState


async def test_a_first_mission_shows_its_plan_before_anything_runs(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight") as flight:
        await flight.shows("mkdir first_flight", "write navigation.py", "PAUSED", "held next")
        assert not await flight.journal(ev.ActionStarted)
        assert not list((tmp_path / "ws" / "sandbox").iterdir())


async def test_s_runs_exactly_one_action_a_key(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight") as flight:
        await flight.press("s")
        await flight.until(lambda: flight.state.actions == 1)
        await flight.at_rest()
        assert len(await flight.journal(ev.ActionStarted)) == 1
        assert (tmp_path / "ws" / "sandbox" / "first_flight").is_dir()
        await flight.shows("✓ s1  mkdir first_flight", "▷ s2  cd first_flight")


async def test_five_fast_presses_are_five_actions(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight") as flight:
        await flight.press("s", "s", "s", "s", "s")
        await flight.until(lambda: flight.state.actions == 5)
        await flight.at_rest()
        assert len(await flight.journal(ev.StepGranted)) == 5
        assert len(await flight.journal(ev.ActionStarted)) == 5
        await flight.shows("✓ s5  run python -m unittest -v", "PAUSED")


async def test_space_runs_to_the_end_of_the_mission(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight") as flight:
        await flight.press("space")
        await flight.until(lambda: flight.state.mode is Mode.IDLE, "the mission's end")
        await flight.says("goal g1 achieved")
        await flight.shows("IDLE", "no open goal", "9/9", "lines in 3 files")
        assert (tmp_path / "ws" / "sandbox" / "first_flight" / "README.md").is_file()


async def test_space_pauses_what_runs_and_the_running_action_ends_by_itself(flight: Flight) -> None:
    flight.script("wait.py", WAIT)
    await flight.goal("run 'python wait.py 0.6', run 'echo second'")
    await flight.press("space")
    await flight.until(lambda: flight.state.acting, "the first command")
    await flight.press("space")
    await flight.says("paused; the running action ends by itself")
    await flight.at_rest()
    assert flight.state.run is RunState.PAUSED
    assert len(await flight.journal(ev.ActionStarted)) == 1
    await flight.shows("PAUSED", "before acting", "held next")


async def test_two_quick_presses_of_space_leave_it_as_it_was(flight: Flight) -> None:
    flight.script("wait.py", WAIT)
    await flight.goal("run 'python wait.py 0.3', run 'echo second'")
    await flight.press("space", "space")
    await flight.until(lambda: flight.state.run is RunState.PAUSED and flight.state.actions <= 1)
    await flight.at_rest()
    assert len(await flight.journal(ev.AgentResumed)) == 1
    assert len(await flight.journal(ev.ActionStarted)) <= 1


async def test_stop_cuts_off_a_running_command_and_says_so(flight: Flight) -> None:
    flight.script("wait.py", WAIT)
    await flight.goal("run 'python wait.py 60', run 'echo second'")
    await flight.press("space")
    await flight.shows("begun")
    await flight.press("full_stop")
    await flight.says("stopped; run is cut off")
    await flight.until(lambda: not flight.state.acting, "the cut")
    await flight.shows("STOPPED", "cut off")
    assert len(await flight.journal(ev.ActionCancelled)) == 1
    assert len(await flight.journal(ev.ActionStarted)) == 1


async def test_until_runs_one_goal_and_then_pauses(flight: Flight) -> None:
    await flight.goal("run 'echo first'")
    await flight.type("goal run 'echo second'")
    await flight.until(lambda: len(flight.state.open_goals) == 2)
    await flight.press("escape")
    await flight.press("o")
    await flight.until(
        lambda: flight.state.goals["g1"].status.terminal and flight.state.run is RunState.PAUSED
    )
    await flight.at_rest()
    assert not flight.state.goals["g2"].status.terminal
    assert len(await flight.journal(ev.ActionStarted)) == 1


async def test_the_status_line_names_what_runs(flight: Flight) -> None:
    await flight.running()
    await flight.shows("STEPPING", "run python wait.py 60")
    await flight.press("full_stop")
    await flight.until(lambda: not flight.state.acting)


async def test_a_slow_save_is_seen_and_cut_off(flight: Flight) -> None:
    await flight.goal("create a directory 'made'")
    saver = flight.engine.time_travel.main
    assert saver is not None
    async with saver.snapshots._busy:  # as when another agent's save takes long
        await flight.press("space")
        await flight.shows("RUNNING", "saving the files first")
        await flight.press("full_stop")
        await flight.until(lambda: flight.state.action is None, "the withdrawal")
    assert flight.state.run is RunState.STOPPED
    assert not (flight.engine.root / "made").exists()
