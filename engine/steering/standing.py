"""Where the budgets of an agent stand, for whoever looks: taken, left, and what is to be expected."""

from __future__ import annotations

from dataclasses import dataclass

from engine.domain.budgets import BudgetKind, Spent
from engine.domain.state import AgentState
from engine.steering.forecast import Forecast, Outlook, outlook
from engine.steering.ledger import Account, Ledger


@dataclass(frozen=True, slots=True)
class Line:
    """One kind of one budget, in the kind's unit."""

    kind: BudgetKind
    limit: float | None
    taken: float
    reserved: float = 0.0
    """What calls under way may take and what is set aside for others, beyond what was taken."""
    forecast: Forecast | None = None
    """What will have been taken in the end; None where nothing can be said."""

    @property
    def left(self) -> float | None:
        """What can still be taken; None without a limit."""
        return None if self.limit is None else max(self.limit - self.taken - self.reserved, 0.0)


@dataclass(frozen=True, slots=True)
class Standing:
    """One budget."""

    budget: str
    """Whose: `goal g1`, `agent pilot-1`, `workspace`."""
    lines: tuple[Line, ...]
    basis: str = ""
    """What the forecasts rest on, or why there are none."""
    unpriced: int = 0
    """Calls whose price nobody knows, so that the dollars are only part of the sum."""
    held: tuple[str, ...] = ()
    """Agents that this budget holds now."""


def standings(ledger: Ledger, state: AgentState, goal: str = "") -> tuple[Standing, ...]:
    """The budgets that an agent draws on, the nearest first: goals, the agent, those it works for, all.

    Args:
        ledger: counts for all agents.
        state: the agent's state.
        goal: the goal that is asked about; empty for the one at hand, or the next.
    """
    chosen = goal or state.goal_at_hand or next((one.id for one in state.open_goals), "")
    line = state.lineage(chosen)
    found = [
        _standing(ledger, state, ledger.of_goal(state, one.id), outlook(state, one.id))
        for one in line
        if one.id in (chosen, line[-1].id) or one.id in state.goal_budgets
    ]
    rest = _still_needed(state)
    above = [one for one in ledger.accounts(state, chosen) if not one.budget.startswith("goal ")]
    return (*found, *(_standing(ledger, state, account, rest=rest) for account in above))


def _standing(
    ledger: Ledger,
    state: AgentState,
    account: Account,
    seen: Outlook | None = None,
    rest: dict[BudgetKind, Forecast] | None = None,
) -> Standing:
    taken, charged = account.taken(), account.charged()
    lines = []
    for kind in BudgetKind:
        spent = taken.of(kind)
        forecast = seen.of_kind(kind) if seen is not None else None
        if rest is not None and kind in rest:
            still = rest[kind]
            forecast = Forecast(spent + still.low, spent + still.likely, spent + still.high)
        reserved = max(charged.of(kind) - spent, 0.0)
        lines.append(Line(kind, account.limits.of(kind), spent, reserved, forecast))
    basis = seen.basis if seen is not None else ""
    held = ledger.held(account.budget, state)
    return Standing(account.budget, tuple(lines), basis, taken.unpriced, held)


def _still_needed(state: AgentState) -> dict[BudgetKind, Forecast]:
    """What the agent's open goals still need of each kind; nothing where it cannot be said of one of them."""
    roots = [one.id for one in state.open_goals if one.parent is None]
    found = [(outlook(state, one), _taken(state, one)) for one in roots]
    needed = {}
    for kind in BudgetKind:
        parts = [(seen.of_kind(kind), taken.of(kind)) for seen, taken in found]
        known = [(forecast, taken) for forecast, taken in parts if forecast is not None]
        if known and len(known) == len(parts):
            needed[kind] = Forecast(
                sum(max(forecast.low - taken, 0.0) for forecast, taken in known),
                sum(max(forecast.likely - taken, 0.0) for forecast, taken in known),
                sum(max(forecast.high - taken, 0.0) for forecast, taken in known),
            )
    return needed


def _taken(state: AgentState, goal: str) -> Spent:
    mine = (spent for one, spent in state.spent.items() if any(up.id == goal for up in state.lineage(one)))
    return sum(mine, Spent())
