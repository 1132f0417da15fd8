"""What a goal will take: a forecast from the steps that are done, with how far it may be off.

What is left of the plan is expected to go as what was done. Planning counts once, as it was; plans that are
made anew, repairs and retries that are still to come are in no forecast.

Where the budgets of an agent stand, for whoever looks: taken, left, and what is to be expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from engine.agent.steering.ledger import Account, Ledger
from engine.core.budgets import BudgetKind, Spent, StepCosts
from engine.core.plan import Op, PlanStep
from engine.core.state import AgentState
from engine.value import dataclass

SURE_STEPS = 3
"""Steps from which on how much they vary says something."""
SPREAD = 2.0
"""Standard deviations between the likely amount and the low or high one."""


@dataclass(frozen=True, slots=True)
class AmountForecast:
    """What a goal will have taken of one kind when it is done, in the kind's unit."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True, slots=True)
class GoalForecast:
    """How far a goal is, and what that says of its end."""

    done: int = 0
    """Steps that are over, of its plan and of those of the goals below it."""
    of: int = 0
    """Steps in all, as far as they are planned."""
    forecasts: tuple[tuple[BudgetKind, AmountForecast], ...] = ()
    """By kind; empty where nothing can be said."""
    basis: str = ""
    """What the forecasts rest on, or why there are none, in words."""

    def of_kind(self, kind: BudgetKind) -> AmountForecast | None:
        """The forecast of a kind; None where there is none."""
        return next((forecast for other, forecast in self.forecasts if other is kind), None)


def forecast_goal(state: AgentState, goal: str) -> GoalForecast:
    """What a goal will take with those below it, from its progress.

    Args:
        state: the agent's state; nothing else counts.
        goal: the goal's id.
    """
    below = [
        other.id for other in state.goals.values() if any(up.id == goal for up in state.lineage(other.id))
    ]
    steps = [step for other in below if other in state.plans for step in state.plans[other].steps]
    unplanned = _unplanned(state, goal, below, steps)
    own = [step for step in steps if step.op not in (Op.ACHIEVE, Op.THINK)]
    done, of = sum(step.status.terminal for step in own), len(own) + unplanned
    if goal in state.goals and state.goals[goal].status.terminal:
        return GoalForecast(done, of, basis="the goal is over")
    if any(step.op is Op.THINK and not step.status.terminal for step in steps):
        return GoalForecast(done, of, basis=f"no forecast: steps are decided one by one ({done} done)")
    if not steps:
        return GoalForecast(basis="no forecast: there is no plan yet")
    progress = f"{done} of {of} steps done"
    if unplanned:
        progress += f", {unplanned} of them still to be planned"
    return _forecast_of_steps(state, below, done, of, progress, unplanned=unplanned)


def _unplanned(state: AgentState, goal: str, below: Sequence[str], steps: Sequence[PlanStep]) -> int:
    """Steps that no plan has yet: one that is to achieve a goal without a plan is at least one step."""
    waits = sum(step.op is Op.ACHIEVE and not step.status.terminal for step in steps)
    return max(waits - sum(other in state.plans and other != goal for other in below), 0)


def _forecast_of_steps(
    state: AgentState, below: Sequence[str], done: int, of: int, progress: str, *, unplanned: int
) -> GoalForecast:
    """What the steps that are left will take, by the pace of those that are done."""
    pace = sum((state.paces[goal] for goal in below if goal in state.paces), StepCosts())
    taken = sum((state.spent[goal] for goal in below if goal in state.spent), Spent())
    if pace.steps:
        basis = progress if pace.steps >= SURE_STEPS else f"{progress}, too few to be sure"
    elif (pace := sum(state.paces.values(), StepCosts())).steps:
        basis = f"{progress}; as steps of earlier goals went"
    else:
        # How many actions there will be is known where all steps are.
        sure = AmountForecast(*(float(taken.actions + of - done),) * 3)
        known = () if unplanned else ((BudgetKind.ACTIONS, sure),)
        return GoalForecast(done, of, known, f"{progress}; what they take shows once one is done")
    amounts = tuple((kind, _forecast(kind, taken, pace, of - done)) for kind in BudgetKind)
    return GoalForecast(done, of, amounts, basis)


