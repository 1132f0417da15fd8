"""What a reasoner shows of itself, frozen at an event; commands to it, and the events that only it has.

What goes into the reasoner is recorded, and how far it went on; what it did then follows, as it is
deterministic. `ReasonerAdvanced` says it all the same, so that a state can be had without a reasoner.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from engine.bdi.trace import IntentionView, PendingStep
from engine.core.command import Command
from engine.core.journal import Payload
from engine.core.reasons import NONE, Reason
from engine.value import dataclass

REASONER = "asl_agent"
"""The type of agents whose goals are pursued by an AgentSpeak(L) program."""
REQUEST = "r"
"""The step of an action that an intention asked for is this and the request's number."""


MIND = "@mind"
"""A snapshot of a reasoner's mind stands beside that of its agent's state under the agent's id and this."""
MIND_FORMAT = 3
"""Raised whenever the data change shape or a program would continue otherwise; older data are ignored."""


class ForgottenError(Exception):
    """A mind cannot be restored from its events; the message says where."""


@dataclass(frozen=True, slots=True)
class Stride:
    """How far a paused agent may go: one action or body step, or until it stands where it is to stand."""

    scope: Literal["step", "over", "out"] = "step"
    intention: int = 0
    """The intention that is stepped; 0 for whichever comes next."""
    depth: int = 0
    """It continues until the intention has at most so many goals on its stack, collapsed ones counted."""
    goal: str = ""
    """Of an agent with plans: the goal that is stepped; out of it continues until it has ended."""
    step: str = ""
    """Of an agent with plans: the step at which it begins; over it continues until it has ended."""


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
    """A goal needs plans; no model was asked yet."""
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
        """True when nothing more follows."""
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


class ReasonerAdvanced(Payload, kind="reasoner.advanced"):
    """The reasoner went on by some parts of its cycle, and stands here now."""

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


class ReasonerBusy(Payload, kind="reasoner.busy"):
    """The reasoner is in the middle of a part of its cycle; what comes now it takes in behind that."""


class ReasonerCut(Payload, kind="reasoner.cut"):
    """That part of its cycle was cut off, and the reasoner stands again where it stood before."""

    seconds: float
    """How long it had gone on."""


class TimePassed(Payload, kind="reasoner.time_passed", external=True):
    """A wait of the reasoner's is over; logical time is that of this event."""


class BeliefTold(Payload, kind="reasoner.belief_told"):
    """The operator gave the reasoner a belief, or took it away."""

    literal: str
    removed: bool = False


class MessageHeard(Payload, kind="reasoner.message_heard", external=True):
    """Another agent's reasoner sent a message."""

    sender: str
    performative: str
    content: str
    number: int
    answers: int = 0


class IntentionSteered(Payload, kind="reasoner.intention_steered"):
    """The operator held an intention back, let it continue, or took it away."""

    intention: int
    how: Literal["suspend", "resume", "drop", "fail"]
    reason: Reason = NONE


class MindBreakpointChanged(Payload, kind="reasoner.breakpoint_changed"):
    """A breakpoint on beliefs, goals, plans or errors was set, changed or cleared."""

    breakpoint: str
    on: str = ""
    pattern: str = ""
    enabled: bool = True
    cleared: bool = False


class MindBreakpointHit(Payload, kind="reasoner.breakpoint_hit"):
    """The reasoner reached a breakpoint."""

    breakpoint: str
    what: str


class TracingSet(Payload, kind="reasoner.tracing_set"):
    """Every change of the reasoner's is journaled from now on, or no longer."""

    on: bool


class GenerationBegun(Payload, kind="generation.begun"):
    """A goal needs plans that the agent does not have."""

    generation: str
    goal: str
    trigger: Literal["reactive", "on demand", "proactive"]


class GenerationAsked(Payload, kind="generation.asked"):
    """A model is asked for plans."""

    generation: str
    attempt: int
    model: str
    system: str
    prompt: str
    config: dict[str, str | float]


class GenerationAnswered(Payload, kind="generation.answered", external=True):
    """The model answered, or did not."""

    generation: str
    answer: str = ""
    error: str = ""
    """Why there is no answer."""
    model: str = ""
    tokens: int = 0
    duration_ms: int = 0


class GenerationReviewed(Payload, kind="generation.reviewed", external=True):
    """An answer was read and its plans were checked."""

    generation: str
    plans: tuple[ProposedPlan, ...]
    problems: tuple[str, ...] = ()
    failure: str = ""
    """Why the answer is of no use; empty when it is."""
    repair: str = ""
    """What the model is told so that it may mend its answer."""
    inventions: tuple[tuple[str, str, str], ...] = ()
    """Kind, template and purpose of the goals and beliefs that the answer makes up."""


class PlansHeld(Payload, kind="generation.held"):
    """Plans wait for the operator's approval."""

    generation: str


class PlansDecided(Payload, kind="generation.decided"):
    """The operator decided about plans that wait for approval."""

    generation: str
    decision: Literal["approve", "reject", "again"]
    text: str = ""


class GenerationSettled(Payload, kind="generation.settled"):
    """Plans were installed and whoever waited for them continues; or none could be had."""

    generation: str
    plans: tuple[str, ...] = ()
    """Those to be installed, as `.asl`."""
    model: str = ""
    approved: bool = False
    """Whether the operator said so."""
    reason: str = ""
    """Why there are none, or why some of them cannot be installed."""
    inventions: tuple[tuple[str, str, str], ...] = ()


class TellBelief(Command, do="tell_belief"):
    """Give a reasoner a belief, or take one away, whatever its sources."""

    literal: str = Field(min_length=1, max_length=10_000)
    removed: bool = False


class HearMessage(Command, do="hear_message"):
    """Take a message of an agent of another engine; one with other goals than a program's takes what is asked
    of it as a goal.
    """

    sender: str = Field(min_length=1, max_length=80)
    performative: str
    content: str = Field(min_length=1, max_length=1_000_000)
    number: int = 0
    answers: int = 0


class SteerIntention(Command, do="steer_intention"):
    """Hold an intention back, let it continue, let its present step fail, or take it away."""

    intention: int
    how: Literal["suspend", "resume", "drop", "fail"]
    reason: str = Field(default="", max_length=1_000)


class DecidePlans(Command, do="decide_plans"):
    """Decide plans that a model made and that wait for approval."""

    generation: str
    decision: Literal["approve", "reject", "again"]
    text: str = Field(default="", max_length=1_000_000)
    """To approve: the plans as edited, or empty for the accepted ones as they are. Else the reason."""
