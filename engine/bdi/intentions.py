"""What an agent works on: intentions, the events and messages they handle, and what they wait for.

An intention is a stack of frames; a frame is a plan being carried out for an event. `RunningAgent` is what
the steps, phases and internal actions see of the agent, so that none of them imports the agent itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from enum import StrEnum
from random import Random
from typing import Protocol, TypeAlias

from engine.bdi.beliefs import Answer, BeliefBase, Query, Reasoner
from engine.bdi.errors import Position
from engine.bdi.plans import CompiledPlan, Instruction, LoadedProgram
from engine.bdi.printer import shown_text
from engine.bdi.semantics import Limits, Semantics
from engine.bdi.syntax import Program
from engine.bdi.term_compiler import Env
from engine.bdi.terms import Cell, Struct, Term
from engine.bdi.trace import Change, MessageSent, TraceEvent
from engine.bdi.unification import Trail
from engine.value import dataclass, field


class Performative(StrEnum):
    """What a message is meant to do."""

    TELL = "tell"
    UNTELL = "untell"
    ACHIEVE = "achieve"
    UNACHIEVE = "unachieve"
    ASK_ONE = "askOne"
    ASK_ALL = "askAll"
    TELL_HOW = "tellHow"
    UNTELL_HOW = "untellHow"
    ASK_HOW = "askHow"
    TELL_RULE = "tellRule"
    UNTELL_RULE = "untellRule"
    SIGNAL = "signal"


@dataclass(frozen=True, slots=True)
class Message:
    """One message; its content holds no variables but those of `canonical`."""

    sender: str
    receiver: str
    performative: Performative
    content: Term
    number: int
    """Given by the sender; an answer names it."""
    answers: int = 0
    """Number of the question that this answers, 0 when it answers none."""


class Society(Protocol):
    """What runs several agents."""

    def names(self) -> Iterable[str]:
        """All agents."""

    def create(self, name: str, path: str) -> None:
        """Start an agent from a file; raises ValueError where that cannot be done."""

    def program(self, path: str, space: str = "") -> Program:
        """What a file holds, its names in a namespace; raises ValueError where it cannot be read."""

    def files(self, folder: str, pattern: str) -> Iterable[str]:
        """Files in and beneath a folder, by a pattern of names; raises ValueError where none are listed."""

    def clone(self, agent: RunningAgent, name: str) -> None:
        """Start an agent with the beliefs, rules and plans of another; raises ValueError as `create`."""

    def end(self, name: str, after: float) -> bool:
        """End an agent, or with an empty name all behind this cycle; False when there is none.

        Those that end some milliseconds later have the event `+jag_shutting_down(milliseconds)`.
        """

    def register(self, name: str, service: Term, *, remove: bool = False) -> None:
        """Let the directory say that an agent provides a service, or no longer."""

    def subscribe(self, name: str, service: Term) -> None:
        """Let an agent be told `provider(Agent, Service)` of those that provide it, now and later."""

    def providers(self, service: Term) -> Iterable[str]:
        """Agents that provide a service, in the order in which they came."""


@dataclass(slots=True, eq=False)
class Event:
    """Something to find a plan for; an internal one carries the intention that waits for it."""

    sign: str
    """`+!`, `-!`, `+?`, `-?`, `+`, `-`, `^!` or `^?`."""
    literal: Struct
    intention: Intention | None = None
    cells: tuple[Cell, ...] = ()
    """Variables of the goal without a value when it was posted; a failure frees them again."""
    failure: Failure | None = None
    """Why, when this is the event of a failed goal."""
    tag: str = ""
    """The host's name for the goal; the intention made for it takes it over."""
    deadline: Deadline | None = None
    """When the goal fails by itself."""
    _text: str = ""

    @property
    def text(self) -> str:
        """The event as a trigger, as it was when this was first asked."""
        if not self._text:
            self._text = f"{self.sign}{shown_text(self.literal)}"
        return self._text


@dataclass(slots=True, eq=False)
class Loop:
    """A `for` or `while` that is being run."""

    at: int
    """Place of its instruction."""
    answers: Query | None
    """What a `for` goes over."""
    cells: list[Cell]
    """Variables from outside without a value when it began; each round frees them again."""
    rounds: int = 0


class Frame:
    """One plan being carried out for one event."""

    __slots__ = ("cells", "code", "collapsed", "deadline", "env", "literal", "loops", "pc", "plan", "sign")

    def __init__(self, plan: CompiledPlan, env: Env, event: Event) -> None:
        self.plan = plan
        self.code: list[Instruction] = plan.code
        self.env = env
        self.pc = 0
        """Place of the step to run next, or of the one whose sub-goal is being pursued."""
        self.sign = event.sign
        self.literal = event.literal
        self.cells = event.cells
        self.deadline = event.deadline
        self.loops: list[Loop] = []
        self.collapsed = 0
        """Frames of the same goal that this one has taken the place of."""

    @property
    def is_goal(self) -> bool:
        """True when it pursues a goal, not when it handles a belief or a failure."""
        return self.sign in ("+!", "+?")


