"""What came of an agent and of its forks, beside each other: successes and cost with their intervals.

Rates have Wilson's interval, means that of Student's t, both at 95 %; how many runs they stand on is said,
and a fork that has not ended counts for neither. Source: steering §3 idea 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from statistics import mean, stdev
from typing import Any

from app.lines import call_text
from engine.domain import commands as cmd
from engine.domain.goal import GoalStatus
from engine.domain.state import AgentState
from engine.domain.text import clean_line
from engine.engine import Engine
from engine.journal import events as ev

Z = 1.959964
"""Of the standard normal distribution, for 95 %."""
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145)
_T_MORE = (2.131, 2.120, 2.110, 2.101, 2.093, 2.086)
"""Student's t for 95 % by degrees of freedom, 1 to 14 and 15 to 20."""
_STEERS = (cmd.Run, cmd.Pause, cmd.Step, cmd.Stop)
"""Commands that change nothing of what a run is about."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one agent since a fork's event."""

    agent: str
    parent: str
    """The event that it began at; empty for the original."""
    edits: str
    """What the operator changed in it, in words; empty where it is as the original was."""
    ended: str
    """`achieved`, `failed`, or `open` while goals of the event are."""
    actions: int
    failed_actions: int
    tokens: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its interval at 95 %."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Group:
    """Forks from one event with the same changes."""

    parent: str
    edits: str
    runs: tuple[Outcome, ...]

    @property
    def over(self) -> tuple[Outcome, ...]:
        """The runs that have ended."""
        return tuple(run for run in self.runs if run.ended != "open")

    @property
    def rate(self) -> Interval | None:
        """Part of the ended runs that achieved its goals; None before one has ended."""
        over = self.over
        return wilson(sum(run.ended == "achieved" for run in over), len(over)) if over else None


def wilson(successes: int, runs: int) -> Interval:
    """A rate with Wilson's score interval (Wilson 1927), which holds for few runs as well."""
    rate, square = successes / runs, Z * Z
    middle = (rate + square / (2 * runs)) / (1 + square / runs)
    half = Z / (1 + square / runs) * sqrt(rate * (1 - rate) / runs + square / (4 * runs * runs))
    return Interval(rate, max(0.0, middle - half), min(1.0, middle + half))


def mean_of(values: Sequence[float]) -> Interval:
    """A mean with Student's interval; of one value the interval is everything from 0."""
    if len(values) < 2:
        return Interval(values[0], 0.0, float("inf"))
    known = (*_T, *_T_MORE)
    half = known[min(len(values) - 1, len(known)) - 1] * stdev(values) / sqrt(len(values))
    return Interval(mean(values), mean(values) - half, mean(values) + half)


async def outcomes(engine: Engine, agent: str) -> tuple[Outcome | None, tuple[Group, ...]]:
    """What came of an agent and of its forks.

    Raises:
        JournalError: the journal cannot be read.
    """
    states = [await engine.view(name) for name in engine.agents]
    forks = [one for one in states if one.forked is not None and one.forked.agent == agent]
    original = next((one for one in states if one.agent_id == agent), None)
    found: dict[tuple[str, str], list[Outcome]] = {}
    for state in forks:
        assert state.forked is not None
        edits = await _edits(engine, state.agent_id)
        then = await engine.view(agent, int(state.forked.parent.rpartition(":")[2]))
        one = _outcome(state, then, state.forked.parent, edits)
        found.setdefault((one.parent, one.edits), []).append(one)
    first = None
    if original is not None:
        first = _outcome(original, original, "", "")
    return first, tuple(Group(*key, tuple(runs)) for key, runs in found.items())


def _outcome(state: AgentState, then: AgentState, parent: str, edits: str) -> Outcome:
    """What became of the root goals that were open when it began."""
    wanted = [goal.id for goal in then.root_goals() if not parent or not goal.status.terminal]
    ends = [state.goals[goal].status if goal in state.goals else GoalStatus.DROPPED for goal in wanted]
    ended = "open" if not ends or any(not status.terminal for status in ends) else "failed"
    if ends and all(status is GoalStatus.ACHIEVED for status in ends):
        ended = "achieved"
    return Outcome(
        state.agent_id,
        parent,
        edits,
        ended,
        state.actions,
        state.failed_actions,
        state.tokens,
        state.cost_usd,
    )


