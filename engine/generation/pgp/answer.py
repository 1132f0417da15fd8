"""A model's answer read as plans and inventions, with everything that could not be read (spec BDI §2.9).

Nothing is dropped in silence: a plan with a line, condition or operation that cannot be read is not
among the plans and is reported with its line; the text itself is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar

from engine.bdi.formulas import RELATIONS, conjunction, is_literal
from engine.bdi.parser import parse_literal, parse_term
from engine.bdi.printing import text_of
from engine.bdi.problems import ProgramError
from engine.bdi.syntax import Operation, Plan, Position, Step, StepKind, Trigger, TriggerKind
from engine.bdi.terms import Struct, Term, Var, rewrite
from engine.generation.pgp.answer_layout import (
    InventionKind,
    InventionLayout,
    Item,
    PlanLayout,
    Section,
    is_empty,
    layout_of,
)
from engine.generation.pgp.documentation import ActionSpec
from engine.generation.pgp.phrases import formula_text, term_text
from engine.generation.pgp.renaming import leaves_of

_T = TypeVar("_T")


class ProblemKind(StrEnum):
    """What could not be read."""

    EMPTY = "empty"
    """Nothing at all in the answer."""
    PLAN = "plan"
    GOAL = "goal"
    BELIEF = "belief"
    TEXT = "text"
    """A line that belongs to nothing."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What could not be read, where and why; lines count from 1."""

    kind: ProblemKind
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A plan of an answer, and what was guessed in reading it."""

    plan: Plan
    line: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Invention:
    """A goal or belief that the model made up, and what it says it means."""

    kind: InventionKind
    template: Struct
    purpose: str
    line: int
    text: str
    """The template as written."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was read of a model's answer."""

    text: str
    plans: tuple[ReadPlan, ...] = ()
    inventions: tuple[Invention, ...] = ()
    problems: tuple[Problem, ...] = ()

    def invented(self, kind: InventionKind) -> tuple[Invention, ...]:
        """The inventions of one kind."""
        return tuple(one for one in self.inventions if one.kind is kind)


def read_answer(text: str, actions: Collection[ActionSpec] = ()) -> Answer:
    """The plans and inventions of an answer; never raises, and takes time linear in its length.

    Args:
        text: the answer as the model gave it.
        actions: what the agent can do; an operation without `execute` is taken for one of these.
    """
    layout = layout_of(text)
    plans: list[ReadPlan] = []
    inventions: list[Invention] = []
    problems = [Problem(ProblemKind.TEXT, fault.line, fault.reason) for fault in layout.faults]
    for one in layout.plans:
        reader = _PlanReader(one, actions)
        read = reader.read()
        if read is not None:
            plans.append(read)
        problems += [Problem(ProblemKind.PLAN, line, reason) for line, reason in reader.reasons]
    for invention in layout.inventions:
        template = _template(invention)
        if isinstance(template, Struct):
            inventions.append(
                Invention(invention.kind, template, invention.purpose, invention.line, invention.text)
            )
        else:
            problems.append(Problem(ProblemKind(invention.kind), invention.line, template))
    if not (layout.plans or inventions or problems):
        problems.append(Problem(ProblemKind.EMPTY, 1, "the answer holds no plan"))
    return Answer(text, tuple(plans), tuple(inventions), tuple(sorted(problems, key=lambda one: one.line)))


class _UnreadableError(ValueError):
    """An item that cannot be read; the message says why."""


_PREFIX = re.compile(
    r"\[?\s*(execute|achieve|test|spawn|generate|add|remove|update)\s*(?:\]\s*:?|:|\s)\s*", re.I
)
_STEPS = {
    "execute": StepKind.ACTION,
    "achieve": StepKind.ACHIEVE,
    "test": StepKind.TEST,
    "spawn": StepKind.SPAWN,
    "generate": StepKind.INTERNAL,
    "add": StepKind.ADD,
    "remove": StepKind.REMOVE,
    "update": StepKind.UPDATE,
}
_EVENTS = {
    "achieve": (Operation.ADDED, TriggerKind.ACHIEVE),
    "test": (Operation.ADDED, TriggerKind.TEST),
    "add": (Operation.ADDED, TriggerKind.BELIEF),
    "remove": (Operation.REMOVED, TriggerKind.BELIEF),
}
_SIGNED_EVENTS = {"+!": "achieve", "+?": "test", "!": "achieve", "?": "test", "+": "add", "-": "remove"}
_SIGNED_STEPS = {
    "!!": "spawn",
    "!": "achieve",
    "?": "test",
    "-+": "update",
    "+": "add",
    "-": "remove",
}


def _split(text: str, signs: dict[str, str]) -> tuple[str, str]:
    """The leading word in the format's spelling, empty when there is none, and what follows it."""
    match = _PREFIX.match(text)
    if match:
        return match[1].lower(), text[match.end() :]
    for sign, word in signs.items():
        if text.startswith(sign):
            return word, text[len(sign) :]
    return "", text