class Waiting(StrEnum):
    """What a pending intention waits for."""

    ACTION = "action"
    TIME = "wait"
    CONDITION = "condition"
    """A formula to become true, perhaps with a time-out."""
    EVENT = "event"
    """`.wait({+b})`."""
    ANSWER = "ask"
    GENERATION = "generation"
    """A plan that is being generated."""
    BRANCHES = "fork"
    """Its branches, all or the first of them."""
    OPERATOR = "suspended"
    """`.suspend`, until somebody resumes it."""


@dataclass(slots=True)
class Pending:
    """Why an intention waits, and what ends the wait."""

    kind: Waiting
    number: int
    """Of the request, message or timer."""
    what: Term
    """The action, pattern or question; its variables are bound by the answer."""
    reason: str = ""
    until: float | None = None
    """Logical time in milliseconds at which the wait ends by itself."""
    since: float = 0.0
    event: Event | None = None
    """The event to try again when a generation is through."""
    elapsed: Term | None = None
    """Gets the milliseconds that the wait took; with it a time-out is no failure."""


@dataclass(slots=True, eq=False)
class Intention:
    """A stack of frames, the top one last."""

    id: int
    tag: str = ""
    """The host's name for its outermost goal, empty without one."""
    frames: list[Frame] = field(default_factory=list)
    event: Event | None = None
    """The event it waits for."""
    pending: Pending | None = None
    suspended: str = ""
    """Why it is held back by `.suspend` or the operator, empty when it is not."""
    parked: bool = False
    """True when it could run but is suspended."""
    asked: Term | None = None
    """What it was asked, as a term whose variables its plan binds."""
    question: Message | None = None
    """A question from elsewhere that it works out; its end is answered."""
    atomic: int = 0
    """Frames whose plan must not be interleaved."""
    joins: int | None = None
    """Number of the wait of the intention that it is a branch of."""

    def push(self, frame: Frame) -> None:
        """Put a frame on top."""
        self.frames.append(frame)
        self.atomic += frame.plan.atomic

    def pop(self) -> Frame:
        """Take the top frame away."""
        frame = self.frames.pop()
        self.atomic -= frame.plan.atomic
        if frame.deadline is not None:
            frame.deadline.over = True
        return frame


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a step or goal failed."""

    id: str
    message: str
    code: str = ""
    """The step, as text."""
    source: str = ""
    """Where the plan's text came from."""
    line: int = 0
    details: tuple[Term, ...] = ()
    """More annotations for the failure event."""
    term: Term | None = None
    """The step as a term."""

    @property
    def annotations(self) -> tuple[Term, ...]:
        """`error(id)`, `error_msg(text)`, `code(step)`, `code_src(file)`, `code_line(n)`."""
        return (
            Struct("error", (Struct(self.id),)),
            Struct("error_msg", (self.message,)),
            Struct("code", (self.code if self.term is None else self.term,)),
            Struct("code_src", (self.source,)),
            Struct("code_line", (self.line,)),
            *self.details,
        )


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """An external action that the agent wants done; `feedback` with its number ends the wait."""

    number: int
    action: Struct
    """Variables without a value are those of `canonical`; an answer may give them one."""
    intention: int
    position: Position


@dataclass(slots=True, eq=False, kw_only=True)
class Alarm:
    """Something that happens at a time unless it is over before; `waits.ring_alarm` does it."""

    number: int
    over: bool = False


Alarms: TypeAlias = list[tuple[float, int, Alarm]]
"""A heap of logical times, numbers and what happens then."""


@dataclass(slots=True, eq=False)
class Appointment(Alarm):
    """Raises its event."""

    event: Event


@dataclass(slots=True, eq=False)
class Deadline(Alarm):
    """Lets a goal fail: its event while no plan has taken it up, later the frame that pursues it."""

    limit: float
    """Milliseconds."""
    event: Event | None = None
    """The goal's."""
    intention: Intention | None = None
    """The one that has a plan for the goal."""


class Phase(StrEnum):
    """A part of the cycle."""

    SENSE = "sense"
    """Waits that are over, percepts, one message."""
    DELIBERATE = "deliberate"
    """One event, and a plan for it."""
    ACT = "act"
    """One step of one intention."""