def _forecast(kind: BudgetKind, taken: Spent, pace: StepCosts, left: int) -> AmountForecast:
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
    return AmountForecast(spent + max(rest - off, 0.0), spent + rest, spent + rest + off)


@dataclass(frozen=True, slots=True)
class BudgetStatusLine:
    """One kind of one budget, in the kind's unit."""

    kind: BudgetKind
    limit: float | None
    taken: float
    reserved: float = 0.0
    """What calls under way may take and what is set aside for others, beyond what was taken."""
    forecast: AmountForecast | None = None
    """What will have been taken in the end; None where nothing can be said."""

    @property
    def left(self) -> float | None:
        """What can still be taken; None without a limit."""
        return None if self.limit is None else max(self.limit - self.taken - self.reserved, 0.0)


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """One budget."""

    budget: str
    """Whose: `goal g1`, `agent pilot-1`, `workspace`."""
    lines: tuple[BudgetStatusLine, ...]
    basis: str = ""
    """What the forecasts rest on, or why there are none."""
    unpriced: int = 0
    """Calls whose price nobody knows, so that the dollars are only part of the sum."""
    held: tuple[str, ...] = ()
    """Agents that this budget holds now."""


def budget_statuses(ledger: Ledger, state: AgentState, goal: str = "") -> tuple[BudgetStatus, ...]:
    """The budgets that an agent draws on, the nearest first: goals, the agent, those it works for, all.

    Args:
        ledger: counts for all agents.
        state: the agent's state.
        goal: the goal that is asked about; empty for the one at hand, or the next.
    """
    chosen = goal or state.goal_at_hand or next((open_goal.id for open_goal in state.open_goals), "")
    line = state.lineage(chosen)
    statuses = [
        _budget_status(ledger, state, ledger.of_goal(state, ancestor.id), forecast_goal(state, ancestor.id))
        for ancestor in line
        if ancestor.id in (chosen, line[-1].id) or ancestor.id in state.goal_budgets
    ]
    rest = _still_needed(state)
    above = [account for account in ledger.accounts(state, chosen) if not account.budget.startswith("goal ")]
    return (*statuses, *(_budget_status(ledger, state, account, rest=rest) for account in above))


def _budget_status(
    ledger: Ledger,
    state: AgentState,
    account: Account,
    seen: GoalForecast | None = None,
    rest: dict[BudgetKind, AmountForecast] | None = None,
) -> BudgetStatus:
    taken, charged = account.taken(), account.charged()
    lines = []
    for kind in BudgetKind:
        spent = taken.of(kind)
        forecast = seen.of_kind(kind) if seen is not None else None
        if rest is not None and kind in rest:
            still = rest[kind]
            forecast = AmountForecast(spent + still.low, spent + still.likely, spent + still.high)
        reserved = max(charged.of(kind) - spent, 0.0)
        lines.append(BudgetStatusLine(kind, account.limits.of(kind), spent, reserved, forecast))
    basis = seen.basis if seen is not None else ""
    held = ledger.held(account.budget, state)
    return BudgetStatus(account.budget, tuple(lines), basis, taken.unpriced, held)


def _still_needed(state: AgentState) -> dict[BudgetKind, AmountForecast]:
    """What the agent's open goals still need of each kind; nothing where it cannot be said of one of them."""
    roots = [root.id for root in state.open_goals if root.parent is None]
    forecasts = [(forecast_goal(state, root), _taken(state, root)) for root in roots]
    needed = {}
    for kind in BudgetKind:
        parts = [(seen.of_kind(kind), taken.of(kind)) for seen, taken in forecasts]
        known = [(forecast, taken) for forecast, taken in parts if forecast is not None]
        if known and len(known) == len(parts):
            needed[kind] = AmountForecast(
                sum(max(forecast.low - taken, 0.0) for forecast, taken in known),
                sum(max(forecast.likely - taken, 0.0) for forecast, taken in known),
                sum(max(forecast.high - taken, 0.0) for forecast, taken in known),
            )
    return needed


def _taken(state: AgentState, goal: str) -> Spent:
    mine = (
        spent for other, spent in state.spent.items() if any(up.id == goal for up in state.lineage(other))
    )
    return sum(mine, Spent())
