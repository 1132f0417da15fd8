"""The kinds of events that only an agent with a reasoner has.

What goes into the reasoner is recorded, and how far it went on; what it did then follows, as it is
deterministic. `ReasonerAdvanced` says it all the same, so that a state can be had without a reasoner.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from engine.bdi.views import IntentionView
from engine.domain.reasoning import (
    EndedIntention,
    GeneratedPlan,
    HeldBelief,
    MindState,
    ProposedPlan,
    SentMessage,
    UnhandledFailure,
    WantedAction,
)
from engine.journal.payload import Payload


class ReasonerAdvanced(Payload):
    """The reasoner went on by some parts of its cycle, and stands here now."""

    kind: ClassVar[str] = "reasoner.advanced"
    phases: int
    """Parts of its cycle that it ran: sense, deliberate, act."""
    steps: int
    """Body steps among them."""
    mind: MindState
    intentions: tuple[IntentionView, ...] = ()
    """Those that are new or have changed."""
    ended: tuple[EndedIntention, ...] = ()
    believed: tuple[HeldBelief, ...] = ()
    """New beliefs, and those whose sources or annotations have changed."""
    forgotten: tuple[str, ...] = ()
    wanted: tuple[WantedAction, ...] = ()
    sent: tuple[SentMessage, ...] = ()
    said: tuple[str, ...] = ()
    """What it printed."""
    unsaid: int = 0
    """Lines that it printed after those."""
    failures: tuple[UnhandledFailure, ...] = ()
    failures_left_out: int = 0
    generated: tuple[GeneratedPlan, ...] | None = None
    """All plans that a model made and that it has now; None when that has not changed."""
    stride_over: bool = False
    """Whether it has come as far as the operator let it step."""
    trace: tuple[dict[str, Any], ...] = ()
    """Every change of beliefs, events and intentions, while tracing is on."""


class TimePassed(Payload):
    """A wait of the reasoner's is over; logical time is that of this event."""

    kind: ClassVar[str] = "reasoner.time_passed"
    external: ClassVar[bool] = True


class BeliefTold(Payload):
    """The operator gave the reasoner a belief, or took it away."""

    kind: ClassVar[str] = "reasoner.belief_told"
    literal: str
    removed: bool = False


class MessageHeard(Payload):
    """Another agent's reasoner sent a message."""

    kind: ClassVar[str] = "reasoner.message_heard"
    external: ClassVar[bool] = True
    sender: str
    performative: str
    content: str
    number: int
    answers: int = 0


class IntentionSteered(Payload):
    """The operator held an intention back, let it go on, or took it away."""

    kind: ClassVar[str] = "reasoner.intention_steered"
    intention: int
    how: Literal["suspend", "resume", "drop", "fail"]
    reason: str = ""


class MindBreakpointChanged(Payload):
    """A breakpoint on beliefs, goals, plans or errors was set, changed or cleared."""

    kind: ClassVar[str] = "reasoner.breakpoint_changed"
    breakpoint: str
    on: str = ""
    pattern: str = ""
    enabled: bool = True
    cleared: bool = False


class MindBreakpointHit(Payload):
    """The reasoner reached a breakpoint."""

    kind: ClassVar[str] = "reasoner.breakpoint_hit"
    breakpoint: str
    what: str


class TracingSet(Payload):
    """Every change of the reasoner's is journaled from now on, or no longer."""

    kind: ClassVar[str] = "reasoner.tracing_set"
    on: bool


class GenerationBegun(Payload):
    """A goal needs plans that the agent does not have."""

    kind: ClassVar[str] = "generation.begun"
    generation: str
    goal: str
    trigger: Literal["reactive", "on demand", "proactive"]


class GenerationAsked(Payload):
    """A model is asked for plans."""

    kind: ClassVar[str] = "generation.asked"
    generation: str
    attempt: int
    model: str
    system: str
    prompt: str
    config: dict[str, str | float]


class GenerationAnswered(Payload):
    """The model answered, or did not."""

    kind: ClassVar[str] = "generation.answered"
    external: ClassVar[bool] = True
    generation: str
    answer: str = ""
    error: str = ""
    """Why there is no answer."""
    model: str = ""
    tokens: int = 0
    duration_ms: int = 0


class GenerationReviewed(Payload):
    """An answer was read and its plans were checked."""

    kind: ClassVar[str] = "generation.reviewed"
    external: ClassVar[bool] = True
    generation: str
    plans: tuple[ProposedPlan, ...]
    problems: tuple[str, ...] = ()
    failure: str = ""
    """Why the answer is of no use; empty when it is."""
    repair: str = ""
    """What the model is told so that it may mend its answer."""
    inventions: tuple[tuple[str, str, str], ...] = ()
    """Kind, template and purpose of the goals and beliefs that the answer makes up."""


class PlansHeld(Payload):
    """Plans wait for the operator's approval."""

    kind: ClassVar[str] = "generation.held"
    generation: str


class PlansDecided(Payload):
    """The operator said what becomes of plans that wait for approval."""

    kind: ClassVar[str] = "generation.decided"
    generation: str
    decision: Literal["approve", "reject", "again"]
    text: str = ""


class GenerationSettled(Payload):
    """Plans were installed and whoever waited for them goes on; or none could be had."""

    kind: ClassVar[str] = "generation.settled"
    generation: str
    plans: tuple[str, ...] = ()
    """Those to be installed, as `.asl`."""
    model: str = ""
    approved: bool = False
    """Whether the operator said so."""
    reason: str = ""
    """Why there are none, or why some of them cannot be installed."""
    inventions: tuple[tuple[str, str, str], ...] = ()
