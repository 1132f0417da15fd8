"""Goals edited where they stand: by keys on the goal stack, and by words."""

from __future__ import annotations

from flight import Flight

from engine.core.goals import GoalStatus
from widgets.base.dialog import ConfirmDialog
from widgets.panes.command_bar import CommandBar


async def two_goals(flight: Flight) -> None:
    await flight.type("goal create a directory named 'x'")
    await flight.says("goal g1 adopted")
    await flight.type("goal create a directory named 'y'")
    await flight.until(lambda: len(flight.state.goals) == 2, "two goals")
    await flight.press("escape", "1")
    await flight.until(lambda: flight.app.focused is flight.goals, "the goals")


def bar(flight: Flight) -> str:
    return flight.app.query_one("#command", CommandBar).input.value


async def test_a_goal_is_reworded_from_its_own_words(flight: Flight) -> None:
    await two_goals(flight)
    flight.goals.move_cursor("goal:g2")
    await flight.press("e")
    await flight.until(
        lambda: bar(flight) == "reword g2 create a directory named 'y'", "its words in the bar"
    )
    await flight.press(*["backspace"] * 2, *"z'", "enter")
    await flight.until(lambda: flight.state.goals["g2"].text == "create a directory named 'z'", "other words")


async def test_a_goal_is_put_below_another_and_moved(flight: Flight) -> None:
    await two_goals(flight)
    flight.goals.move_cursor("goal:g1")
    await flight.press("I")
    await flight.until(lambda: bar(flight) == "subgoal g1 ", "the bar")
    await flight.press(*"list the files", "enter")
    await flight.until(lambda: "g3" in flight.state.goals, "the new goal")
    assert flight.state.goals["g3"].parent == "g1"
    await flight.until(lambda: flight.state.current_goal == "g3", "it comes first")
    await flight.press("escape", "1")
    flight.goals.move_cursor("goal:g3")
    await flight.press("greater_than_sign")
    await flight.until(lambda: bar(flight) == "under g3 ", "the bar")
    await flight.press(*"g2", "enter")
    await flight.until(lambda: flight.state.goals["g3"].parent == "g2", "it serves the other")
    await flight.type("under g3 none")
    await flight.until(lambda: flight.state.goals["g3"].parent is None, "it serves none")


async def test_a_goal_is_made_more_and_less_urgent(flight: Flight) -> None:
    await two_goals(flight)
    flight.goals.move_cursor("goal:g2")
    await flight.press("plus", "plus")
    await flight.until(lambda: flight.state.goals["g2"].priority == 3, "more urgent")
    await flight.until(lambda: flight.state.current_goal == "g2", "it comes first")
    await flight.press("minus")
    await flight.until(lambda: flight.state.goals["g2"].priority == 2, "less urgent")


async def test_a_goal_is_dropped_after_asking_and_what_is_over_cannot_be_changed(flight: Flight) -> None:
    await two_goals(flight)
    flight.goals.move_cursor("goal:g2")
    await flight.press("D")
    await flight.dialog(ConfirmDialog)
    await flight.press("escape")
    await flight.no_dialog()
    assert flight.state.goals["g2"].status is not GoalStatus.DROPPED
    await flight.press("D")
    await flight.dialog(ConfirmDialog)
    await flight.press("y")
    await flight.until(lambda: flight.state.goals["g2"].status is GoalStatus.DROPPED, "dropped")
    flight.goals.move_cursor("goal:g2")
    await flight.press("e")
    await flight.says("what is over cannot be changed")
