"""Runs that are over: one line in the agents' list, and each reachable from the timeline of handoffs."""

from __future__ import annotations

from pathlib import Path

from crew_flight import handed, handoff, register
from flight import cockpit

from engine.core import commands as cmd
from widgets.dialogs.handoffs import HandoffsDialog

SORTER = {
    "id": "sorter",
    "type": "role",
    "name": "Sorter",
    "description": "sorts",
    "instructions": {"system": "Sort."},
    "handoff": {"receives": {"requires_who": False, "requires_success": False, "min_clarity": 0.0}},
}


async def test_ended_runs_are_one_line_that_leads_to_each_of_them_also_after_reopening(
    tmp_path: Path,
) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        await register(flight, **SORTER)
        for _ in range(2):
            name = await handed(flight, "sorter", given={"output": "sorted"})
            await flight.until(lambda name=name: not handoff(flight, name).open, "its end")
        await flight.shows("2 ended runs")
        assert "sorter-1" not in flight.text
    async with cockpit(tmp_path / "ws") as flight:
        await flight.shows("2 ended runs")
        await flight.until(lambda: flight.engine.agents == ("pilot-1",), "the runs' end")
        await flight.press("1", "end", "enter")
        await flight.dialog(HandoffsDialog)
        await flight.press("end", "enter")
        await flight.no_dialog()
        await flight.until(lambda: flight.app.context.agent == "sorter-1", "the run")
        await flight.shows("sorter-1", "2 ended runs", "shop.")
        await flight.until(lambda: flight.app.context.projector.story_read, "its story")
        assert flight.app.context.projector.mind().rows
        receipt = await flight.engine.submit(cmd.AdoptGoal(agent="sorter-1", text="go on"))
        assert receipt.message.startswith("sorter-1 is over")
