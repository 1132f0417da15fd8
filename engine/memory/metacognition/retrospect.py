"""What the record says about an agent's work: counted, never guessed.

A retrospect is taken when a job begins, so that what the agent does meanwhile does not change it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from engine.core.memory import ReflectionKind
from engine.core.metacognition import PastAction, Signal, ToolStatistics
from engine.core.plan import StepStatus
from engine.core.state import AgentState
from engine.core.text import clean_line
from engine.memory.metacognition.stuck import signs_of
from engine.value import dataclass

SHOWN = 5
"""Lines of each kind that a reflection has at most."""
SLOW_FACTOR = 3
"""How many times the usual an action must take to be called slow."""
LINE = 160


@dataclass(frozen=True, slots=True)
class Retrospect:
    """An agent's work up to now, as its state has it."""

    goal: str = ""
    """Text of the goal being pursued."""
    actions: tuple[PastAction, ...] = ()
    """The newest, oldest first."""
    tools: tuple[tuple[str, ToolStatistics], ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    """Kind and message of those that are not settled, oldest first."""
    done: tuple[str, ...] = ()
    """Steps of the plan that are through, each in a line."""
    open: tuple[str, ...] = ()
    """Steps that are still to come."""
    open_goals: tuple[str, ...] = ()
    failed_steps: tuple[str, ...] = ()
    signals: tuple[Signal, ...] = ()
    consecutive_errors: int = 0


def review_record(state: AgentState) -> Retrospect:
    """What a state says about the agent's work."""
    steps = state.plan.steps if state.plan is not None else ()

    def lines(*statuses: StepStatus) -> tuple[str, ...]:
        return tuple(
            clean_line(
                f"{step.id} {step.description or step.command}: {step.summary}".rstrip(": "), limit=LINE
            )
            for step in steps
            if step.status in statuses
        )

    return Retrospect(
        goal=state.goal.text if state.goal is not None else "",
        actions=state.meta.window,
        tools=tuple(sorted(state.meta.tools.items())),
        failures=tuple(
            (failure.kind.value, failure.message) for failure in state.failures if not failure.resolved
        ),
        done=lines(StepStatus.COMPLETED, StepStatus.SKIPPED),
        open=lines(StepStatus.PLANNED, StepStatus.RUNNING),
        open_goals=tuple(f"{goal.id} {goal.text}" for goal in state.open_goals),
        failed_steps=lines(StepStatus.FAILED),
        signals=signs_of(state.meta),
        consecutive_errors=state.consecutive_errors,
    )


# ------------------------------------------------------------------ computed reflections


def computed(past: Retrospect, kind: ReflectionKind) -> str:
    """A reflection of a kind, counted from the record; the first line says the most."""
    lines = _KINDS[kind](past)
    return "\n".join(clean_line(line, limit=LINE * 2) for line in lines)


def _counts(past: Retrospect) -> str:
    if not past.actions:
        return "no action has ended yet"
    bad = sum(not action.ok for action in past.actions)
    return f"{bad} of the last {_number(len(past.actions), 'action')} failed"


def _summary(past: Retrospect) -> list[str]:
    kinds = Counter(action.call for action in past.actions)
    took = sum(action.duration_ms for action in past.actions)
    lines = [f"{_counts(past)[:1].upper()}{_counts(past)[1:]}."]
    if kinds:
        lines.append(f"Done: {', '.join(f'{call} ×{n}' for call, n in kinds.most_common(SHOWN))}.")
        lines.append(f"They took {took / 1000:.1f} s in all.")
    return [*lines, *_errors(past)]


def _progress(past: Retrospect) -> list[str]:
    through, left = len(past.done), len(past.open)
    lines = [f"{through} steps are through, {left} still to come; {len(past.open_goals)} goals are open."]
    lines += [f"Through: {line}" for line in past.done[-SHOWN:]]
    return [*lines, *(f"Next: {line}" for line in past.open[:SHOWN])]


def _gaps(past: Retrospect) -> list[str]:
    errors = [*_errors(past), *(f"Failed and not settled: {line}" for line in past.failed_steps[:SHOWN])]
    lines = [f"{len(past.failures)} failures are not settled; {_counts(past)}.", *errors]
    lines += [f"May be stuck: {signal.text}." for signal in past.signals]
    return lines + [f"Done over and over: {what} ×{n}" for what, n in repeated(past.actions)[:SHOWN]]


def _strengths(past: Retrospect) -> list[str]:
    sure = [(call, told) for call, told in past.tools if told.succeeded and not told.failed]
    sure.sort(key=lambda pair: -pair[1].succeeded)
    lines = [f"{_number(len(sure), 'command')} never failed; {_counts(past)}."]
    return lines + [
        f"{call}: {_number(told.succeeded, 'time')}, {told.duration_ms / told.succeeded:.0f} ms each"
        for call, told in sure[:SHOWN]
    ]


def _plan(past: Retrospect) -> list[str]:
    first = past.open[0] if past.open else "nothing is planned"
    lines = [f"Still to come: {_number(len(past.open), 'step')}, first {first}."]
    lines += [f"Open goal: {line}" for line in past.open_goals[:SHOWN]]
    return lines + [f"Slow: {what}, {ms / 1000:.1f} s" for what, ms in slow(past.actions)[:SHOWN]]


def _errors(past: Retrospect) -> list[str]:
    codes = Counter(action.code for action in past.actions if not action.ok)
    kinds = Counter(kind for kind, _ in past.failures)
    lines = []
    if codes:
        lines.append(f"By error code: {', '.join(f'{code} ×{n}' for code, n in codes.most_common(SHOWN))}.")
    if kinds:
        lines.append(f"Not settled: {', '.join(f'{kind} ×{n}' for kind, n in kinds.most_common(SHOWN))}.")
        lines.append(f"The newest says: {past.failures[-1][1]}")
    return lines


_KINDS = {
    ReflectionKind.SUMMARY: _summary,
    ReflectionKind.PROGRESS: _progress,
    ReflectionKind.GAPS: _gaps,
    ReflectionKind.STRENGTHS: _strengths,
    ReflectionKind.PLAN: _plan,
}


def repeated(actions: Sequence[PastAction]) -> list[tuple[str, int]]:
    """Calls with the same arguments that were made three times or more, and how often; the most first."""
    counts = Counter(action.same_as for action in actions if not action.polls)
    names = {action.same_as: action.subject for action in actions}
    return [(names[same], n) for same, n in counts.most_common() if n >= 3]


def slow(actions: Sequence[PastAction]) -> list[tuple[str, int]]:
    """Actions that took much longer than the usual one, with their milliseconds; the slowest first."""
    times = sorted(action.duration_ms for action in actions)
    if len(times) < 3:
        return []
    usual = times[len(times) // 2]
    over = [action for action in actions if action.duration_ms > max(SLOW_FACTOR * usual, 1_000)]
    return sorted(((action.subject, action.duration_ms) for action in over), key=lambda pair: -pair[1])


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


# ------------------------------------------------------------------ for a model


def material(past: Retrospect) -> str:
    """The record as text, for a model to read."""
    parts = {
        "goal": (past.goal,),
        "actions, oldest first": tuple(
            f"{action.subject}: {'ok' if action.ok else action.code} ({action.duration_ms} ms)"
            for action in past.actions[-30:]
        ),
        "failures that are not settled": tuple(f"{kind}: {message}" for kind, message in past.failures[-10:]),
        "steps that are through": past.done[-20:],
        "steps still to come": past.open[:20],
        "signs of being stuck": tuple(signal.text for signal in past.signals),
    }
    return "\n\n".join(f"{name}:\n" + "\n".join(lines) for name, lines in parts.items() if any(lines))
