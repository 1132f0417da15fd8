"""Why, asked in the cockpit by key and by word."""

from __future__ import annotations

from pathlib import Path

from flight import Flight, cockpit

from app.cockpit import keymap
from widgets.base.dialog import ConfirmDialog, TextDialog
from widgets.dialogs.review import WhyDialog


async def _with_a_directory(flight: Flight) -> None:
    await flight.type("goal make a directory 'made'")
    await flight.until(lambda: flight.state.goals, "the goal")
    await flight.type("run")
    await flight.until(lambda: flight.state.goals and not flight.state.open_goals, "the goal's end")


def _shown(flight: Flight) -> WhyDialog:
    assert isinstance(flight.app.screen, WhyDialog)
    return flight.app.screen


async def test_w_shows_why_the_newest_action_was_done_and_esc_closes(flight: Flight) -> None:
    await _with_a_directory(flight)
    await flight.press("escape", "5", "w")
    await flight.dialog(WhyDialog)
    await flight.shows("why a1", "a1 mkdir", "goal g1: make a directory")
    await flight.press("escape")
    await flight.no_dialog()


async def test_the_dialog_turns_asks_on_and_goes_back(flight: Flight) -> None:
    await _with_a_directory(flight)
    await flight.type("why g1 forward")
    await flight.dialog(WhyDialog)
    await flight.shows("what depends on g1")
    await flight.press("down", "enter")
    await flight.until(lambda: ":" in _shown(flight).model.what, "the event's own chain")
    await flight.press("backspace")
    await flight.until(lambda: _shown(flight).model.what == "g1", "the question before")
    await flight.press("i")
    await flight.shows("if g1 is wrong", "nothing was changed")


async def test_the_selected_step_is_what_is_asked_about(flight: Flight) -> None:
    await _with_a_directory(flight)
    await flight.press("escape", "2", "w")
    await flight.dialog(WhyDialog)
    assert _shown(flight).model.what == "s1"


async def test_the_selected_failure_is_what_is_asked_about(waiting: Path) -> None:
    async with cockpit(waiting) as flight:
        await flight.until(lambda: flight.state.failures, "the failure")
        await flight.press("escape", "4", "home", "w")
        await flight.dialog(WhyDialog)
        first = _shown(flight).model.rows[0]
        assert first.key.partition(" ")[2] in {failure.event for failure in flight.state.failures}
        styles = {row.pieces[1].style for row in _shown(flight).model.rows}
        assert {"strong", "accent", "text"} <= styles


async def test_an_unknown_name_is_said_and_opens_nothing(flight: Flight) -> None:
    await flight.type("why nonsense")
    await flight.says("the journal has nothing called 'nonsense'")
    await flight.no_dialog()


async def test_status_says_what_is_waited_for(flight: Flight) -> None:
    await flight.type("status")
    await flight.says("pilot-1 PAUSED (nothing to do) · waits for a goal: there is nothing to do, since ")


async def test_a_result_is_marked_as_wrong_and_what_stands_on_it_alone_is_taken_back(flight: Flight) -> None:
    await flight.type("! run echo hi")
    await flight.until(lambda: "run.last.command" in flight.state.beliefs, "the run's beliefs")
    await flight.press("escape", "5", "w")
    await flight.dialog(WhyDialog)
    await flight.press("w")
    await flight.shows("if pilot-1:", "≠ MARKED AS WRONG", "still believed: run.last.command")
    await flight.until(lambda: flight.state.disputed, "the mark")
    (ref,) = flight.state.disputed
    await flight.press("home", "D")
    await flight.dialog(ConfirmDialog)
    await flight.shows("Take back 2 beliefs", "run.last.return_code")
    await flight.press("y")
    await flight.until(lambda: "run.last.command" not in flight.state.beliefs, "the beliefs are gone")
    await flight.dialog(WhyDialog)
    await flight.press("w")
    await flight.until(lambda: not flight.state.disputed, "the mark is taken back")
    await flight.press("escape")
    await flight.no_dialog()
    await flight.type(f"wrong {ref} misread it")
    await flight.shows("MARKED AS WRONG: misread it")
    await flight.until(lambda: flight.state.disputed == {ref: "misread it"}, "the mark with its words")


async def test_drift_shows_actions_plans_and_evidence(flight: Flight) -> None:
    await _with_a_directory(flight)
    await flight.type("drift")
    await flight.dialog(TextDialog)
    await flight.shows("a1 on plan", "revision 1", "g1 achieved")


def test_the_key_is_no_other_action() -> None:
    assert [key.action for key in keymap.KEYS if "w" in key.keys.split(",")] == ["why"]
