"""How far a reasoner goes on at a time, and what it did meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any

from engine.bdi import trace
from engine.bdi.messages import Message
from engine.bdi.trace import Change, TraceEvent
from engine.bdi.views import IntentionView
from engine.domain.failure import FailureKind
from engine.domain.goal import GoalStatus
from engine.domain.reasoning import EndedIntention, Stride, UnhandledFailure, WantedAction
from engine.journal.events import FailureRecorded, GoalEnded
from engine.reasoner.breakpoints import Reached

TRACE_LIMIT = 1_000
"""Trace records after which a run is cut, so that one event does not grow without end."""
SENT_LIMIT = 200
"""Messages after which a run is cut."""
SAID_LIMIT = 200
"""Lines printed in one run that are kept."""
FAILURES_LIMIT = 10
"""Failures that no plan caught in one run that are kept."""
TEXT_LIMIT = 2_000
"""Characters that the journal keeps of a text that is only shown."""


@dataclass(slots=True)
class Run:
    """A part of a reasoner's life between two events of the journal."""

    stride: Stride | None = None
    """How far the operator lets it step; None when it runs freely."""
    poise: bool = False
    """Go on only until it stands right before a body step, and run none."""
    steps_left: int | None = None
    """Body steps after which it must not go on; None when they are not counted."""
    traced: bool = False
    """Whether every trace record is kept."""
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
    said: list[str] = field(default_factory=list)
    unsaid: int = 0
    """Lines that were printed beyond those that are kept."""
    touched: set[int] = field(default_factory=set)
    """Intentions that have changed."""
    stepped: int = 0
    """The intention whose body step ran last."""
    ended: list[EndedIntention] = field(default_factory=list)
    failures: list[UnhandledFailure] = field(default_factory=list)

    def note(self, record: TraceEvent) -> None:
        """Take a trace record in."""
        if self.traced:
            self.records.append(record)
        intention = getattr(record, "intention", 0)
        if intention:
            self.touched.add(intention)
        match record:
            case trace.StepRun():
                self.steps += 1
                self.stepped = intention
            case trace.IntentionChanged(change=Change.FINISHED | Change.DROPPED):
                self.ended.append(EndedIntention(record.intention, record.change.value, record.reason))
            case trace.GoalFailed(handled=False):
                goal, message = clipped(record.goal), clipped(record.message)
                self.failures.append(UnhandledFailure(goal, record.intention, record.error, message))

    def reach(self, reached: Iterable[Reached]) -> None:
        """Take in breakpoints that it came to, each once."""
        known = {one.breakpoint for one in self.reached}
        self.reached += [one for one in reached if one.breakpoint not in known]

    def say(self, text: str) -> None:
        """Take in a line that the program prints."""
        if len(self.said) < SAID_LIMIT:
            self.said.append(clipped(text))
        else:
            self.unsaid += 1

    def join(self, earlier: Run) -> None:
        """Take in what events from outside changed before the first phase."""
        self.records[:0] = earlier.records
        self.said[:0] = earlier.said
        self.touched |= earlier.touched
        self.ended[:0] = earlier.ended
        self.failures[:0] = earlier.failures
        self.reach(earlier.reached)

    @property
    def full(self) -> bool:
        """True when what it did fills an event."""
        return len(self.records) >= TRACE_LIMIT or len(self.messages) >= SENT_LIMIT


def clipped(text: str) -> str:
    """A text to be shown; of a long one the beginning, and what tells it from others that begin so."""
    if len(text) <= TEXT_LIMIT:
        return text
    digest = sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{text[:TEXT_LIMIT]}… ({len(text)} characters, {digest})"


def in_brief(view: IntentionView) -> IntentionView:
    """The view with long values clipped."""
    frames = tuple(
        replace(
            frame,
            goal=clipped(frame.goal),
            bindings=tuple((name, clipped(value)) for name, value in frame.bindings),
        )
        for frame in view.frames
    )
    return replace(view, reason=clipped(view.reason), frames=frames)


def as_json(record: TraceEvent) -> dict[str, Any]:
    """A trace record for the journal: its type, and its fields without the agent's name."""
    fields = asdict(record)
    del fields["agent"]
    return {
        "record": type(record).__name__,
        **{name: clipped(value) if isinstance(value, str) else value for name, value in fields.items()},
    }


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
