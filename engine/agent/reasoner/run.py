"""How far a reasoner continues at a time, and what it did meanwhile.

Breakpoints on what a reasoner does, believes, pursues, chooses and fails at.

How far the operator lets a reasoner step, and whether it has come there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from engine.bdi import trace
from engine.bdi.agent import BdiAgent
from engine.bdi.breakpoints import Breakpoint, Breakpoints, Kind
from engine.bdi.errors import ProgramError
from engine.bdi.intentions import Message
from engine.bdi.parser import parse_literal
from engine.bdi.printer import SHOWN
from engine.bdi.rewriting import instantiated
from engine.bdi.terms import Struct
from engine.bdi.trace import ActionRequested, Change, IntentionView, TraceEvent
from engine.bdi.unification import unify
from engine.core.goals import GoalEnded, GoalStatus
from engine.core.reasoner import EndedIntention, MindBreakpoint, Stride, UnhandledFailure, WantedAction
from engine.core.reasons import Reason
from engine.core.recovery import FailureKind, FailureRecorded
from engine.value import asdict, dataclass, field, replace

STEP = "step"
"""A breakpoint on an external action, such as `move(_)`."""
LABELLED = "label"
"""Stands for the breakpoint of a plan whose own label says `[breakpoint]`."""


@dataclass(frozen=True, slots=True)
class BreakpointReached:
    """A breakpoint that the reasoner came to."""

    breakpoint: str
    what: str


def check_pattern(on: str, pattern: str) -> str:
    """What is wrong with a pattern; empty when it can be used."""
    try:
        if on == STEP:
            parse_literal(pattern, "the action")
        else:
            Breakpoint(Kind(on), pattern)
    except (ProgramError, ValueError) as error:
        return str(error)
    return ""


class BreakpointWatch:
    """The breakpoints that count now."""

    def __init__(self) -> None:
        self._known: dict[str, MindBreakpoint] = {}
        self._compiled: dict[Breakpoint, list[str]] = {}
        self._mind = Breakpoints()
        self._steps: dict[str, Struct] = {}

    @property
    def known(self) -> tuple[MindBreakpoint, ...]:
        """All breakpoints, those that are switched off too."""
        return tuple(self._known.values())

    def change(self, item: MindBreakpoint, *, cleared: bool) -> None:
        """Set a breakpoint, switch it on or off, or clear it."""
        self._known.pop(item.id, None)
        if not cleared:
            self._known[item.id] = item
        self._arrange(each for each in self._known.values() if each.enabled)

    def _arrange(self, counting: Iterable[MindBreakpoint]) -> None:
        self._steps, self._compiled = {}, {}
        for counted in counting:
            if counted.on == STEP:
                self._steps[counted.id] = parse_literal(counted.pattern)
            else:
                self._compiled.setdefault(Breakpoint(Kind(counted.on), counted.pattern), []).append(
                    counted.id
                )
        self._mind = Breakpoints(self._compiled)

    def reached(self, records: Sequence[TraceEvent]) -> tuple[BreakpointReached, ...]:
        """The breakpoints that these records come to, each once."""
        texts: dict[str, str] = {}
        for hit in self._mind.hits(records):
            names = self._compiled[hit.breakpoint] if hit.breakpoint is not None else [LABELLED]
            for name in names:
                texts.setdefault(name, hit.words)
        for record in records if self._steps else ():
            if isinstance(record, ActionRequested) and len(record.action) <= SHOWN:
                action = parse_literal(record.action)
                for name, pattern in self._steps.items():
                    if unify(instantiated(pattern), instantiated(action), []):
                        texts.setdefault(name, f"{record.action} is about to run")
        return tuple(BreakpointReached(name, what) for name, what in texts.items())


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
class ReasonerRun:
    """A part of a reasoner's life between two events of the journal."""

    stride: Stride | None = None
    """How far the operator lets it step; None when it runs freely."""
    poise: bool = False
    """Go on only until it stands right before a body step, and run none."""
    steps_left: int | None = None
    """Body steps after which it must not continue; None when they are not counted."""
    traced: bool = False
    """Whether every trace record is kept."""
    open: bool = True
    """False when something has happened after which it must not continue."""
    phases: int = 0
    steps: int = 0
    stride_over: bool = False
    records: list[TraceEvent] = field(default_factory=list)
    wanted: list[WantedAction] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    reached: list[BreakpointReached] = field(default_factory=list)
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

    def reach(self, reached: Iterable[BreakpointReached]) -> None:
        """Take in breakpoints that it came to, each once."""
        known = {hit.breakpoint for hit in self.reached}
        self.reached += [hit for hit in reached if hit.breakpoint not in known]

    def say(self, text: str) -> None:
        """Take in a line that the program prints."""
        if len(self.said) < SAID_LIMIT:
            self.said.append(clipped(text))
        else:
            self.unsaid += 1

    def join(self, earlier: ReasonerRun) -> None:
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
    run: ReasonerRun, tags: Mapping[int, str], open_goals: Iterable[str], alive: Collection[str]
) -> tuple[GoalEnded, ...]:
    """The ends of the goals that are pursued no longer.

    Args:
        run: what has happened.
        tags: the goals that intentions pursue, by intention; ended ones included.
        open_goals: ids of goals that were still pursued before.
        alive: ids of goals that still are.
    """
    ends: list[GoalEnded] = []
    for goal in open_goals:
        if goal in alive:
            continue
        ended = next((end for end in run.ended if tags.get(end.intention) == goal), None)
        if ended is not None and ended.change == Change.FINISHED:
            ends.append(GoalEnded(goal=goal, status=GoalStatus.ACHIEVED))
            continue
        why = [failure.message for failure in run.failures if tags.get(failure.intention, goal) == goal]
        reason = why[-1] if why else (ended.reason if ended and ended.reason else Reason("goal.lost"))
        ends.append(GoalEnded(goal=goal, status=GoalStatus.FAILED, reason=reason))
    return tuple(ends)


