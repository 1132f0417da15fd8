"""The kinds of events of failures, what is done about them, and what an agent says it thinks."""

from __future__ import annotations

from typing import ClassVar

from engine.domain.failure import FailureKind, Strategy
from engine.journal.payload import Payload


class FailureRecorded(Payload):
    """Something went wrong and was classified."""

    kind: ClassVar[str] = "failure.recorded"
    failure: FailureKind
    message: str
    subject: str = ""
    goal: str = ""
    step: str = ""
    action: str = ""
    escalated_from: str = ""
    """The sub-goal that handed this failure up; it was counted there."""


class RecoveryChosen(Payload):
    """What will be done about a failure."""

    kind: ClassVar[str] = "recovery.chosen"
    failure: FailureKind
    strategy: Strategy
    goal: str = ""
    step: str = ""
    """Empty when the plan itself is what failed."""
    attempt: int = 1
    of: int = 1
    delay_s: float = 0.0
    why: str = ""


class RecoveryEnded(Payload):
    """Whether what was recovered succeeded: a step, the asking for a plan, or a goal planned anew."""

    kind: ClassVar[str] = "recovery.ended"
    failure: FailureKind
    strategy: Strategy
    goal: str = ""
    step: str = ""
    success: bool
    rests_until: int = 0
    """The tick until which the strategy is not chosen for this kind; 0 when it is not used up."""


class RecoveryHastened(Payload):
    """The operator wants what recovery waits with tried now."""

    kind: ClassVar[str] = "recovery.hastened"
    goal: str


class InterventionOpened(Payload):
    """The agent waits for the operator."""

    kind: ClassVar[str] = "intervention.opened"
    goal: str = ""
    step: str = ""
    reason: str
    failure: FailureKind | None = None
    tried: tuple[str, ...] = ()


class InterventionClosed(Payload):
    """The operator decided."""

    kind: ClassVar[str] = "intervention.closed"
    resolution: str


class ThoughtRecorded(Payload):
    """Something the agent says it thinks; without a model only what was computed."""

    kind: ClassVar[str] = "thought.recorded"
    text: str
    type: str = "inference"
    """What part it plays (`engine.domain.memory.ThoughtType`)."""
    goal: str = ""
