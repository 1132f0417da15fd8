"""What a goal will take: a forecast from the steps that are done, with how far it may be off.

What is left of the plan is expected to go as what was done. Planning counts once, as it was; plans that are
made anew, repairs and retries that are still to come are in no forecast (steering §3 idea 9, T16).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from engine.domain.budgets import BudgetKind, Pace, Spent
from engine.domain.plan import Op
from engine.domain.state import AgentState

SURE_STEPS = 3
"""Steps from which on how much they vary says something."""
SPREAD = 2.0
"""Standard deviations between the likely amount and the low or high one."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a goal will have taken of one kind when it is done, in the kind's unit."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """How far a goal is, and what that says of its end."""

    done: int = 0
    """Steps that are over, of its plan and of those of the goals below it."""
    of: int = 0
    """Steps in all, as far as they are planned."""
    forecasts: tuple[tuple[BudgetKind, Forecast], ...] = ()
    """By kind; empty where nothing can be said."""
    basis: str = ""
    """What the forecasts rest on, or why there are none, in words."""

    def of_kind(self, kind: BudgetKind) -> Forecast | None:
        """The forecast of a kind; None where there is none."""
        return next((found for one, found in self.forecasts if one is kind), None)


def outlook(state: AgentState, goal: str) -> Outlook:
    """What a goal will take with those below it, from its progress.

    Args:
        state: the agent's state; nothing else counts.
        goal: the goal's id.
    """
    below = [one for one in state.goals.values() if any(up.id == goal for up in state.lineage(one.id))]
    steps = [step for one in below if one.id in state.plans for step in state.plans[one.id].steps]
    own = [step for step in steps if step.op not in (Op.ACHIEVE, Op.THINK)]
    # A step that is to achieve a goal which has no plan yet is at least one step.
    waits = sum(step.op is Op.ACHIEVE and not step.status.terminal for step in steps)
    unplanned = max(waits - sum(one.id in state.plans and one.id != goal for one in below), 0)
    done = sum(step.status.terminal for step in own)
    of = len(own) + unplanned
    if goal in state.goals and state.goals[goal].status.terminal:
        return Outlook(done, of, basis="the goal is over")
    if any(step.op is Op.THINK and not step.status.terminal for step in steps):
        return Outlook(done, of, basis=f"no forecast: steps are decided one by one ({done} done)")
    if not steps:
        return Outlook(basis="no forecast: there is no plan yet")
    progress = f"{done} of {of} steps done"
    if unplanned:
        progress += f", {unplanned} of them still to be planned"
    pace = sum((state.paces[one.id] for one in below if one.id in state.paces), Pace())
    taken = sum((state.spent[one.id] for one in below if one.id in state.spent), Spent())
    if pace.steps:
        basis = progress if pace.steps >= SURE_STEPS else f"{progress}, too few to be sure"
    elif (pace := sum(state.paces.values(), Pace())).steps:
        basis = f"{progress}; as steps of earlier goals went"
    else:
        # How many actions there will be is known where all steps are.
        sure = Forecast(*(float(taken.actions + of - done),) * 3)
        known = () if unplanned else ((BudgetKind.ACTIONS, sure),)
        return Outlook(done, of, known, f"{progress}; what they take shows once one is done")
    return Outlook(
        done, of, tuple((kind, _forecast(kind, taken, pace, of - done)) for kind in BudgetKind), basis
    )


def _forecast(kind: BudgetKind, taken: Spent, pace: Pace, left: int) -> Forecast:
    """What was taken, and as much for each step that is left as for those that are done."""
    count, spent = pace.steps, taken.of(kind)
    mean = pace.taken.of(kind) / count
    rest = left * mean
    squares = pace.squares[list(BudgetKind).index(kind)]
    if count < SURE_STEPS:
        off = rest
    else:
        variance = max(squares - count * mean**2, 0.0) / (count - 1)
        # That of the steps to come, and that of the mean of those that were.
        off = SPREAD * sqrt(variance * (left + left**2 / count))
    return Forecast(spent + max(rest - off, 0.0), spent + rest, spent + rest + off)