def failure_of(failed: UnhandledFailure, goal: str) -> FailureRecorded:
    """A failure that no plan caught, for the journal."""
    return FailureRecorded(
        failure=_FAILURES.get(failed.error, FailureKind.UNKNOWN_ERROR),
        message=Reason("goal.failed", failure=failed.error, why=failed.message),
        subject=failed.goal,
        goal=goal,
    )


_FAILURES = {
    "action_failed": FailureKind.TOOL_EXECUTION_ERROR,
    "no_relevant": FailureKind.PLANNING_ERROR,
    "no_applicable": FailureKind.PLANNING_ERROR,
    "pgp_failed": FailureKind.PLANNING_ERROR,
}


class StrideTracker:
    """The present stride of a reasoner."""

    def __init__(self, agent: BdiAgent) -> None:
        self._agent = agent
        self.taken = 0
        """Body steps of the stepped intention in the present stride."""
        self.by_step = False
        """Whether the operator let the reasoner run one body step when it last went on."""
        self._granted = 0
        """Strides that the operator allowed and that are not over."""

    def grant(self) -> None:
        """Take in that the operator allowed another stride; it begins when those before it are over."""
        if not self._granted:
            self.taken = 0
        self._granted += 1

    def end(self) -> None:
        """Take in that a stride is over."""
        self._granted = max(0, self._granted - 1)

    def withdraw(self) -> None:
        """Take in that no stride is allowed any more."""
        self._granted = 0

    def at_rest(self, stride: Stride) -> bool:
        """Whether nothing more follows from a stride, as the reasoner waits."""
        if not self.taken or stride.scope == "step":
            return self.taken > 0
        stepped = self._agent.intentions.get(stride.intention)
        return stepped is None or bool(stepped.suspended) or self.arrived(stride)

    def arrived(self, stride: Stride) -> bool:
        """Whether the reasoner has come as far as the operator let it step."""
        if not self.taken:
            return False
        if stride.scope == "step":
            return True
        stepped = self._agent.intentions.get(stride.intention)
        if stepped is None:
            return True
        if stepped.event is not None or stepped.pending is not None or len(stepped.frames) > stride.depth:
            return False
        # A frame that has taken the place of others stands for them.
        return len(stepped.frames) + sum(frame.collapsed for frame in stepped.frames) <= stride.depth
