"""Internal actions: what they are given, what they may answer, and how they are registered."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from engine.bdi.arithmetic import Number, number
from engine.bdi.beliefs import TRIES, Answer, Answers
from engine.bdi.errors import ErrorId, EvaluationError, UnknownActionError
from engine.bdi.intentions import Intention, RunningAgent
from engine.bdi.printer import brief_text, unquoted_text
from engine.bdi.rewriting import instantiated, resolved
from engine.bdi.terms import Cell, Collection, Cons, Nil, Struct, Term, deref, items_of, list_of
from engine.bdi.unification import Trail, undo, unify


def failed(message: str) -> EvaluationError:
    """The error of an internal action that cannot be done."""
    return EvaluationError(ErrorId.INTERNAL_ACTION_FAILED, message)


@dataclass(slots=True)
class Call:
    """One call of an internal action."""

    agent: RunningAgent
    name: str
    args: tuple[Term, ...]
    trail: Trail
    intention: Intention | None = None
    """The intention whose step it is; None inside a formula."""

    def __len__(self) -> int:
        return len(self.args)

    def value(self, place: int) -> Term:
        """An argument with the values of its variables filled in."""
        return resolved(self.args[place])

    def unify(self, place: int, term: Term) -> bool:
        """Let an argument be this."""
        return unify(self.args[place], term, self.trail)

    def each(self, answers: Iterable[tuple[Any, ...]]) -> Answers:
        """Each answer of places and terms that fits; what it binds is free again behind it."""
        misses = 0
        for pairs in answers:
            mark = len(self.trail)
            if all(self.unify(place, term) for place, term in zip(pairs[::2], pairs[1::2], strict=True)):
                yield True
            else:
                misses += 1
            undo(self.trail, mark)
            if misses == TRIES:
                misses = 0
                yield False

    def is_unbound(self, place: int) -> bool:
        """True for a variable without a value."""
        return isinstance(deref(self.args[place]), Cell)

    def number(self, place: int) -> Number:
        """An argument that must be a number."""
        return number(self.args[place])

    def integer(self, place: int) -> int:
        """An argument that must be a whole number."""
        value = self.number(place)
        if value != int(value):
            raise self.wrong(place, "a whole number")
        return int(value)

    def text(self, place: int) -> str:
        """An argument as text: a string as it is, anything else as it prints, if it is not too long."""
        return self.sized(unquoted_text(self.value(place), self.agent.limits.size))

    def name_of(self, place: int) -> str:
        """An argument that must be an atom or a string."""
        term = self.value(place)
        if isinstance(term, Struct) and not term.args:
            return term.functor
        if isinstance(term, str):
            return term
        raise self.wrong(place, "a name")

    def items(self, place: int) -> list[Term]:
        """An argument that must be a list, or another collection, of which it is the elements."""
        held = deref(self.args[place])
        items = [*map(instantiated, held.elements)] if isinstance(held, Collection) else items_of(held)
        if items is None:
            raise self.wrong(place, "a list")
        return items

    def literal(self, place: int) -> Struct:
        """An argument that must be a literal."""
        term = self.value(place)
        if not isinstance(term, Struct):
            raise self.wrong(place, "a literal")
        return term

    def made(self, items: Iterable[Term]) -> Term:
        """A list of these, if it is not too long."""
        limit = self.agent.limits.size
        kept: list[Term] = []
        for term in items:
            kept.append(term)
            if len(kept) > limit:
                raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"{self.name}: more than {limit} elements")
        return list_of(kept)

    def sized(self, text: str) -> str:
        """A text, if it is not too long."""
        if len(text) > self.agent.limits.size:
            raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"{self.name}: a text of {len(text)} characters")
        return text

    def joined(self, texts: Iterable[str]) -> str:
        """Texts one after the other, if that is not too long."""
        parts: list[str] = []
        room = self.agent.limits.size
        for text in texts:
            parts.append(text)
            room -= len(text)
            if room < 0:
                break
        return self.sized("".join(parts))

    def wrong(self, place: int, target: str) -> EvaluationError:
        """The error for an argument of another sort."""
        return failed(f"{self.name}: argument {place + 1} is not {target}: {brief_text(self.args[place])}")

    def step(self) -> Intention:
        """The intention whose step this is; it cannot stand in a formula."""
        if self.intention is None:
            raise failed(f"{self.name} can only be a step of a body")
        return self.intention


Run = Callable[[Call], Answer]


class InternalAction(NamedTuple):
    """An internal action and how many arguments it takes."""

    name: str
    least: int
    most: int
    run: Run


ANY_NUMBER = 1_000


class InternalActions:
    """Internal actions by name."""

    def __init__(self, below: InternalActions | None = None) -> None:
        self.known: dict[str, InternalAction] = dict(below.known) if below else {}

    def register(self, name: str, least: int, most: int | None = None) -> Callable[[Run], Run]:
        """Declare a function as an internal action with so many arguments.

        It answers True or False, or yields once for each answer that it has bound, and raises
        EvaluationError when it cannot be done.
        """

        def declare(run: Run) -> Run:
            self.known[name] = InternalAction(name, least, least if most is None else most, run)
            return run

        return declare

    def call(self, call: Call) -> Answer:
        """Run one.

        Raises:
            EvaluationError: it is unknown, takes another number of arguments, or cannot be done.
        """
        action = self.known.get(call.name)
        if action is None:
            said = f"there is no internal action {call.name}{nearest(call.name, self.known)}"
            raise UnknownActionError(ErrorId.INTERNAL_ACTION_FAILED, said)
        if not action.least <= len(call.args) <= action.most:
            many = f"{action.least}" if action.least == action.most else f"{action.least} to {action.most}"
            said = f"{call.name} takes {many} arguments, not {len(call.args)}"
            raise UnknownActionError(ErrorId.INTERNAL_ACTION_FAILED, said)
        return action.run(call)


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean …` with the known names most like one, empty where none is."""
    near = difflib.get_close_matches(name, list(known), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def is_list(term: Term) -> bool:
    """True for `[]` and list cells."""
    return isinstance(deref(term), Cons | Nil)
