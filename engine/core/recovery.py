"""Failures: one taxonomy for actions and plans, what an agent has under way, and the events of recovery."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from engine.core.journal import Payload
from engine.core.reasons import NONE, Reason
from engine.core.sandbox import SHELL_COMMAND, SHELL_TOOL
from engine.value import dataclass


class FailureKind(StrEnum):
    """What can go wrong; `engine.agent.recovery` says what answers each."""

    TOOL_UNAVAILABLE = "TOOL_UNAVAILABLE"
    TOOL_EXECUTION_ERROR = "TOOL_EXECUTION_ERROR"
    INVALID_PARAMETERS = "INVALID_PARAMETERS"
    RATE_LIMIT_ERROR = "RATE_LIMIT_ERROR"
    PERMISSION_ERROR = "PERMISSION_ERROR"
    NETWORK_ERROR = "NETWORK_ERROR"
    PLANNING_ERROR = "PLANNING_ERROR"
    GOAL_PARSE_ERROR = "GOAL_PARSE_ERROR"
    GOAL_MANAGEMENT_ERROR = "GOAL_MANAGEMENT_ERROR"
    DEPENDENCY_NOT_MET = "DEPENDENCY_NOT_MET"
    """What a step needs before it may start is not there: so far, this is its workspace snapshot."""
    CANCELLED = "CANCELLED"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"


class Strategy(StrEnum):
    """The six recovery strategies of mindX, and the master loop's."""

    RETRY_WITH_DELAY = "RETRY_WITH_DELAY"
    ALTERNATIVE_TOOL = "ALTERNATIVE_TOOL"
    SIMPLIFIED_APPROACH = "SIMPLIFIED_APPROACH"
    ESCALATE_TO_AGINT = "ESCALATE_TO_AGINT"
    FALLBACK_MANUAL = "FALLBACK_MANUAL"
    ABORT_GRACEFULLY = "ABORT_GRACEFULLY"
    DECIDE_ANEW = "DECIDE_ANEW"
    """The thinker, which decides step by step, is told what went wrong and continues without the step."""


OF_GOALS = frozenset({Strategy.SIMPLIFIED_APPROACH, Strategy.ESCALATE_TO_AGINT})
"""Strategies that change a goal's plan and not one step; how often they were tried counts for the goal."""
UNTRIED_RATE = 0.5
"""Success rate of a strategy of which nothing is known yet (seed parameter processing)."""


def rate_key(kind: FailureKind, strategy: Strategy) -> str:
    """Under which name it is kept how a strategy did against a kind of failure: `KIND/STRATEGY`."""
    return f"{kind}/{strategy}"


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that went wrong, and what recovery does about it."""

    kind: FailureKind
    message: Reason
    goal: str = ""
    step: str = ""
    action: str = ""
    subject: str = ""
    """What failed, in a few words (`run pip install httpx`)."""
    strategy: Strategy | None = None
    attempt: int = 0
    of: int = 0
    delay_s: float = 0.0
    succeeded: bool | None = None
    """Whether the strategy worked; None while that is open."""
    resolved: bool = False
    event: str = ""
    """Reference of the event that recorded it."""

    def open_under(self, strategy: Strategy, *, goal: str, step: str) -> bool:
        """Whether this strategy answers it and the outcome is open.

        Args:
            strategy: what was chosen.
            goal: the goal concerned.
            step: the step concerned; where the strategy changes the goal's plan, any step of the goal is.
        """
        same = self.goal == goal if strategy in OF_GOALS else (self.goal, self.step) == (goal, step)
        return same and self.strategy is strategy and self.succeeded is None


@dataclass(frozen=True, slots=True)
class ActiveAction:
    """An action on its way through the pipeline."""

    id: str
    tool: str
    command: str
    args: dict[str, Any]
    actor: str
    step: str = ""
    goal: str = ""
    started: bool = False
    mutates: bool = False
    """Whether it may change something outside of the agent; known once it has started."""
    snapshot: str = ""
    """Workspace snapshot taken for it; empty before that, and where none is taken."""
    needs: Reason = NONE
    """Why it needs the operator whatever the rules say; empty where it does not."""
    request: bool = False
    """Whether it needs the operator's word on this very call: nothing that was allowed before answers it."""
    client: str = ""
    """The client that it is for; empty for the agent's own and the operator's."""
    attended: bool = False
    """Whether a client's call waits for the operator where it is asked about."""
    queued: str = ""
    """The event by which the operator or a client asked for it."""
    dropped: bool = False
    """Whether its client no longer wants it."""
    at: str = ""
    """When it was requested, then when it started."""
    event: str = ""

    @property
    def shell(self) -> bool:
        """True for the operator's shell."""
        return (self.tool, self.command, self.step) == (SHELL_TOOL, SHELL_COMMAND, "")


