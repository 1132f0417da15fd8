"""Budgets in the cockpit: what holds an agent is named, and more of it lets it go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from flight import Flight, cockpit

from engine.core import events as ev
from engine.core.budgets import SpendingLimits
from engine.core.goals import GoalStatus
from tests.rounds import sizes
from widgets.dialogs.lists import BudgetsDialog

THREE = "create a directory named 'a', then create a directory named 'b', then create a directory named 'c'"


def achieved(flight: Flight) -> bool:
    return all(goal.status is GoalStatus.ACHIEVED for goal in flight.state.goals.values())


async def test_an_agent_that_a_budget_holds_says_which_and_goes_on_with_more_of_it(flight: Flight) -> None:
    await flight.goal(THREE)
    await flight.type("budget goal actions 1")
    await flight.says("budget of g1: 1 actions")
    await flight.press("escape", "space")
    await flight.shows("held by the budget of goal g1: actions ($)")
    await flight.says("pilot-1: goal g1: the budget of 1 actions is used up", "$ shows the budgets")
    await flight.press("dollar_sign")
    await flight.dialog(BudgetsDialog)
    await flight.shows("Budgets of pilot-1", "holds pilot-1", "1 of 1, 0 left", "agent pilot-1", "workspace")
    await flight.press("down", "down", "down", "P")
    await flight.shows("actions of goal g1", "limit", "steps done", "1 in 1 of 3 steps")
    await flight.press("escape", "plus")
    await flight.shows("budget of g1: 2 actions; pilot-1 goes on", "2 of 2, 0 left")
    await flight.press("enter", *"+x", "enter")
    await flight.shows("actions: 'x' is no number that fits")
    await flight.press("e", *"none", "enter")
    await flight.until(lambda: achieved(flight), "the goal")
    await flight.press("dollar_sign")
    await flight.no_dialog()
    set_ = await flight.journal(ev.BudgetSet)
    assert [said.limits for said in set_] == [SpendingLimits(actions=1), SpendingLimits(actions=2), None]


@pytest.mark.parametrize("size", sizes((80, 24), (160, 45)))
async def test_budgets_of_agent_and_workspace_are_set_by_word_and_key(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with cockpit(tmp_path / "ws", size=size) as flight:
        await flight.type("budget workspace time 10m")
        await flight.says("budget of the workspace: 600 s")
        await flight.type("budget")
        await flight.dialog(BudgetsDialog)
        await flight.press("enter", "5", "enter")
        await flight.until(lambda: flight.state.budget == SpendingLimits(usd=5), "five dollars")
        await flight.shows("$0 of $5, $5 left")
        await flight.press("G")
        await flight.shows("0 s of 10 min, 10 min left")
        await flight.press("D")
        await flight.shows("budget of the workspace: no limit of seconds")
