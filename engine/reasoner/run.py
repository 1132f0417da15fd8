"""How far a reasoner goes on at a time, and what it did meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from engine.bdi import trace
from engine.bdi.messages import Message
from engine.bdi.trace import Change, TraceEvent
from engine.domain.failure import FailureKind
from engine.domain.goal import GoalStatus
from engine.domain.reasoning import EndedIntention, Stride, UnhandledFailure, WantedAction
from engine.journal.events import FailureRecorded, GoalEnded
from engine.reasoner.breakpoints import Reached

TRACE_LIMIT = 400
"""Trace records after which a run is cut, so that one event does not grow without end."""
SAID_LIMIT = 200
"""Lines printed in one run that are kept."""


@dataclass(slots=True)
class Run:
    """A part of a reasoner's life between two events of the journal."""

    stride: Stride | None = None
    """How far the operator lets it step; None when it runs freely."""
    poise: bool = False
    """Go on only until it stands right before a body step, and run none."""
    steps_left: int | None = None
    """Body steps after which it must not go on; None when they are not counted."""
    open: bool = True
    """False when something has happened after which it must not go on."""
    phases: int = 0
    steps: int = 0
    stride_over: bool = False
    records: list[TraceEvent] = field(default_factory=list)
    wanted: list[WantedAction] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    reached: list[Reached] = field(default_factory=list)
    """Breakpoints that it came to."""
    looked_at: int = 0
    """Records that were compared with breakpoints."""
    said: list[str] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)
    """Intentions that have changed."""
    ended: list[EndedIntention] = field(default_factory=list)
    failures: list[UnhandledFailure] = field(default_factory=list)

    def note(self, record: TraceEvent) -> None:
        """Take a trace record in."""
        self.records.append(record)
        intention = getattr(record, "intention", 0)
        if intention:
            self.touched.add(intention)
        match record:
            case trace.StepRun():
                self.steps += 1
            case trace.IntentionChanged(change=Change.FINISHED | Change.DROPPED):
                self.ended.append(EndedIntention(record.intention, record.change.value, record.reason))
            case trace.GoalFailed(handled=False):
                failed = UnhandledFailure(record.goal, record.intention, record.error, record.message)
                self.failures.append(failed)

    @property
    def full(self) -> bool:
        """True when what it did fills an event."""
        return len(self.records) >= TRACE_LIMIT or len(self.said) >= SAID_LIMIT


def as_json(record: TraceEvent) -> dict[str, Any]:
    """A trace record for the journal: its type, and its fields without the agent's name."""
    fields = asdict(record)
    del fields["agent"]
    return {"record": type(record).__name__, **fields}


def outcomes(
    run: Run, tags: Mapping[int, str], open_goals: Iterable[str], alive: Collection[str]
) -> tuple[GoalEnded, ...]:
    """The ends of the goals that are pursued no longer.

    Args:
        run: what has happened.
        tags: the goals that intentions pursue, by intention; ended ones included.
        open_goals: ids of goals that were still pursued before.
        alive: ids of goals that still are.
    """
    found: list[GoalEnded] = []
    for goal in open_goals:
        if goal in alive:
            continue
        ended = next((one for one in run.ended if tags.get(one.intention) == goal), None)
        if ended is not None and ended.change == Change.FINISHED:
            found.append(GoalEnded(goal=goal, status=GoalStatus.ACHIEVED))
            continue
        why = [one.message for one in run.failures if tags.get(one.intention, goal) == goal]
        reason = why[-1] if why else (ended.reason if ended and ended.reason else "it was dropped")
        found.append(GoalEnded(goal=goal, status=GoalStatus.FAILED, reason=reason))
    return tuple(found)


def failure_of(failed: UnhandledFailure, goal: str) -> FailureRecorded:
    """A failure that no plan caught, for the journal."""
    return FailureRecorded(
        failure=_FAILURES.get(failed.error, FailureKind.UNKNOWN_ERROR),
        message=f"{failed.error}: {failed.message}",
        subject=failed.goal,
        goal=goal,
    )


_FAILURES = {
    "action_failed": FailureKind.TOOL_EXECUTION_ERROR,
    "no_relevant": FailureKind.PLANNING_ERROR,
    "no_applicable": FailureKind.PLANNING_ERROR,
    "pgp_failed": FailureKind.PLANNING_ERROR,
}
