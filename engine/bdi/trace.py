"""What a running agent reports: a typed record for each change, and frozen values of its intentions."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from engine.bdi.errors import Position
from engine.value import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """Common to all: which agent, in which cycle."""

    agent: str
    cycle: int


@dataclass(frozen=True, slots=True)
class BeliefAdded(Record):
    """A belief is new, or has a new source or annotation."""

    belief: str
    """With the annotations that came."""


@dataclass(frozen=True, slots=True)
class BeliefRemoved(Record):
    """A belief is gone, or has lost a source."""

    belief: str


@dataclass(frozen=True, slots=True)
class EventQueued(Record):
    """An event waits to be handled."""

    event: str
    intention: int
    """The intention that waits for it; 0 for an external event."""


@dataclass(frozen=True, slots=True)
class EventSelected(Record):
    """The cycle handles this event."""

    event: str
    intention: int


@dataclass(frozen=True, slots=True)
class EventDropped(Record):
    """An event had no plan, or its intention went away."""

    event: str
    reason: str


@dataclass(frozen=True, slots=True)
class Guard:
    """One condition of a context, and whether it held alone, with the bindings of the event."""

    condition: str
    holds: bool


@dataclass(frozen=True, slots=True)
class OptionConsidered(Record):
    """A relevant plan and whether its context held; where it did not, which conditions did."""

    event: str
    plan: str
    applicable: bool
    guards: tuple[Guard, ...] = ()
    reason: str = ""
    """Why the context could not be evaluated, where that is so."""


@dataclass(frozen=True, slots=True)
class PlanSelected(Record):
    """This plan handles the event."""

    event: str
    plan: str
    intention: int
    breakpoint: bool = False
    """True when the plan's label says `[breakpoint]`."""


class Change(StrEnum):
    """What happened to an intention."""

    CREATED = "created"
    UPDATED = "updated"
    """A plan was put on its stack."""
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    DROPPED = "dropped"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class IntentionChanged(Record):
    """An intention came, went or waits."""

    intention: int
    change: Change
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StepRun(Record):
    """The cycle ran this body step."""

    intention: int
    plan: str
    step: str
    position: Position


@dataclass(frozen=True, slots=True)
class StepSucceeded(Record):
    """A body step is through, with its sub-goal or action if it had one."""

    intention: int
    plan: str
    at: int
    """Its place in the plan's code: that in the body, where the body has no blocks."""
    step: str


@dataclass(frozen=True, slots=True)
class StepFailed(Record):
    """A body step failed of itself, not because a plan above it on the stack did."""

    intention: int
    plan: str
    at: int
    step: str
    error: str
    message: str


@dataclass(frozen=True, slots=True)
class PlanFinished(Record):
    """A plan's body came to its end."""

    intention: int
    plan: str
    event: str
    depth: int
    """Plans below it on the stack."""


@dataclass(frozen=True, slots=True)
class TailCall(Record):
    """The last step's goal takes its plan's place on the stack; it is through when that goal is achieved."""

    intention: int
    plan: str
    at: int
    event: str
    depth: int


@dataclass(frozen=True, slots=True)
class GoalAchieved(Record):
    """A goal's plan came to its end."""

    goal: str
    intention: int


@dataclass(frozen=True, slots=True)
class GoalFailed(Record):
    """A goal failed; `handled` when a failure plan takes over."""

    goal: str
    intention: int
    error: str
    message: str
    handled: bool
    kind: str = "!"
    """`!` or `?`."""


@dataclass(frozen=True, slots=True)
class ActionRequested(Record):
    """An external action was given to the environment."""

    request: int
    action: str
    intention: int


@dataclass(frozen=True, slots=True)
class ActionFeedback(Record):
    """The environment answered."""

    request: int
    success: bool
    reason: str


@dataclass(frozen=True, slots=True)
class MessageReceived(Record):
    """A message was taken from the mailbox."""

    sender: str
    performative: str
    content: str


@dataclass(frozen=True, slots=True)
class MessageSent(Record):
    """A message was given to the host."""

    receiver: str
    performative: str
    content: str


@dataclass(frozen=True, slots=True)
class PlanAdded(Record):
    """The plan library has one more plan."""

    plan: str
    text: str


@dataclass(frozen=True, slots=True)
class PlanRemoved(Record):
    """The plan library has one plan less."""

    plan: str


TraceEvent: TypeAlias = Record


@dataclass(frozen=True, slots=True)
class PendingStep:
    """The body step that runs next."""

    intention: int
    goal: str
    plan: str
    step: str
    source: str
    """Where the plan's text came from."""
    position: Position


@dataclass(frozen=True, slots=True)
class ItemView:
    """One line of a plan's body."""

    text: str
    depth: int
    """Blocks around it."""
    current: bool
    """True for the step that runs next, or whose sub-goal is being pursued."""
    position: Position


@dataclass(frozen=True, slots=True)
class FrameView:
    """One plan being carried out."""

    goal: str
    plan: str
    items: tuple[ItemView, ...]
    bindings: tuple[tuple[str, str], ...]
    """Variables that have a value, with it."""
    collapsed: int
    """Calls of the same goal whose place this one has taken."""


@dataclass(frozen=True, slots=True)
class IntentionView:
    """One intention, its outermost goal first."""

    id: int
    state: str
    """`running`, `suspended`, `waiting for an event`, or what it is pending on."""
    reason: str
    frames: tuple[FrameView, ...]
    left_out: int = 0
    """Frames between the first and the last that are not shown."""
    tag: str = ""
    """The host's name for its outermost goal."""
