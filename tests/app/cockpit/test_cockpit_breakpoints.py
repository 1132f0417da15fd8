"""The list of breakpoints: adding, holding, asking why, switching."""

from __future__ import annotations

from flight import Flight

from widgets.base.dialog import TextDialog
from widgets.dialogs.lists import BreakpointsDialog
from widgets.dialogs.review import WhyDialog

MAKES_THREE = "create a directory named 'a' and create a directory named 'b' and create a directory named 'c'"


async def test_a_breakpoint_is_added_holds_and_is_asked_about(flight: Flight) -> None:
    await flight.goal(MAKES_THREE)
    await flight.press("s")
    await flight.until(lambda: flight.state.actions == 1, "one action")
    await flight.at_rest()
    await flight.press("B")
    await flight.dialog(BreakpointsDialog)
    await flight.press("I")
    await flight.no_dialog()
    await flight.press(*"tool mkdir path=?", "enter")
    await flight.until(lambda: "b1" in flight.state.points, "the breakpoint")
    await flight.press("escape", "B")
    await flight.dialog(BreakpointsDialog)
    await flight.shows("tool", "mkdir path=?")
    await flight.press("escape", "space")
    await flight.until(lambda: flight.state.points["b1"].stopped == 1, "the hold")
    await flight.shows("PAUSED  breakpoint b1", "breakpoint b1: before a2")

    await flight.press("B")
    await flight.dialog(BreakpointsDialog)
    await flight.shows("1 hit")
    await flight.press("w")
    await flight.dialog(WhyDialog)
    await flight.shows("mkdir")
    await flight.press("escape")
    await flight.no_dialog()
    await flight.type("break off b1")
    await flight.until(lambda: not flight.state.points["b1"].enabled, "switched off")
    await flight.press("escape", "space")
    await flight.until(lambda: not flight.state.open_goals, "the goal")


async def test_a_dry_run_from_the_bar_lists_where_it_would_have_held(flight: Flight) -> None:
    await flight.goal(MAKES_THREE)
    await flight.press("space")
    await flight.until(lambda: not flight.state.open_goals, "the goal")
    await flight.type("break dry tool mkdir")
    await flight.dialog(TextDialog)
    await flight.shows("would have held pilot-1 3 times", "mkdir")
    await flight.press("escape")
    await flight.type("break belief nothing=")
    await flight.until(lambda: "b1" in flight.state.points, "the breakpoint")
    await flight.type("break error")
    await flight.until(lambda: "b2" in flight.state.points, "the breakpoint")
    await flight.type("break spend much")
    await flight.says("an amount is expected", "usage")
