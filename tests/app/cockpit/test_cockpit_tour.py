"""The tour: it follows what is done, in whatever order, and nothing breaks it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flight import Flight, cockpit

from app.cockpit.controllers.tour import BACK, GIVE_WORK, NOT_HERE, OFF, STEPS, TourRecord
from app.cockpit.keymap import KEYS, shown_keys
from tests.trusting import home
from widgets.dialogs.review import WhyDialog
from widgets.panes.plan import PlanPane


@pytest.fixture(autouse=True)
def _wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OFF)


def kept() -> dict[str, object]:
    return json.loads((home() / "tour.json").read_text())  # type: ignore[no-any-return]


def line(flight: Flight) -> str:
    """What the tour says; empty while it is not there."""
    return "".join(str(each.render()) for each in flight.app.screen_stack[0].query("#tour"))


async def on_step(flight: Flight, number: int) -> None:
    await flight.until(lambda: f"tour {number}/{len(STEPS)}" in line(flight), f"step {number} of the tour")


async def test_the_tour_follows_what_is_pressed_to_its_end(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight", size=(80, 24)) as flight:
        await flight.app.controllers.tour.begin_of_itself(new=True)
        await on_step(flight, 1)
        await flight.press("v", "v", "q", "7", "y")  # keys that lead nowhere
        await on_step(flight, 1)
        await flight.press("s")
        await on_step(flight, 2)
        await flight.press("down")
        await on_step(flight, 3)
        await flight.press("b")
        await flight.until(lambda: flight.state.breakpoints)
        await on_step(flight, 3)  # the fourth is done, and the third is not
        step = next(key for key, text in flight.steps.items() if "README" in text)
        await flight.type(f"edit {step} write README.md short")
        await on_step(flight, 5)
        await flight.until(lambda: isinstance(flight.app.focused, type(flight.plan.steps)))
        await flight.press("space")
        await on_step(flight, 6)
        await flight.at_rest()
        await flight.press("full_stop")
        await on_step(flight, 7)
        await flight.type("goal list the files")
        await on_step(flight, 8)
        await flight.type("undo")
        await flight.shows("Undo: drop goal g2")
        await flight.press("y")
        await on_step(flight, 9)
        flight.app.query_one(PlanPane).focus()
        await flight.press("w")
        await flight.dialog(WhyDialog)
        await on_step(flight, 10)
    assert len(kept()["done"]) == 9  # type: ignore[arg-type]
    async with cockpit(tmp_path / "ws") as flight:
        await flight.app.controllers.tour.begin_of_itself(new=False)
        await flight.until(lambda: "all is where it was" in line(flight), "the end of the tour")
        await flight.until(lambda: len(kept()["done"]) == 10)  # type: ignore[arg-type]
        await flight.press("escape")
        await flight.until(lambda: not line(flight), "no tour")


async def test_the_tour_is_left_and_resumed_and_asks_for_work_where_there_is_none(flight: Flight) -> None:
    await flight.type("tour")
    await flight.until(lambda: "type: goal" in line(flight), "that there is no work")
    await flight.until(lambda: isinstance(flight.app.focused, type(flight.plan.steps)))
    await flight.press("escape")
    await flight.says("the tour is off")
    await flight.until(lambda: kept()["off"] is True)
    await flight.app.controllers.tour.begin_of_itself(new=True)
    assert not line(flight)
    await flight.type("tour next")
    await flight.type("tour")
    await on_step(flight, 2)
    await flight.type("tour of")
    await flight.says("tour takes off or next, not 'of'")


async def test_with_a_program_the_tour_lets_what_it_cannot_show_be_passed_by_a_key(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="explorer", size=(100, 30)) as flight:
        await flight.type("tour")
        await flight.until(lambda: "runs one action" in line(flight), "a step that it has")
        await flight.press("s")
        await flight.until(lambda: "2/10" in line(flight) and "without a program: ctrl+n" in line(flight))
        await flight.press("ctrl+n")
        await on_step(flight, 3)


def test_no_line_of_the_tour_wraps_at_100_columns() -> None:
    keys = {key.action: shown_keys(key.keys).split()[0] for key in KEYS}
    for says in (*(step.says for step in STEPS), GIVE_WORK, NOT_HERE):
        assert len(f" tour 10/10  {says.format_map(keys)} · esc ends it") <= 100
    assert len(f" tour done {BACK}") <= 100


@pytest.mark.parametrize("text", ["", "[]", '{"done": 3, "off": 1}', "\x00\xff", "[" * 4_000, "{}"])
def test_a_damaged_file_of_the_tour_is_taken_as_none(text: str) -> None:
    home().mkdir(parents=True)
    (home() / "tour.json").write_text(text)
    assert (TourRecord().done, TourRecord().known) == (set(), False)


async def test_a_new_workspace_does_not_say_that_all_is_where_it_was(flight: Flight) -> None:
    tour = flight.app.controllers.tour
    tour._record.done, tour._record.known = {step.name for step in STEPS[:-1]}, True
    await tour.begin_of_itself(new=True)
    assert not line(flight)
    assert not tour._record.finished


async def test_who_wants_no_tour_or_knows_the_cockpit_is_offered_none(
    flight: Flight, monkeypatch: pytest.MonkeyPatch
) -> None:
    tour, settings = flight.app.controllers.tour, flight.app.context.settings
    await tour.begin_of_itself(new=False)
    object.__setattr__(settings, "tour", False)
    await tour.begin_of_itself(new=True)
    object.__setattr__(settings, "tour", True)
    monkeypatch.setenv(OFF, "1")
    await tour.begin_of_itself(new=True)
    assert not line(flight)
    assert not (home() / "tour.json").exists()
