"""Breakpoints, and changing the plan by key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from flight import Flight, cockpit
from textual.widgets import TextArea

from engine.core import events as ev
from engine.core.agents import RunState
from widgets.dialogs.step_editor import StepEditor
from widgets.panes.command_bar import CommandBar

THREE = "run 'echo one', run 'echo two', run 'echo three'"


@pytest.fixture
async def planned(tmp_path: Path) -> AsyncIterator[Flight]:
    """A cockpit with a plan of three steps, s1 to s3."""
    async with cockpit(tmp_path / "ws") as flight:
        await flight.goal(THREE)
        yield flight


async def test_b_holds_the_agent_before_the_selected_step(planned: Flight) -> None:
    await planned.select("s2")
    await planned.press("b")
    await planned.until(lambda: "● break" in planned.row("s2"), "the mark")
    await planned.press("space")
    await planned.until(lambda: planned.state.run is RunState.PAUSED and planned.state.actions == 1)
    await planned.at_rest()
    await planned.until(lambda: "held" in planned.row("s2"), "the word")
    await planned.shows("breakpoint")
    assert [hit.step for hit in await planned.journal(ev.BreakpointHit)] == ["s2"]


async def test_b_again_clears_the_breakpoint(planned: Flight) -> None:
    await planned.select("s2")
    await planned.press("b", "b")
    await planned.says("breakpoint on s2 cleared")
    await planned.until(lambda: "break" not in planned.row("s2"))
    assert not planned.state.breakpoints


async def test_a_breakpoint_on_what_has_run_is_refused(planned: Flight) -> None:
    await planned.press("s")
    await planned.until(lambda: planned.status_of("s1") == "completed")
    await planned.at_rest()
    await planned.select("s1")
    await planned.press("b")
    await planned.says("it will not run again")


async def test_e_edits_the_pending_step_and_the_edit_is_what_runs(planned: Flight) -> None:
    await planned.press("e")
    await planned.dialog(StepEditor)
    area = planned.app.screen.query_one("#args", TextArea)
    area.text = '{"command": "echo edited"}'
    await planned.pilot.pause()
    await planned.press("ctrl+s")
    await planned.no_dialog()
    await planned.says("step s1 edited")
    await planned.press("s")
    await planned.until(lambda: planned.status_of("s1") == "completed")
    await planned.until(lambda: "edited" in planned.session_text.splitlines(), "its output")
    assert "revision 2" in planned.text


async def test_the_step_editor_shows_invalid_arguments_as_they_are_typed(planned: Flight) -> None:
    await planned.press("e")
    await planned.dialog(StepEditor)
    area = planned.app.screen.query_one("#args", TextArea)
    await planned.shows("✓ can be saved")
    area.text = '{"command": '
    await planned.shows("✗", "line 1")
    area.text = '{"comand": "echo x"}'
    await planned.shows("✗", "comand")
    await planned.press("ctrl+s")
    assert isinstance(planned.app.screen, StepEditor)
    await planned.press("escape")
    await planned.shows("Unsaved changes", "cannot save them")
    await planned.press("escape")
    await planned.no_dialog()
    assert not await planned.journal(ev.PlanRevised)


async def test_e_on_a_step_that_has_run_says_why_not(planned: Flight) -> None:
    await planned.press("s")
    await planned.until(lambda: planned.plan.selected == "s2", "the cursor, which goes on with the plan")
    await planned.select("s1")
    await planned.press("e")
    await planned.says("what is done cannot be changed")
    assert len(planned.app.screen_stack) == 1


async def test_e_on_a_running_step_says_why_not(flight: Flight) -> None:
    await flight.running()
    await flight.press("e")
    await flight.says("s1 is running")
    assert len(flight.app.screen_stack) == 1
    await flight.press("full_stop")
    await flight.until(lambda: not flight.state.acting)


async def test_x_goes_on_without_the_selected_step(planned: Flight) -> None:
    await planned.select("s2")
    await planned.press("x")
    await planned.until(lambda: planned.status_of("s2") == "skipped")
    await planned.press("space")
    await planned.until(lambda: not planned.state.open_goals, "the goal's end")
    assert "two" not in planned.session_text.splitlines()
    assert "» s2 run echo two" in planned.row("s2")


async def test_insert_asks_in_the_bar_and_puts_the_step_in_place(planned: Flight) -> None:
    await planned.select("s2")
    await planned.press("insert")
    bar = planned.app.query_one("#command", CommandBar)
    await planned.until(lambda: bar.input.value == "insert before s2 " and bar.input.has_focus)
    await planned.press(*"mkdir", "space", *"made", "enter")
    await planned.until(lambda: list(planned.steps) == ["s1", "s4", "s2", "s3"], "the new step")
    assert planned.steps["s4"] == "mkdir made"


async def test_delete_takes_the_selected_step_out(planned: Flight) -> None:
    await planned.select("s2")
    await planned.press("delete")
    await planned.until(lambda: list(planned.steps) == ["s1", "s3"])
    assert planned.plan.selected in ("s1", "s3")


async def test_j_and_k_move_the_selected_step_and_the_cursor_stays_on_it(planned: Flight) -> None:
    await planned.select("s1")
    await planned.press("J")
    await planned.until(lambda: list(planned.steps) == ["s2", "s1", "s3"])
    assert planned.plan.selected == "s1"
    await planned.press("K")
    await planned.until(lambda: list(planned.steps) == ["s1", "s2", "s3"])
    await planned.press("K")
    await planned.says("first already")


async def test_keys_without_a_plan_say_what_is_missing(flight: Flight) -> None:
    for key in ("b", "e", "x", "delete", "J"):
        flight.app.context.say("", "note")
        await flight.press(key)
        await flight.says("no plan yet")
    await flight.press("s")
    await flight.says("no open goal")