@dataclass(frozen=True, slots=True)
class Retry:
    """What recovery will try again: a failed step, or asking for a goal's plan."""

    step: str
    """Empty when the plan is asked for again."""
    attempt: int
    of: int
    delay_s: float
    event: str = ""
    goal: str = ""
    at: str = ""
    """When it was decided, from which the delay counts."""


@dataclass(frozen=True, slots=True)
class Intervention:
    """The operator's turn: the agent waits for a decision."""

    goal: str
    step: str
    """Empty when no step is concerned, such as after a planning failure."""
    reason: Reason
    kind: str = ""
    """Failure kind, empty when the operator opened it."""
    tried: tuple[Reason, ...] = ()
    """What recovery did before."""
    event: str = ""

    @property
    def unsaved(self) -> bool:
        """True when the step waits because the workspace could not be saved before it."""
        return self.kind == FailureKind.DEPENDENCY_NOT_MET


@dataclass(frozen=True, slots=True)
class OperatorRequest:
    """A tool call that the operator or a client asked for and that has not started."""

    tool: str
    command: str
    args: dict[str, Any]
    actor: str
    event: str = ""
    client: str = ""
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class OpenWorkflow:
    """A workflow that the agent began below that of its root goal, and has not ended."""

    id: str
    goal: str
    """The goal that it was begun for; whatever the agent turns to meanwhile, its end is that goal's."""


@dataclass(frozen=True, slots=True)
class Rewinding:
    """A rewind that has begun to change files and has not ended."""

    to: int
    """The version of the stream that is come back to."""
    what: str
    """A value of `engine.core.rewind.RewindScope`."""
    snapshot: str
    saved: str
    """Snapshot of the files as they were right before."""
    event: str = ""


class FailureRecorded(Payload, kind="failure.recorded"):
    """Something went wrong and was classified."""

    failure: FailureKind
    message: Reason
    subject: str = ""
    goal: str = ""
    step: str = ""
    action: str = ""
    escalated_from: str = ""
    """The sub-goal that handed this failure up; it was counted there."""


class RecoveryChosen(Payload, kind="recovery.chosen"):
    """What will be done about a failure."""

    failure: FailureKind
    strategy: Strategy
    goal: str = ""
    step: str = ""
    """Empty when the plan itself is what failed."""
    attempt: int = 1
    of: int = 1
    delay_s: float = 0.0
    why: Reason = NONE


class RecoveryEnded(Payload, kind="recovery.ended"):
    """Whether what was recovered succeeded: a step, the asking for a plan, or a goal planned anew."""

    failure: FailureKind
    strategy: Strategy
    goal: str = ""
    step: str = ""
    success: bool
    rests_until: int = 0
    """The tick until which the strategy is not chosen for this kind; 0 when it is not used up."""


class RecoveryHastened(Payload, kind="recovery.hastened"):
    """The operator wants what recovery waits with tried now."""

    goal: str


class InterventionOpened(Payload, kind="intervention.opened"):
    """The agent waits for the operator."""

    goal: str = ""
    step: str = ""
    reason: Reason
    failure: FailureKind | None = None
    tried: tuple[Reason, ...] = ()


class InterventionClosed(Payload, kind="intervention.closed"):
    """The operator decided."""

    resolution: Reason


class ThoughtRecorded(Payload, kind="thought.recorded"):
    """Something the agent says it thinks; without a model only what was computed."""

    text: str
    type: str = "inference"
    """What part it plays (`engine.core.memory.ThoughtType`)."""
    goal: str = ""
