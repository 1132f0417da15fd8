"""A program as it was written: beliefs, rules, goals, plans and documentation, with places in the text.

Places and provenance do not count when two programs or plans are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from engine.bdi.position import Position as Position
from engine.bdi.terms import TRUE, Struct, Term, Var


class Operation(StrEnum):
    """What happened to the belief or goal of an event."""

    ADDED = "+"
    REMOVED = "-"
    """Of a goal: it failed."""
    GOAL_STATE = "^"
    """Of a goal: its state changed, which its annotation `state(…)` names."""


class TriggerKind(StrEnum):
    """What an event is about."""

    BELIEF = ""
    ACHIEVE = "!"
    TEST = "?"


@dataclass(frozen=True, slots=True)
class Trigger:
    """`+!g(X)`, `-b`, …: an event, or what a plan waits for."""

    operation: Operation
    kind: TriggerKind
    literal: Struct | Var

    @property
    def is_goal(self) -> bool:
        """True for achievement and test goals."""
        return self.kind is not TriggerKind.BELIEF


class StepKind(StrEnum):
    """What a body step does (spec §1.5)."""

    ACHIEVE = "!"
    SPAWN = "!!"
    TEST = "?"
    ADD = "+"
    REMOVE = "-"
    UPDATE = "-+"
    ACTION = "action"
    """Given to the environment; the intention waits for its feedback."""
    INTERNAL = "internal"
    """`.name(…)`, run by the interpreter."""
    CONSTRAINT = "constraint"
    """A formula that must hold."""


@dataclass(frozen=True, slots=True)
class Step:
    """One plain step of a body."""

    kind: StepKind
    term: Term
    position: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class If:
    """`if (C) { … } elif (C) { … } else { … }`."""

    branches: tuple[tuple[Term, Body], ...]
    otherwise: Body = ()
    position: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class While:
    """`while (C) { … }`."""

    condition: Term
    body: Body
    position: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class For:
    """`for (C) { … }`: the body once for each answer."""

    condition: Term
    body: Body
    position: Position = field(default=Position(), compare=False)


BodyItem: TypeAlias = Step | If | While | For
Body: TypeAlias = tuple[BodyItem, ...]


def steps_of(body: Body) -> Iterator[BodyItem]:
    """Every item of a body and of the blocks inside, in the order of the text."""
    for item in body:
        yield item
        if isinstance(item, If):
            for _, block in item.branches:
                yield from steps_of(block)
            yield from steps_of(item.otherwise)
        elif isinstance(item, While | For):
            yield from steps_of(item.body)


@dataclass(frozen=True, slots=True)
class Plan:
    """`@label TRIGGER : CONTEXT <- BODY.`"""

    trigger: Trigger
    context: Term = TRUE
    body: Body = ()
    label: Struct | None = None
    """The label's name with its annotations (`atomic`, `breakpoint`, `priority(n)`, …)."""
    position: Position = field(default=Position(), compare=False)
    source: str = field(default="", compare=False)
    """Where its text came from: a file, a model, the operator."""
    provenance: Mapping[str, object] = field(default_factory=dict, compare=False)
    """Whatever its author wants to remember about it; values must be ready for JSON."""

    @property
    def name(self) -> str:
        """The label's name, empty without one."""
        return self.label.functor if self.label else ""

    @property
    def priority(self) -> int | float:
        """What its label's `priority(n)` says, 0 without one."""
        note = self.note("priority")
        value = note.args[0] if note is not None and len(note.args) == 1 else 0
        return value if isinstance(value, int | float) else 0

    def note(self, functor: str) -> Struct | None:
        """The label's annotation with this functor, None when there is none."""
        for one in self.label.annotations if self.label else ():
            if isinstance(one, Struct) and one.functor == functor:
                return one
        return None


@dataclass(frozen=True, slots=True)
class Belief:
    """An initial belief."""

    literal: Struct
    position: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class Rule:
    """`head :- body`."""

    head: Struct
    body: Term
    position: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class Goal:
    """An initial goal, `!g.` or `?g.`"""

    kind: TriggerKind
    literal: Struct
    position: Position = field(default=Position(), compare=False)


class DocKind(StrEnum):
    """What a documentation comment gives (spec §2.8)."""

    MEANING = "meaning"
    ADMISSIBLE = "admissible"
    """A goal or belief that the agent does not hold yet but may use."""
    REMARK = "remark"


class Subject(StrEnum):
    """What a documentation comment is about."""

    GOAL = "goal"
    BELIEF = "belief"
    ACTION = "action"
    PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Doc:
    """A documentation comment: `//@ admissible goal reach(Object): "the robot stands on the object"`."""

    kind: DocKind
    text: str
    subject: Subject | None = None
    literal: Struct | None = None
    """What it describes; None for a remark."""
    position: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class Include:
    """`{ include("file.asl") }`; `including` puts the file in its place."""

    path: str
    position: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program, each sort in the order of the text."""

    beliefs: tuple[Belief, ...] = ()
    rules: tuple[Rule, ...] = ()
    goals: tuple[Goal, ...] = ()
    plans: tuple[Plan, ...] = ()
    docs: tuple[Doc, ...] = ()
    includes: tuple[Include, ...] = ()
    source: str = field(default="", compare=False)
