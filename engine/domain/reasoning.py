"""What a reasoner shows of itself, frozen at an event: the values of an AgentSpeak(L) agent's state."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from engine.bdi.views import PendingStep

REASONER = "asl_agent"
"""The type of agents whose goals are pursued by an AgentSpeak(L) program."""
REQUEST = "r"
"""The step of an action that an intention asked for is this and the request's number."""


@dataclass(frozen=True, slots=True)
class Stride:
    """How far a paused agent may go: one action or body step, or until it stands where it is to stand."""

    scope: Literal["step", "over", "out"] = "step"
    intention: int = 0
    """The intention that is stepped; 0 for whichever comes next."""
    depth: int = 0
    """It goes on until the intention has at most so many goals on its stack, collapsed ones counted."""
    goal: str = ""
    """Of an agent with plans: the goal that is stepped; out of it goes on until it has ended."""
    step: str = ""
    """Of an agent with plans: the step at which it begins; over it goes on until it has ended."""


@dataclass(frozen=True, slots=True)
class MindState:
    """How a reasoner stands between two parts of its cycle."""

    cycles: int = 0
    pending: PendingStep | None = None
    """The body step that runs next; None when no intention can run."""
    poised: bool = False
    """True when it stands right before that step."""
    idle: bool = False
    """True when only time, a percept, a message or feedback can give it something to do."""
    due_ms: float | None = None
    """Logical time at which a wait ends."""
    now_ms: float = 0.0
    """Logical time: milliseconds since the agent was created."""
    events: int = 0
    """Events that wait to be handled."""
    beliefs: int = 0
    intentions: int = 0
    """All of them; of many only some are shown."""
    plans: int = 0


@dataclass(frozen=True, slots=True)
class HeldBelief:
    """A belief of a reasoner, and where it comes from."""

    text: str
    """The literal without annotations."""
    sources: tuple[str, ...]
    """`percept`, `self`, or names of agents."""
    annotations: tuple[str, ...] = ()
    """Those that are no sources."""
    event: str = ""
    tick: int = 0


@dataclass(frozen=True, slots=True)
class WantedAction:
    """An external action that an intention waits for."""

    number: int
    text: str
    """As the program says it: `move(north)`."""
    tool: str
    command: str
    args: dict[str, Any]
    intention: int
    plan: str = ""
    refusal: str = ""
    """Why it cannot be called at all; empty when it can."""

    @property
    def step(self) -> str:
        """What stands for it where a plan step has its id."""
        return f"{REQUEST}{self.number}"


@dataclass(frozen=True, slots=True)
class EndedIntention:
    """An intention that is over."""

    intention: int
    change: str
    """`finished` or `dropped`."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class UnhandledFailure:
    """A goal that failed with no plan to catch it."""

    goal: str
    intention: int
    error: str
    message: str


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message of a reasoner to another agent's."""

    receiver: str
    performative: str
    content: str
    """As text; it can be read back."""
    number: int
    """Given by the sender; an answer names it."""
    answers: int = 0
    """Number of the question that this answers, 0 when it answers none."""


@dataclass(frozen=True, slots=True)
class MindBreakpoint:
    """Holds the reasoner where a belief, goal, plan or error comes up."""

    id: str
    on: str
    """`belief`, `goal`, `plan` or `error`."""
    pattern: str
    enabled: bool = True
    hits: int = 0
    event: str = ""


class GenerationStage(StrEnum):
    """How far the making of plans for a goal has come."""

    BEGUN = "begun"
    """A goal needs plans; nobody was asked yet."""
    ASKED = "asked"
    ANSWERED = "answered"
    REVIEWED = "reviewed"
    HELD = "held"
    """The operator is to approve."""
    DECIDED = "decided"
    """The operator has decided; what they said is about to be done."""
    INSTALLED = "installed"
    FAILED = "failed"

    @property
    def over(self) -> bool:
        """True when nothing more comes of it."""
        return self in (GenerationStage.INSTALLED, GenerationStage.FAILED)


@dataclass(frozen=True, slots=True)
class ProposedPlan:
    """A plan of an answer, with what is wrong with it."""

    text: str
    """As `.asl`."""
    reasons: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether it may be installed."""
        return not self.reasons


@dataclass(frozen=True, slots=True)
class GeneratedPlan:
    """A plan that a model made and that the agent has, with how far it has proved itself."""

    label: str
    goal: str
    text: str
    """As `.asl`."""
    model: str
    generation: str
    steps: int
    succeeded: int = 0
    """Steps that have worked at least once."""
    verified: bool = False
    """Whether its whole body has worked once."""


@dataclass(frozen=True, slots=True)
class Generation:
    """Plans being made for a goal, with the prompt and the answer that make them."""

    id: str
    goal: str
    """The event, such as `+!reach(home)`."""
    trigger: Literal["reactive", "on demand", "proactive"] = "reactive"
    stage: GenerationStage = GenerationStage.BEGUN
    attempt: int = 0
    model: str = ""
    system: str = ""
    prompt: str = ""
    answer: str = ""
    tokens: int = 0
    duration_ms: int = 0
    plans: tuple[ProposedPlan, ...] = ()
    problems: tuple[str, ...] = ()
    """What could not be read of the answer, and why it is of no use where that is so."""
    repair: str = ""
    """What the next prompt says about the last answer."""
    inventions: tuple[tuple[str, str, str], ...] = ()
    """Kind, template and purpose of the goals and beliefs that the answer makes up."""
    decision: str = ""
    """The operator's: `approve`, `reject` or `again`; empty when there is none."""
    decision_text: str = ""
    reason: str = ""
    """Why it failed, or the answer is of no use."""
    event: str = ""
    at: str = ""
