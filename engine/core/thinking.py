"""What is asked of a thinker, and what it may answer.

The kinds of events by which models are asked: what they say as it comes, and each call whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Protocol

from engine.core.actions import SandboxSession
from engine.core.goals import Goal
from engine.core.journal import Payload
from engine.core.plan import PlanStep, Uncovered
from engine.core.reasons import Reason, free_text
from engine.core.recovery import FailureKind
from engine.core.restored import RestoredText
from engine.value import dataclass

BELIEF_LIMIT = 600
"""Characters of one belief's value that a prompt shows."""
FAILED_PLANNING = "FAILED_PLANNING"
"""The status of planning that came to nothing, repairs included."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A plan is wanted for a goal."""

    goal: Goal
    session: SandboxSession = field(default_factory=SandboxSession)
    beliefs: Mapping[str, Any] = field(default_factory=dict)
    """Belief values by key."""
    done: tuple[str, ...] = ()
    """What an earlier plan for this goal has done already, a line a step."""
    trouble: tuple[str, ...] = ()
    """What went wrong with it, oldest first; such a request asks for the rest of the goal only."""
    advice: str = ""
    """What may help against the last of these."""
    guidance: tuple[str, ...] = ()
    """What the operator has to say, each only once."""
    findings: tuple[str, ...] = ()
    """What looking back has found, each only once."""
    restored: tuple[RestoredText, ...] = ()
    """What the operator brought back."""


@dataclass(frozen=True, slots=True)
class PlanProposal:
    """A thinker's answer to a `PlanRequest`.

    Steps carry ids local to the proposal (`1`, `2`, …) and `depends_on` in those ids;
    the agent gives them lasting ids when it adopts the plan.
    """

    steps: tuple[PlanStep, ...] = ()
    uncovered: tuple[Uncovered, ...] = ()
    """Non-empty when the plan would not do all that the goal asks; such a plan is never adopted silently."""
    thinker: str = ""


class DecisionKind(StrEnum):
    """What a thinker may decide to do next."""

    CALL = "call"
    """Call a tool."""
    THINK = "think"
    """Write a thought down, and decide again."""
    PLAN = "plan"
    """Put other steps in place of those that have not run."""
    SUBGOAL = "subgoal"
    """Adopt a goal that this one waits for."""
    FINISH = "finish"
    """What was to be done is done."""
    GIVE_UP = "give_up"
    """It cannot be done."""
    ASK = "ask"
    """Ask the operator."""
    OUTLINE = "outline"
    """Say what it means to do: abstract steps, in place of those of its last outline."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of a thinker; which fields count depends on its kind."""

    kind: DecisionKind
    text: str = ""
    """The thought, the sub-goal, the result, the reason, the question; beside a call why it is made."""
    tool: str = ""
    command: str = ""
    args: dict[str, Any] = field(default_factory=dict)
    thought_type: str = "inference"
    steps: tuple[PlanStep, ...] = ()
    """With ids local to the decision, as in a `PlanProposal`; other ids are those of the plan."""
    criteria: tuple[str, ...] = ()
    """Of a sub-goal: what must be shown to hold."""
    evidence: tuple[str, ...] = ()
    """Of an end: for each criterion of the goal in turn the id of the step that shows it."""
    deferred: tuple[str, ...] = ()
    """Calls that were asked for in the same breath; only the first is made, and the thinker is told."""


