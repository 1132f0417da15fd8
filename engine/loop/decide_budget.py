"""What follows from a command about budgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.domain import commands as cmd
from engine.domain.budgets import SpendingLimits
from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.loop.outcome import Outcome, RefusedError
from engine.tools.registry import ToolRegistry


def changed(old: SpendingLimits | None, said: cmd.BudgetAmounts) -> SpendingLimits | None:
    """The limits after a command; None where nothing is left of them."""
    given = said.limits
    found = (old or SpendingLimits()).with_these(given) if said.keep else given
    return None if found == SpendingLimits() else found


def _set_budget(state: AgentState, said: cmd.SetBudget, registry: ToolRegistry) -> Outcome:
    if said.goal and said.goal not in state.goals:
        raise RefusedError(f"there is no goal '{said.goal}'")
    limits = changed(state.goal_budgets.get(said.goal) if said.goal else state.budget, said)
    if said.goal:
        # Settings know no goals, so that there is nothing to lift.
        limits = replace(limits, lifted=()) if limits is not None and limits.any else None
        told = f"budget of {said.goal}: {limits}" if limits else f"{said.goal} has no budget of its own now"
    else:
        told = f"budget: {limits}" if limits else "the workspace's budget holds again"
    return Outcome(told, (ev.BudgetSet(limits=limits, goal=said.goal),))


HANDLERS: dict[type[cmd.Command], Callable[[AgentState, Any, ToolRegistry], Outcome]] = {
    cmd.SetBudget: _set_budget,
}