def _literal(text: str) -> Struct:
    try:
        return parse_literal(term_text(text))
    except ProgramError as error:
        raise _UnreadableError(_cause(text, error)) from None


def _can_hold(leaf: Term) -> bool:
    while isinstance(leaf, Struct) and leaf.functor == "not" and len(leaf.args) == 1:
        leaf = leaf.args[0]
        if isinstance(leaf, Struct) and leaf.functor in ("&", "|"):
            return all(map(_can_hold, leaves_of(leaf)))
    return is_literal(leaf) or (isinstance(leaf, Struct) and leaf.functor in RELATIONS)


def _cause(text: str, error: ProgramError) -> str:
    first = error.problems[0]
    return f"'{text[:80]}': expected {first.expected}, found {first.found}"


def _template(invention: InventionLayout) -> Struct | str:
    """The invented goal or belief, or why it cannot be read."""
    try:
        return _literal(_split(invention.text, _SIGNED_EVENTS)[1])
    except _UnreadableError as error:
        return str(error)


class _PlanReader:
    def __init__(self, layout: PlanLayout, actions: Collection[ActionSpec]) -> None:
        self._layout = layout
        self._internal = {one.name: one.internal for one in actions}
        self._warnings: list[str] = []
        self._anonymous = 0
        self.reasons = [(fault.line, fault.reason) for fault in layout.faults]

    def read(self) -> ReadPlan | None:
        """The plan, None when there are reasons against it."""
        trigger = self._trigger()
        conditions = [self._try(self._condition, item) for item in self._items(Section.CONDITIONS)]
        steps = [self._try(self._step, item) for item in self._items(Section.OPERATIONS)]
        if self.reasons or trigger is None:
            return None
        context = conjunction(one for one in conditions if one is not None)
        body = tuple(one for one in steps if one is not None)
        plan = Plan(trigger, context, body, position=Position(self._layout.line, 1))
        return ReadPlan(plan, self._layout.line, tuple(self._warnings))

    def _items(self, section: Section) -> Iterator[Item]:
        """The items that say something."""
        return (item for item in self._layout.items.get(section, ()) if not is_empty(item.text))

    def _try(self, read: Callable[[Item], _T], item: Item) -> _T | None:
        try:
            return read(item)
        except _UnreadableError as error:
            self.reasons.append((item.line, str(error)))
            return None

    def _trigger(self) -> Trigger | None:
        items = tuple(self._items(Section.EVENT))
        if len(items) != 1:
            self.reasons.append((self._layout.line, f"a plan is for one event, this one names {len(items)}"))
            return None
        return self._try(self._event, items[0])

    def _event(self, item: Item) -> Trigger:
        word, rest = _split(item.text, _SIGNED_EVENTS)
        if not word:
            self._warnings.append(f"'{item.text[:80]}' was read as a goal to achieve")
        elif word not in _EVENTS:
            raise _UnreadableError(f"no event begins with '{word}'; write achieve or test")
        return Trigger(*_EVENTS[word or "achieve"], self._literal(rest))

    def _condition(self, item: Item) -> Term:
        try:
            formula = parse_term(formula_text(item.text))
        except ProgramError as error:
            raise _UnreadableError(_cause(item.text, error)) from None
        for leaf in leaves_of(formula):
            if not _can_hold(leaf):
                raise _UnreadableError(f"'{text_of(leaf)[:80]}' is nothing that can hold or not")
        return self._distinct(formula)

    def _literal(self, text: str) -> Struct:
        term = self._distinct(_literal(text))
        assert isinstance(term, Struct)
        return term

    def _distinct(self, term: Term) -> Term:
        """The term with anonymous variables that occur nowhere else in the plan."""

        def leaf(one: Term) -> Term:
            if not (isinstance(one, Var) and one.anonymous):
                return one
            self._anonymous += 1
            return Var(f"_{self._anonymous}")

        return rewrite(term, leaf)

    def _step(self, item: Item) -> Step:
        word, rest = _split(item.text, _SIGNED_STEPS)
        term, place = self._literal(rest), Position(item.line, 1)
        if word == "generate":
            return Step(StepKind.INTERNAL, Struct(".generate_plan", (term,)), place)
        if not word:
            self._expect_action(item.text, term)
        elif word != "execute":
            return Step(_STEPS[word], term, place)
        name = term.functor.removeprefix(".")
        if self._internal.get(name, term.functor.startswith(".")):
            return Step(StepKind.INTERNAL, Struct(f".{name}", term.args, term.annotations), place)
        return Step(StepKind.ACTION, term, place)

    def _expect_action(self, text: str, term: Struct) -> None:
        if term.functor not in self._internal:
            near = get_close_matches(term.functor, list(self._internal), n=1)
            meant = f"; did you mean execute {near[0]}?" if near else ""
            raise _UnreadableError(
                f"'{text[:80]}' begins with none of {', '.join(_STEPS)} and names no action{meant}"
            )
        self._warnings.append(f"'{text[:80]}' was read as an action to execute")
