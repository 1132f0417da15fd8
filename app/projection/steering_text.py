"""All breakpoints of an agent in one list, and what a dry run says, in words and as JSON.

Budgets in words and numbers, for the command line, the bar and the dialog alike.
"""

from __future__ import annotations

from typing import Any

from engine.agent.steering.budget_status import AmountForecast, BudgetStatus, BudgetStatusLine
from engine.core.breakpoints import read_break, write_break
from engine.core.budgets import BudgetKind, amount_text
from engine.core.state import AgentState
from engine.core.text import clean_line
from engine.inquiry.dry_run import DryAnswer
from engine.value import dataclass


@dataclass(frozen=True, slots=True)
class BreakRow:
    """One breakpoint, whichever sort it is."""

    id: str
    kind: str
    text: str
    """What follows its kind."""
    enabled: bool = True
    matched: int | None = None
    """How often it came; None where that is not counted apart from the holds."""
    stopped: int = 0
    last: str = ""
    """The event at which it held last; empty where that is not known."""

    @property
    def counts(self) -> str:
        """How often it came and held, for a list; empty before it did."""
        parts = (
            f"came {self.matched:,}x" if self.matched else "",
            f"held {self.stopped:,}x" if self.stopped else "",
        )
        return ", ".join(filter(None, parts))


def break_rows(state: AgentState) -> tuple[BreakRow, ...]:
    """Every breakpoint of an agent: on steps alone, on a reasoner's mind, and all others."""
    steps = [BreakRow(ident, "step", _step_text(state, ident)) for ident in state.breakpoints]
    minds = [
        BreakRow(each.id, each.on, each.pattern, each.enabled, stopped=each.hits)
        for each in state.mind_breakpoints.values()
    ]
    others = []
    for point in state.points.values():
        kind, _, text = write_break(point.spec).partition(" ")
        others.append(
            BreakRow(point.id, kind, text, point.enabled, state.came[point.id], point.stopped, point.last)
        )
    return (*steps, *minds, *others)


def _step_text(state: AgentState, ident: str) -> str:
    place = state.find_step(ident)
    return f"{ident} {place[1].description}" if place is not None else ident


# ------------------------------------------------------------------ dry runs


def split_dry_run(text: str) -> tuple[str, int | None]:
    """The breakpoint of a dry run, and over how many of the newest events it goes: `error * last 5000`.

    Raises:
        BreakError: the breakpoint is none.
    """
    line, last = text, None
    words = text.rsplit(maxsplit=2)
    if len(words) == 3 and words[1] == "last" and words[2].isascii() and words[2].isdigit():
        line, last = words[0], int(words[2][:12])
    read_break(line)
    return line, last


def dry_run_line(dry_answer: DryAnswer) -> str:
    """How often, in a line."""
    (result,) = dry_answer.results
    times = "never" if not result.stopped else "once" if result.stopped == 1 else f"{result.stopped:,} times"
    came = f" (it came {result.matched:,} times)" if result.matched > result.stopped else ""
    return f"would have held {dry_answer.agent} {times} in {dry_answer.events:,} events{came}"


def shown_amount(kind: BudgetKind, amount: float) -> str:
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


def forecast_text(kind: BudgetKind, forecast: AmountForecast) -> str:
    """What will have been taken: `about $0.40 ($0.31 to $0.52)`; bare where it is sure."""
    likely, low, high = (
        shown_amount(kind, amount) for amount in (forecast.likely, forecast.low, forecast.high)
    )
    return likely if low == high else f"about {likely} ({low} to {high})"


def budget_lines(status: BudgetStatus) -> list[str]:
    """A budget in lines, one for each kind of amount."""
    held = f"  HOLDS {', '.join(status.held)}" if status.held else ""
    basis = f"  ({clean_line(status.basis)})" if status.basis else ""
    unpriced = f"  ({status.unpriced} calls of unknown price)" if status.unpriced else ""
    return [f"{status.budget}{held}{basis}{unpriced}", *map(_line, status.lines)]


def _line(line: BudgetStatusLine) -> str:
    kind, ends = line.kind, line.forecast
    limit = f"of {shown_amount(kind, line.limit)}" if line.limit is not None else "no limit"
    parts = (
        f"{shown_amount(kind, line.reserved)} set aside" if is_shown(kind, line.reserved) else "",
        f"{shown_amount(kind, line.left)} left" if line.left is not None else "",
        f"in the end {forecast_text(kind, ends)}" if ends is not None and ends.high > 0 else "",
    )
    more = " · ".join(filter(None, parts))
    return f"  {kind.value:<8} {shown_amount(kind, line.taken):>12} {limit:<14} {more}".rstrip()


def is_shown(kind: BudgetKind, amount: float) -> bool:
    """Whether an amount is more than nothing as it is shown."""
    return shown_amount(kind, amount) != shown_amount(kind, 0.0)


def budget_json(status: BudgetStatus) -> dict[str, Any]:
    """The same as JSON; amounts in dollars, tokens, calls, actions and seconds."""
    return {
        "budget": status.budget,
        "holds": list(status.held),
        "basis": status.basis,
        "unpriced_calls": status.unpriced,
        "kinds": {
            line.kind.value: {
                "limit": line.limit,
                "spent": round(line.taken, 6),
                "set_aside": round(line.reserved, 6),
                "left": None if line.left is None else round(line.left, 6),
                "forecast": line.forecast
                and {name: round(getattr(line.forecast, name), 6) for name in ("low", "likely", "high")},
            }
            for line in status.lines
        },
    }
