"""The budgets dialog's model, from where the budgets stand."""

from __future__ import annotations

from collections.abc import Sequence

from app.budgeting import forecast_text, money
from engine.domain.budgets import BudgetKind
from engine.domain.state import AgentState
from engine.steering.standing import Line, Standing
from widgets.dialogs.budgets import BudgetLine, BudgetSection, BudgetsModel


def budgets(found: Sequence[Standing], state: AgentState) -> BudgetsModel:
    """The model for the budgets that an agent draws on."""
    return BudgetsModel(state.agent_id, tuple(_section(one, state) for one in found))


def _section(one: Standing, state: AgentState) -> BudgetSection:
    goal = state.goals.get(one.budget.removeprefix("goal "))
    title = f"{one.budget}: {goal.text}" if goal is not None else one.budget
    basis = one.basis
    if one.unpriced:
        basis = f"{basis}{'; ' if basis else ''}{one.unpriced} calls of unknown price"
    held = f"holds {', '.join(one.held)}" if one.held else ""
    return BudgetSection(one.budget, title, tuple(_line(line) for line in one.lines), basis, held)


def _line(line: Line) -> BudgetLine:
    kind, limit = line.kind, line.limit
    ends = line.forecast
    return BudgetLine(
        kind.value,
        money(kind, line.taken),
        money(kind, limit) if limit is not None else "",
        money(kind, line.left) if line.left is not None else "",
        reserved if (reserved := money(kind, line.reserved)) != money(kind, 0.0) else "",
        part=_part(line.taken, limit),
        reserved_part=_part(line.reserved, limit),
        forecast=forecast_text(kind, ends) if ends is not None and ends.high > 0 else "",
        short=ends is not None and limit is not None and ends.likely > limit,
        more=_quarter(kind, limit),
    )


def _part(amount: float, limit: float | None) -> float:
    if not limit:
        return 0.0 if limit is None else 1.0
    return min(1.0, amount / limit)


def _quarter(kind: BudgetKind, limit: float | None) -> str:
    """What the quick top-up adds: a quarter of the limit; empty where there is none."""
    if limit is None:
        return ""
    if kind is BudgetKind.USD:
        return f"+{max(round(limit / 4, 2), 0.01):g}"
    return f"+{max(round(limit / 4), 1)}"
