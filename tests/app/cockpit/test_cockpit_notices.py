"""Notifications of the cockpit: each turn and each end once, and none where they are off."""

from __future__ import annotations

from pathlib import Path

from flight import cockpit

from app.commands.settings import Settings
from engine.core import commands as cmd
from engine.inquiry.notices import Notice, Rule


class Heard:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    def tell(self, notice: Notice) -> None:
        self.notices.append(notice)


async def test_the_end_of_a_goal_and_a_turn_are_told_once_each(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        heard = flight.app.controllers.announcements.notifier = Heard()
        await flight.engine.submit(cmd.AdoptGoal(agent="pilot-1", text="make a directory 'made'"))
        await flight.engine.submit(cmd.Run(agent="pilot-1"))
        await flight.until(lambda: heard.notices, "the end of the goal")
        await flight.engine.submit(cmd.AdoptGoal(agent="pilot-1", text="do what nobody has a recipe for"))
        await flight.until(lambda: len(heard.notices) == 2, "the turn")
        assert [one.rule for one in heard.notices] == [Rule.DONE, Rule.NEEDS_YOU]
    async with cockpit(tmp_path / "ws") as flight:
        again = flight.app.controllers.announcements.notifier = Heard()
        await flight.says("waits for your decision")
        assert again.notices == []


async def test_where_they_are_off_nothing_is_told(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", notify=Rule.OFF)
    async with cockpit(tmp_path / "ws", settings=settings) as flight:
        heard = flight.app.controllers.announcements.notifier = Heard()
        await flight.engine.submit(cmd.AdoptGoal(agent="pilot-1", text="do what nobody has a recipe for"))
        await flight.until(lambda: flight.state.intervention is not None, "the turn")
        await flight.pilot.pause()
        assert heard.notices == []
