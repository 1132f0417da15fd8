"""The error panel in the cockpit: retry now, and give up."""

from __future__ import annotations

from pathlib import Path

from flight import Flight, cockpit

from engine.core import events as ev
from engine.core.goals import GoalStatus
from widgets.base.dialog import ConfirmDialog
from widgets.dialogs.turn import InterventionDialog

MISSING = "read missing.txt, create a directory named 'after'"


async def _waits(flight: Flight) -> None:
    """The agent's first step has failed, the operator has put the dialog off, and looks at the panel."""
    await flight.goal(MISSING)
    await flight.press("space")
    await flight.dialog(InterventionDialog)
    await flight.press("escape")
    await flight.no_dialog()
    await flight.press("4", "z")
    await flight.shows("? INVALID_PARAMETERS read missing.txt", "rates another tool 50%")


async def test_r_tries_the_failed_step_again_now(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        await _waits(flight)
        (flight.engine.workspace / "sandbox" / "missing.txt").write_text("here now")
        await flight.press("r")
        await flight.until(lambda: flight.state.goals["g1"].status is GoalStatus.ACHIEVED, "the goal")
        await flight.shows("resolved")
        await flight.press("r")
        await flight.says("resolved already")


async def test_x_gives_the_goal_up_when_that_is_confirmed(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        await _waits(flight)
        await flight.press("D")
        await flight.dialog(ConfirmDialog)
        await flight.press("escape")
        await flight.no_dialog()
        assert flight.state.open_goals
        await flight.press("D")
        await flight.dialog(ConfirmDialog)
        await flight.press("y")
        await flight.until(lambda: not flight.state.open_goals, "the end")
        assert flight.state.goals["g1"].status is GoalStatus.FAILED
        assert await flight.journal(ev.InterventionClosed)