class RunningAgent(Reasoner):
    """The state of an agent, and what steps, phases and internal actions do with it.

    `BdiAgent` says how it is done; arguments as there.
    """

    def __init__(
        self,
        name: str,
        loaded: LoadedProgram,
        semantics: Semantics,
        limits: Limits,
        actions: dict[str, frozenset[int]] | None,
        random: Random,
    ) -> None:
        self.name = name
        self.semantics, self.limits, self.actions, self.random = semantics, limits, actions, random
        self.query_steps = limits.query_steps
        self.say: Callable[[str], None] = lambda text: None
        self.warn: Callable[[str], None] = lambda text: None
        self.tracer: Callable[[TraceEvent], None] | None = None
        self.on_missing_plan: Callable[[Event], bool] | None = None
        """Asked when no plan is relevant for a goal; True when one is being made."""
        self.on_generate_plan: Callable[[Intention, Term], bool] | None = None
        """Asked by the step `generate_plan(E)`; True when a plan is being made."""
        self.beliefs = BeliefBase(semantics, limits)
        self.room = [limits.belief_size]
        """What its sets, maps and queues may still take."""
        self.rules = self.given_rules = loaded.rules
        """Never changed themselves; an agent with other rules has other ones."""
        self.plans = loaded.plans.copy()
        self.cycles = 0
        """Cycles begun."""
        self.phase: Phase = Phase.SENSE
        """What runs next."""
        self.society: Society | None = None
        """What runs several agents, for the internal actions that concern others."""
        self.epoch = 0.0
        """What the host's calendar says at time 0, in milliseconds since 1970."""
        self.now = 0.0
        """Logical time in milliseconds."""
        self.events: deque[Event] = deque()
        self.intentions: dict[int, Intention] = {}
        self.ready: deque[Intention] = deque()
        self.atomics: list[Intention] = []
        """Intentions with a plan that must not be interleaved."""
        self.mail: deque[Message] = deque()
        self.percepts: tuple[Struct, ...] | None = None
        """What is to be perceived in the next cycle."""
        self.pending: dict[int, Intention] = {}
        """Intentions that wait for feedback, time or an answer, by the number of what they wait for."""
        self.conditions: set[int] = set()
        """Numbers of those that wait for a formula to hold."""
        self.watchers: set[int] = set()
        """Numbers of those that wait for an event."""
        self.suspensions: set[int] = set()
        """Intentions that somebody holds back."""
        self.timers: list[tuple[float, int]] = []
        """A heap of logical times and the numbers whose wait ends then."""
        self.alarms: Alarms = []
        """Deadlines of goals, and events to be raised at a time."""
        self.numbers = 0
        """Numbers given to intentions, requests, messages and timers."""
        self.belief_version = 0
        """Counts changes of beliefs, so that conditions are looked at again only when one may hold."""
        self.checked_version = 0
        self.requests: list[ActionRequest] = []
        self.sent: list[Message] = []
        """What the next report hands to the host."""

    def atomic(self) -> Intention | None:
        """The intention that must not be interleaved with others, if one can continue."""
        return next((item for item in self.atomics if item.pending is None and not item.suspended), None)

    def number(self) -> int:
        """A new number."""
        self.numbers += 1
        return self.numbers

    def go_on(self, intention: Intention) -> None:
        """Let an intention run its next step when its turn comes."""
        if intention.suspended:
            intention.parked = True
        else:
            self.ready.append(intention)

    def interleave(self, intention: Intention) -> None:
        """Let others run between its steps again when none of its plans is atomic any more."""
        if not intention.atomic and intention in self.atomics:
            self.atomics.remove(intention)

    def trace(self, kind: Callable[..., TraceEvent], *details: object) -> None:
        """Report a record of this kind, where somebody follows."""
        if self.tracer is not None:
            self.tracer(kind(self.name, self.cycles, *details))

    def send(self, message: Message) -> None:
        """Give a message to the host."""
        self.sent.append(message)
        if self.tracer is not None:
            self.trace(MessageSent, message.receiver, message.performative, shown_text(message.content))

    def achieve(self, literal: Struct, *, sign: str = "+!", tag: str = "") -> None:
        """Adopt a goal, or a test, as an intention of its own."""

    def post(self, event: Event, *, again: bool = False) -> None:
        """Let an event wait to be handled."""

    def step_done(self, intention: Intention) -> None:
        """End the step that an intention waited for."""

    def settle(self, intention: Intention, *, cut_short: bool = False) -> None:
        """Take away frames whose bodies are through."""

    def end(self, intention: Intention, change: Change, reason: str = "") -> None:
        """Forget an intention."""

    def changed_intention(self, intention: Intention, change: Change, reason: str = "") -> None:
        """Trace a change."""

    def invoke(
        self, name: str, args: tuple[Term, ...], trail: Trail, intention: Intention | None = None
    ) -> Answer:
        """Run an internal action."""
        raise NotImplementedError
