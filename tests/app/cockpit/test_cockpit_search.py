"""Searching everything from the cockpit: by key, by word, and one hit read whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from flight import Flight, cockpit

from tests.rounds import sizes
from widgets.base.facts import LongText
from widgets.dialogs.review import SearchDialog


async def _searched(flight: Flight, words: str) -> SearchDialog:
    await flight.press("escape", "slash")
    await flight.dialog(SearchDialog)
    dialog = flight.app.screen
    assert isinstance(dialog, SearchDialog)
    await flight.press(*words.replace(" ", "_").replace("_", " space ").split(), "enter")
    await flight.until(lambda: "looked at" in dialog._model.standing, "the end of the search")
    return dialog


@pytest.mark.parametrize("size", sizes((80, 24), (160, 45)))
async def test_what_is_found_is_listed_and_read_whole(tmp_path: Path, size: tuple[int, int]) -> None:
    async with cockpit(tmp_path / "ws", size=size) as flight:
        await flight.type("believe pump primed")
        await flight.until(lambda: "pump" in flight.state.beliefs, "the belief")
        dialog = await _searched(flight, "p u m p")
        assert {row.key.partition(":")[0] for row in dialog._model.found} == {"event"}
        await flight.shows("belief.added")
        await flight.press("v")
        await flight.until(lambda: dialog.has_class("-reading"), "the event in full")
        await flight.until(lambda: dialog.query_one(LongText).sections, "its fields")
        await flight.shows("pilot-1:")
        await flight.press("escape")
        await flight.until(lambda: not dialog.has_class("-reading"))
        await flight.press("escape")
        await flight.no_dialog()
        assert flight.app.controllers.review.searching is None


async def test_enter_goes_to_the_event_in_its_agents_past(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        await flight.type("believe pump primed")
        await flight.type("agent_create bdi_agent pilot-2")
        await flight.says("agent pilot-2 created")
        await flight.type("agent pilot-2")
        await flight.until(lambda: flight.state.agent_id == "pilot-2", "the other agent")
        dialog = await _searched(flight, "p u m p")
        place = next(at for at, row in enumerate(dialog._model.found) if "belief.added" in row.pieces[1].text)
        await flight.press(*["down"] * place, "enter")
        await flight.until(lambda: flight.app.context.past_at is not None, "the past")
        assert flight.state.agent_id == "pilot-1"
        assert f"event:pilot-1:{flight.app.context.past_at}" == dialog._model.found[place].key
        await flight.no_dialog()
        await flight.press("end")
        await flight.until(lambda: not flight.app.context.in_past, "now")


async def test_other_words_end_the_search_before_and_wrong_ones_are_said(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        await flight.type("search pilot-1")
        await flight.dialog(SearchDialog)
        dialog = flight.app.screen
        assert isinstance(dialog, SearchDialog)
        await flight.until(lambda: dialog._model.found, "the first hits")
        dialog._ask('""')
        await flight.shows("say what to look for")
        dialog._ask("nothing of this kind")
        await flight.shows("Nothing was found")
        dialog._ask("")
        await flight.until(lambda: flight.app.controllers.review.searching is None, "no search")
