"""Coming back to the cockpit: a line that says what happened, and all of it on demand."""

from __future__ import annotations

from pathlib import Path

from flight import cockpit

from app.commands.settings import Settings
from engine.core import commands as cmd
from widgets.base.dialog import TextDialog


async def test_opened_again_it_says_what_happened_since_the_operators_last_command(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", operator="ann")
    async with cockpit(tmp_path / "ws", settings=settings) as flight:
        await flight.goal("make a directory 'made'")
        await flight.engine.submit(cmd.Run(agent="pilot-1"), operator="bob")
        await flight.until(lambda: not flight.state.open_goals, "the goal's end")
    async with cockpit(tmp_path / "ws", settings=settings) as flight:
        await flight.says("since your last command", "1 goal achieved")
        await flight.press("escape", "N")
        await flight.dialog(TextDialog)
        await flight.shows("goal achieved", "made")
        await flight.press("q")
        await flight.no_dialog()
        await flight.type("recap 1")
        await flight.dialog(TextDialog)
        await flight.shows("goal achieved", "made")
