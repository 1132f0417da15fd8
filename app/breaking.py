"""All breakpoints of an agent in one list, and what a dry run says, in words and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from engine.domain.break_lines import BreakError, read_break, write_break
from engine.domain.state import AgentState
from engine.domain.text import clean_line
from engine.engine import Engine
from engine.inquiry import DryAnswer, DryResult

NONE_YET = "no breakpoints; break KIND … sets one, such as: break error *"


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
        BreakRow(one.id, one.on, one.pattern, one.enabled, stopped=one.hits)
        for one in state.mind_breakpoints.values()
    ]
    others = []
    for one in state.points.values():
        kind, _, text = write_break(one.spec).partition(" ")
        others.append(BreakRow(one.id, kind, text, one.enabled, state.came[one.id], one.stopped, one.last))
    return (*steps, *minds, *others)


def _step_text(state: AgentState, ident: str) -> str:
    found = state.find_step(ident)
    return f"{ident} {found[1].description}" if found is not None else ident


def breaks_answer(state: AgentState) -> tuple[dict[str, Any], str]:
    """The list as JSON and as text."""
    rows = break_rows(state)
    lines = [
        f"{row.id:<5} {'on ' if row.enabled else 'off'} {row.kind:<9} {clean_line(row.text)}"
        + (f"  ({row.counts})" if row.counts else "")
        for row in rows
    ]
    return {"breakpoints": [asdict(row) for row in rows]}, "\n".join(lines) or NONE_YET


# ------------------------------------------------------------------ dry runs


def split_dry(text: str) -> tuple[str, int | None]:
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


async def dry_answer(engine: Engine, agent: str, text: str) -> tuple[int, dict[str, Any], str]:
    """What a breakpoint would have done over an agent's history: exit code, JSON, text.

    Raises:
        JournalError: the journal cannot be read.
    """
    try:
        line, last = split_dry(text)
    except BreakError as error:
        return 2, {}, str(error)
    told = await engine.dry_run(agent, [line], last)
    return 0, dry_json(told), dry_text(told)


def dry_json(told: DryAnswer) -> dict[str, Any]:
    """A dry run as JSON; of the holds the first twenty."""
    (result,) = told.results
    stops = [asdict(stop) for stop in result.stops]
    counts = {"matched": result.matched, "stopped": result.stopped}
    line = write_break(result.spec)
    return {"agent": told.agent, "events": told.events, "line": line, **counts, "stops": stops}


def dry_text(told: DryAnswer) -> str:
    """A dry run in words, each hold a line."""
    (result,) = told.results
    lines = [dry_line(told)]
    lines += [f"  {stop.event:<14} {stop.at[:19]}  {clean_line(stop.what)}" for stop in result.stops]
    if result.stopped > len(result.stops):
        lines.append(f"  … and {result.stopped - len(result.stops):,} more")
    return "\n".join(lines)


def dry_line(told: DryAnswer) -> str:
    """How often, in a line."""
    (result,) = told.results
    times = "never" if not result.stopped else "once" if result.stopped == 1 else f"{result.stopped:,} times"
    came = _came(result)
    return f"would have held {told.agent} {times} in {told.events:,} events{came}"


def _came(result: DryResult) -> str:
    return f" (it came {result.matched:,} times)" if result.matched > result.stopped else ""
