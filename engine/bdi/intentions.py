"""Intentions: stacks of plans being carried out, and the events and others they wait for (spec §1.6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.bdi.patterns import Env
from engine.bdi.printing import text_of
from engine.bdi.terms import Cell, Struct, Term

if TYPE_CHECKING:
    from engine.bdi.alarms import Deadline
    from engine.bdi.instructions import Instruction
    from engine.bdi.messages import Message
    from engine.bdi.plans import CompiledPlan
    from engine.bdi.queries import Query


class Event:
    """Something to find a plan for; an internal one carries the intention that waits for it."""

    __slots__ = ("_text", "cells", "deadline", "failure", "intention", "literal", "sign", "tag")

    def __init__(
        self,
        sign: str,
        literal: Struct,
        intention: Intention | None = None,
        cells: tuple[Cell, ...] = (),
        failure: Failure | None = None,
        tag: str = "",
    ) -> None:
        self.sign = sign
        """`+!`, `-!`, `+?`, `-?`, `+`, `-`, `^!` or `^?`."""
        self.literal = literal
        self.intention = intention
        self.cells = cells
        """Variables of the goal without a value when it was posted; a failure frees them again."""
        self.failure = failure
        """Why, when this is the event of a failed goal."""
        self.tag = tag
        """The host's name for the goal; the intention made for it takes it over."""
        self.deadline: Deadline | None = None
        """When the goal fails by itself."""
        self._text = ""

    @property
    def text(self) -> str:
        """The event as a trigger, as it was when this was first asked."""
        if not self._text:
            self._text = f"{self.sign}{text_of(self.literal)}"
        return self._text


class Loop:
    """A `for` or `while` that is being run."""

    __slots__ = ("answers", "at", "cells", "rounds")

    def __init__(self, at: int, answers: Query | None, cells: list[Cell]) -> None:
        self.at = at
        """Place of its instruction."""
        self.answers = answers
        """What a `for` goes over."""
        self.cells = cells
        """Variables from outside without a value when it began; each round frees them again."""
        self.rounds = 0


class Frame:
    """One plan being carried out for one event."""

    __slots__ = (
        "cells",
        "code",
        "collapsed",
        "deadline",
        "env",
        "literal",
        "loops",
        "pc",
        "plan",
        "sign",
    )

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


class Intention:
    """A stack of frames, the top one last."""

    __slots__ = (
        "asked",
        "atomic",
        "event",
        "frames",
        "id",
        "parked",
        "pending",
        "question",
        "suspended",
        "tag",
    )

    def __init__(self, number: int, tag: str = "") -> None:
        self.id = number
        self.tag = tag
        """The host's name for its outermost goal, empty without one."""
        self.frames: list[Frame] = []
        self.event: Event | None = None
        """The event it waits for."""
        self.pending: Pending | None = None
        self.suspended = ""
        """Why it is held back by `.suspend` or the operator, empty when it is not."""
        self.parked = False
        """True when it could run but is suspended."""
        self.asked: Term | None = None
        """What it was asked, as a term whose variables its plan binds."""
        self.question: Message | None = None
        """A question from elsewhere that it works out; its end is answered."""
        self.atomic = 0
        """Frames whose plan must not be interleaved."""

    @property
    def priority(self) -> int | float:
        """That of the topmost plan that has one, 0 without such."""
        return next((one.plan.priority for one in reversed(self.frames) if one.plan.priority), 0)

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
    """Why a step or goal failed (spec §1.7)."""

    id: str
    message: str
    code: str = ""
    """The step, as text."""
    source: str = ""
    """Where the plan's text came from."""
    line: int = 0
    details: tuple[Term, ...] = ()
    """More annotations for the failure event."""

    @property
    def annotations(self) -> tuple[Term, ...]:
        """`error(id)`, `error_msg(text)`, `code(step)`, `code_src(file)`, `code_line(n)`."""
        return (
            Struct("error", (Struct(self.id),)),
            Struct("error_msg", (self.message,)),
            Struct("code", (self.code,)),
            Struct("code_src", (self.source,)),
            Struct("code_line", (self.line,)),
            *self.details,
        )
