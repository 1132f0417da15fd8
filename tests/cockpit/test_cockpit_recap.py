"""Coming back to the cockpit: a line that says what happened, and all of it on demand."""

from __future__ import annotations

from pathlib import Path

from flight import cockpit
from textual import events

from app.commands.settings import Settings
from engine.core import commands as cmd
from widgets.dialogs.review import RecapDialog


async def test_after_a_while_elsewhere_a_line_says_what_happened_and_r_tells_all(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        flight.app.controllers.review.away_s = 0.0
        await flight.goal("make a directory 'made'")
        flight.app.post_message(events.AppBlur())
        await flight.until(lambda: flight.app.controllers.review._left_at is not None, "looking away")
        await flight.engine.submit(cmd.Run(agent="pilot-1"))
        await flight.until(lambda: not flight.state.open_goals, "the goal's end")
        flight.app.post_message(events.AppFocus())
        await flight.says("since you looked away", "1 goal achieved", "R shows all")
        await flight.press("R")
        await flight.dialog(RecapDialog)
        await flight.shows("goal achieved", "made")
        await flight.press("R")
        await flight.no_dialog()


async def test_a_short_look_away_is_none(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        await flight.goal("make a directory 'made'")
        flight.app.post_message(events.AppBlur())
        await flight.until(lambda: flight.app.controllers.review._left_at is not None, "looking away")
        flight.app.context.say("as it was", "note")
        flight.app.post_message(events.AppFocus())
        await flight.until(lambda: flight.app.controllers.review._left_at is None, "coming back")
        assert flight.app.controllers.review._looked_when == "your last command"


async def test_opened_again_it_says_what_happened_since_the_operators_last_command(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", operator="ann")
    async with cockpit(tmp_path / "ws", settings=settings) as flight:
        await flight.goal("make a directory 'made'")
        await flight.engine.submit(cmd.Run(agent="pilot-1"), operator="bob")
        await flight.until(lambda: not flight.state.open_goals, "the goal's end")
    async with cockpit(tmp_path / "ws", settings=settings) as flight:
        await flight.says("since your last command", "1 goal achieved")
        await flight.type("recap 1")
        await flight.dialog(RecapDialog)
        await flight.shows("event 1", "goal achieved")
