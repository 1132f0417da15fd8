"""View model of the error panel: what went wrong, what was tried against it, what comes next."""

from __future__ import annotations

from datetime import datetime, timedelta

from engine.domain.failure import OF_GOALS, Failure, Strategy
from engine.domain.state import AgentState
from engine.recovery import TAXONOMY, Learned
from widgets import ErrorLine, ErrorsModel

ERRORS_SHOWN = 50


def errors(state: AgentState) -> ErrorsModel:
    """Open failures, then settled ones, the newest first; of a step that failed again and again the last."""
    settled = [failure for failure in reversed(state.failures) if failure.resolved]
    shown = (open_failures(state) + settled)[:ERRORS_SHOWN]
    return ErrorsModel(tuple(_error(state, failure) for failure in shown))


def open_failures(state: AgentState) -> list[Failure]:
    """What is wrong now: the newest open failure of each step, or of each goal where no step is concerned."""
    newest: dict[tuple[str, str], Failure] = {}
    for failure in reversed(state.failures):
        if not failure.resolved:
            newest.setdefault((failure.goal, failure.step), failure)
    return list(newest.values())


def _error(state: AgentState, failure: Failure) -> ErrorLine:
    waits = state.intervention is not None and (
        failure.step == state.intervention.step and failure.goal == state.intervention.goal
    )
    return ErrorLine(
        id=failure.event,
        kind=failure.kind.value,
        subject=failure.subject,
        message=failure.message,
        strategy=failure.strategy.value if failure.strategy else "",
        attempt=failure.attempt,
        of=failure.of if failure.strategy is Strategy.RETRY_WITH_DELAY else 0,
        delay_s=round(failure.delay_s, 1),
        resolved=failure.resolved,
        needs_operator=waits and not failure.resolved,
        next_at=_next_try(state, failure),
        tried=_tried(state, failure),
        rates=_rates(state, failure),
    )


def _next_try(state: AgentState, failure: Failure) -> str:
    """When recovery tries again what failed; empty when it waits for no time."""
    retry = state.retry
    if failure.resolved or retry is None or (retry.goal, retry.step) != (failure.goal, failure.step):
        return ""
    due = datetime.fromisoformat(retry.at) + timedelta(seconds=retry.delay_s)
    return due.strftime("%H:%M:%S")


def _tried(state: AgentState, failure: Failure) -> str:
    """Strategies that were tried on the same step or its goal's plan, with their outcomes, oldest first."""
    marks: dict[str, str] = {}
    for other in state.failures:
        same = other.step == failure.step or other.strategy in OF_GOALS
        if other.goal == failure.goal and same and other.strategy and other.succeeded is not None:
            marks[other.strategy] = marks.get(other.strategy, "") + ("✓" if other.succeeded else "✗")
    return ", ".join(f"{strategy} {outcomes}" for strategy, outcomes in marks.items())


def _rates(state: AgentState, failure: Failure) -> str:
    """How well the strategies that may answer such a failure have done so far."""
    learned = Learned(state.recovery_rates, state.resting, state.tick)
    known: list[str] = []
    for strategy, _tries in TAXONOMY[failure.kind].ladder:
        if strategy in OF_GOALS and not state.config.replans:
            continue
        until = learned.rests(failure.kind, strategy)
        rests = f" (rests until tick {until})" if until else ""
        known.append(f"{strategy} {learned.rate(failure.kind, strategy):.0%}{rests}")
    return ", ".join(known)
