"""Budgets in words and numbers, for the command line, the bar and the dialog alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.domain.budgets import BudgetKind, amount_text
from engine.domain.text import clean_line
from engine.engine import Engine
from engine.steering.forecast import Forecast
from engine.steering.standing import Line, Standing


def money(kind: BudgetKind, amount: float) -> str:
    """An amount as it is shown: `$0.1234`, `1,200`, `90 s`, `15 min 2 s`."""
    match kind:
        case BudgetKind.USD:
            return amount_text(kind, round(amount, 4))
        case BudgetKind.SECONDS if amount >= 60:
            minutes, seconds = divmod(round(amount), 60)
            hours, minutes = divmod(minutes, 60)
            parts = ((hours, "h"), (minutes, "min"), (seconds, "s"))
            return " ".join(f"{count} {unit}" for count, unit in parts if count)
        case BudgetKind.SECONDS:
            return amount_text(kind, round(amount, 1))
        case _:
            return f"{amount:,.0f}"


def forecast_text(kind: BudgetKind, forecast: Forecast) -> str:
    """What will have been taken: `about $0.40 ($0.31 to $0.52)`; bare where it is sure."""
    likely, low, high = (money(kind, one) for one in (forecast.likely, forecast.low, forecast.high))
    return likely if low == high else f"about {likely} ({low} to {high})"


def budgets_text(found: Sequence[Standing]) -> str:
    """The budgets that an agent draws on, several lines."""
    return "\n".join(line for standing in found for line in _lines(standing))


def _lines(standing: Standing) -> list[str]:
    held = f"  HOLDS {', '.join(standing.held)}" if standing.held else ""
    basis = f"  ({clean_line(standing.basis)})" if standing.basis else ""
    unpriced = f"  ({standing.unpriced} calls of unknown price)" if standing.unpriced else ""
    return [f"{standing.budget}{held}{basis}{unpriced}", *(_line(line) for line in standing.lines)]


def _line(line: Line) -> str:
    kind = line.kind
    limit = f"of {money(kind, line.limit)}" if line.limit is not None else "no limit"
    reserved = f"{money(kind, line.reserved)} set aside" if _shown(kind, line.reserved) else ""
    left = f"{money(kind, line.left)} left" if line.left is not None else ""
    told = line.forecast is not None and line.forecast.high > 0
    ends = f"in the end {forecast_text(kind, line.forecast)}" if told and line.forecast else ""
    parts = " · ".join(part for part in (reserved, left, ends) if part)
    return f"  {kind.value:<8} {money(kind, line.taken):>12} {limit:<14} {parts}".rstrip()


def _shown(kind: BudgetKind, amount: float) -> bool:
    return money(kind, amount) != money(kind, 0.0)


def budgets_json(found: Sequence[Standing]) -> dict[str, Any]:
    """The same as JSON; amounts in dollars, tokens, calls, actions and seconds."""
    return {"budgets": [_standing_json(one) for one in found]}


def _standing_json(standing: Standing) -> dict[str, Any]:
    kinds = {
        line.kind.value: {
            "limit": line.limit,
            "spent": round(line.taken, 6),
            "set_aside": round(line.reserved, 6),
            "left": None if line.left is None else round(line.left, 6),
            "forecast": None if line.forecast is None else _forecast_json(line.forecast),
        }
        for line in standing.lines
    }
    return {
        "budget": standing.budget,
        "holds": list(standing.held),
        "basis": standing.basis,
        "unpriced_calls": standing.unpriced,
        "kinds": kinds,
    }


def _forecast_json(forecast: Forecast) -> dict[str, float]:
    return {name: round(getattr(forecast, name), 6) for name in ("low", "likely", "high")}


def tell_budgets(engine: Engine, agent: str, goal: str) -> tuple[int, dict[str, Any], str]:
    """The answer to `budget` without amounts: exit code, JSON, text."""
    found = engine.budgets(agent, goal)
    return 0, budgets_json(found), budgets_text(found)