async def _edits(engine: Engine, fork: str) -> str:
    """The operator's commands that make a fork another run than the original's, in words."""
    said = []
    for event in await engine.store.last(50, fork, kind=ev.CommandReceived.kind):
        payload = ev.payload_of(event)
        assert isinstance(payload, ev.CommandReceived)
        command = cmd.parse_command(payload.command)
        if not isinstance(command, _STEERS):
            args = {name: value for name, value in payload.command.items() if name not in ("do", "agent")}
            said.append(call_text(command.do, args))
    return clean_line("; ".join(said), limit=200)


def text_of(original: Outcome | None, groups: Sequence[Group]) -> str:
    """A table of what came of all."""
    lines = [f"{'agent':<24} {'ended':<9} {'actions':>7} {'failed':>6} {'tokens':>8} {'cost':>8}"]
    if original is not None:
        lines.append(_row(original))
    for group in groups:
        edits = f" with {group.edits}" if group.edits else " as it was"
        lines += ["", f"forks from {group.parent}{edits}", *map(_row, group.runs), f"  {_summary(group)}"]
    if not groups:
        lines.append("no forks yet: fork EVENT makes one, fork EVENT x5 five that run at once")
    return "\n".join(lines)


def _row(one: Outcome) -> str:
    cost = f"${one.cost_usd:.4f}"
    return (
        f"{one.agent:<24} {one.ended:<9} {one.actions:>7} {one.failed_actions:>6} {one.tokens:>8} {cost:>8}"
    )


def _summary(group: Group) -> str:
    rate, over = group.rate, group.over
    if rate is None:
        return f"none of {len(group.runs)} has ended"
    waits = f"; {len(group.runs) - len(over)} still open" if len(over) < len(group.runs) else ""
    told = f"achieved {rate.value:.0%} [{rate.low:.0%}, {rate.high:.0%}] of n = {len(over)}{waits}"
    cost = mean_of([run.cost_usd for run in over])
    actions = mean_of([float(run.actions) for run in over])
    if len(over) < 2:
        return (
            f"{told}; cost ${cost.value:.4f}, {actions.value:.0f} actions; one run says nothing of the spread"
        )
    spread = f"${cost.value:.4f} [{max(0.0, cost.low):.4f}, {cost.high:.4f}]"
    deeds = f"{actions.value:.1f} [{max(0.0, actions.low):.1f}, {actions.high:.1f}]"
    return f"{told}; cost {spread}; actions {deeds}"


def parts_of(
    original: Outcome | None, groups: Sequence[Group]
) -> tuple[tuple[str, tuple[tuple[str, str], ...], str], ...]:
    """The same for a dialog: title, lines with their signs, and a note of each part."""
    parts = [("The agent itself", tuple(_told(one) for one in filter(None, [original])), "")]
    for group in groups:
        title = f"Forks from {group.parent}{f' with {group.edits}' if group.edits else ' as it was'}"
        parts.append((title, tuple(map(_told, group.runs)), _summary(group)))
    return tuple(parts)


def _told(one: Outcome) -> tuple[str, str]:
    sign = {"achieved": "+", "failed": "-"}.get(one.ended, "~")
    spent = f"{one.tokens} tokens, ${one.cost_usd:.4f}"
    return sign, f"{one.agent}: {one.ended}, {one.actions} actions, {one.failed_actions} failed, {spent}"


def as_json(original: Outcome | None, groups: Sequence[Group]) -> dict[str, Any]:
    """The table as JSON."""
    return {
        "original": asdict(original) if original is not None else None,
        "groups": [
            {
                "parent": group.parent,
                "edits": group.edits,
                "runs": [asdict(run) for run in group.runs],
                "n": len(group.over),
                "achieved": asdict(group.rate) if group.rate is not None else None,
            }
            for group in groups
        ],
    }