@dataclass(frozen=True, slots=True)
class RecentAction:
    """What an agent did lately, with its result."""

    step: str
    tool: str
    command: str
    args: dict[str, Any]
    ok: bool
    answer: str
    """The answer as JSON, cut to its head where it is long."""
    event: str = ""
    action: str = ""
    """Its id."""


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A decision is wanted about an abstract step of a goal."""

    goal: Goal
    step: PlanStep
    session: SandboxSession = field(default_factory=SandboxSession)
    beliefs: Mapping[str, Any] = field(default_factory=dict)
    above: tuple[str, ...] = ()
    """The goals that this one serves, the topmost first."""
    plan: tuple[str, ...] = ()
    """The steps of its plan, a line each: what is done and what is still to come."""
    recent: tuple[RecentAction, ...] = ()
    """What was done lately, oldest first, with the answers."""
    trouble: tuple[str, ...] = ()
    """What went wrong and is not settled, oldest first."""
    advice: str = ""
    """What may help against the last of these."""
    guidance: tuple[str, ...] = ()
    """What the operator has to say to this decision."""
    findings: tuple[str, ...] = ()
    """What looking back on the work has found."""
    restored: tuple[RestoredText, ...] = ()
    """What the operator brought back."""
    may_muse: bool = True
    """False when it has thought long enough and must do something."""


class ThinkingError(Exception):
    """A thinker could not answer; the message says why and what to do."""

    def __init__(
        self, kind: FailureKind, message: str, retry_after_s: float = 0.0, *, held: bool = False
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = free_text(message)
        self.retry_after_s = retry_after_s
        """Seconds to wait before it is worth asking again; 0 when it was not said."""
        self.held = held
        """True when a budget holds the agent: nothing failed, and it is asked again when it continues."""


def invalid(kind: FailureKind, problems: Iterable[Reason]) -> ThinkingError:
    """The failure of an answer in which something is wrong."""
    return ThinkingError(kind, Reason("plan.problems", problems=tuple(problems)))


class Thinker(Protocol):
    """Who decides for an agent."""

    @property
    def name(self) -> str:
        """`procedural`, `claude`, `recorded`."""

    @property
    def free(self) -> bool:
        """True when thinking costs neither money nor noticeable time, so that a paused agent may plan."""

    async def plan(self, request: PlanRequest) -> PlanProposal:
        """Propose steps for a goal; what it cannot plan it lists as uncovered.

        Cancelling the task that plans stops it at once.

        Raises:
            ThinkingError: it could not be asked, or did not answer.
        """

    async def decide(self, request: DecisionRequest) -> Decision:
        """Decide what to do next about an abstract step.

        Raises:
            ThinkingError: it could not be asked, or did not answer, or cannot think about anything.
        """


class ModelSaid(Payload, kind="model.said", external=True):
    """A piece of a model's answer, as it came."""

    stream: str
    """`text`, `thinking` or `tool input`; `wait` before a call is made again: kind of error, seconds."""
    text: str
    skipped: int = 0
    """Characters before this piece that were not kept."""


class ModelCalled(Payload, kind="model.called", external=True):
    """A call of a model is over: what was sent, and its result; no key is in either."""

    goal: str = ""
    purpose: str = ""
    """`plan`, `plans for GOAL`, …"""
    model: str
    request: dict[str, Any]
    """As the Messages API takes it."""
    answer: dict[str, Any] | None = None
    error: str = ""
    """Why there is no answer; the answer then holds what had come of it, when something had."""
    error_kind: str = ""
    partial: bool = False
    tokens: int = 0
    cost_usd: float | None = None
    """None where the price is unknown."""
    shares: tuple[tuple[str, int], ...] = ()
    """Estimated tokens of each named block of the prompt, in the order sent."""
    window: int = 0
    """Tokens that the model holds at a time."""
    duration_ms: int = 0
    retries: int = 0


class ThinkingFailed(Payload, kind="plan.thinking_failed"):
    """A thinker gave no plan, or no decision."""

    goal: str
    step: str = ""
    """The step about which it was to decide; empty where a plan was asked for."""
    failure: FailureKind
    message: Reason
    retry_after_s: float = 0.0


class DecisionAsked(Payload, kind="decision.asked"):
    """A thinker is asked what to do next; its answer comes later."""

    goal: str
    step: str
    thinker: str


class DecisionMade(Payload, kind="decision.made"):
    """A thinker decided what to do next."""

    goal: str
    step: str
    thinker: str
    decision: Decision
