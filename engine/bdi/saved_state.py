"""An agent's whole state as data, and an agent that continues from it in the same way.

It is taken between phases, and not while a `for` waits for its next answer, which may depend on what has
changed since it began. Functions, limits and settings are the host's and are given anew by the host.

Objects are lists of their class and slots in one table, and are named by their places there, so that what is
shared stays shared. Terms are flat lists in postfix order, so depth costs nothing.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from itertools import zip_longest
from typing import Any, TypeAlias

from engine.bdi.belief_revision import rule_of
from engine.bdi.beliefs import Fact
from engine.bdi.errors import EvaluationError, Position
from engine.bdi.instructions import EMPTY_TURN
from engine.bdi.intentions import (
    Appointment,
    Deadline,
    Event,
    Failure,
    Frame,
    Intention,
    Loop,
    Message,
    Pending,
    Performative,
    Phase,
    RunningAgent,
    Waiting,
)
from engine.bdi.parser import parse_plan
from engine.bdi.plans import CompiledPlan
from engine.bdi.syntax import Body, BodyItem, If, Plan, Step, steps_of
from engine.bdi.term_compiler import UNWRITTEN
from engine.bdi.terms import NIL, PERCEPT, Cell, Collection, Cons, Struct, Term, Var, children

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class SavedStateError(ValueError):
    """Data that is no saved state, or one of another program."""


PARTS = 2_000_000
"""Parts of all terms of a state; what shares its parts over and over has more, and is not saved."""


class Encoder:
    """Turns terms into data and numbers the variables it meets."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._cells: list[Cell] = []
        self._collections: list[Collection] = []
        self._left = PARTS

    def cell(self, cell: Cell) -> int:
        """The number of a variable."""
        number = self._numbers.get(id(cell))
        if number is None:
            number = self._numbers[id(cell)] = len(self._cells)
            self._cells.append(cell)
        return number

    def term(self, term: Term) -> list[Json]:
        """A term; what its variables stand for is kept apart, by `bindings`.

        Raises:
            SavedStateError: the terms of this and all before are too large.
        """
        tokens: list[Json] = []
        waiting = [term]
        while waiting:
            item = waiting.pop()
            tokens.append(self._token(item))
            waiting.extend(children(item))
            self._left -= 1
            if self._left < 0:
                raise SavedStateError("the terms are too large")
        tokens.reverse()
        return tokens

    def terms(self, terms: Iterable[Term]) -> list[Json]:
        """Several."""
        return [self.term(term) for term in terms]

    def _token(self, term: Term) -> Json:
        if isinstance(term, str):
            return f'"{term}'
        if isinstance(term, int | float):
            return term
        if isinstance(term, Cell):
            return None if term is UNWRITTEN else ["cell", self.cell(term)]
        if isinstance(term, Var):
            return ["var", term.name]
        if isinstance(term, Collection):
            place = self._numbers.setdefault(id(term), len(self._collections))
            if place == len(self._collections):
                self._collections.append(term)
            return ["held", place]
        if isinstance(term, Struct):
            return ["struct", term.functor, len(term.args), len(term.annotations), term.negated]
        return "[]" if term is NIL else "[|]"

    def collections(self) -> list[Json]:
        """Each set, map and queue met so far, and those that they hold; call it behind `bindings`."""
        made: list[Json] = []
        while len(made) < len(self._collections):
            held = self._collections[len(made)]
            made.append([held.kind, self.terms(held.keys), self.terms(held.elements)])
        return made

    def bindings(self) -> list[Json]:
        """What each variable met so far stands for, None where it has no value; call it last."""
        made: list[Json] = []
        while len(made) < len(self._cells):
            ref = self._cells[len(made)].ref
            made.append(None if ref is None else self.term(ref))
        return made


class Decoder:
    """Turns data back into terms."""

    def __init__(self, bindings: Sequence[Json], held: Sequence[Any], room: list[int]) -> None:
        self.cells = [Cell() for _ in bindings]
        self.held = [Collection(kind, room) for kind, *_ in held]
        for collection, (_, keys, elements) in zip(self.held, held, strict=True):
            rows = self.terms(keys), self.terms(elements)
            collection.charge(*rows[0], *rows[1])
            collection.rows.update(zip(*rows, strict=False))
            collection.queued += () if rows[0] else rows[1]
        for cell, data in zip(self.cells, bindings, strict=True):
            if data is not None:
                cell.ref = self.term(data)
        if _has_circle([_cells_in(data) for data in bindings]):
            raise SavedStateError("a variable stands for a term that it is in")

    def term(self, data: Json) -> Term:
        """A term; raises SavedStateError for data that is none."""
        if not isinstance(data, list):
            raise SavedStateError("a saved term is not a list")
        stack: list[Term] = []
        for token in data:
            self._push(token, stack)
        if len(stack) != 1:
            raise SavedStateError("a saved term is incomplete")
        return stack[0]

    def terms(self, data: Json) -> tuple[Term, ...]:
        """Several."""
        if not isinstance(data, list):
            raise SavedStateError("saved terms are not a list")
        return tuple([self.term(item) for item in data])

    def literal(self, data: Json) -> Struct:
        """A term that must be a structure."""
        term = self.term(data)
        if not isinstance(term, Struct):
            raise SavedStateError("a saved literal is not a structure")
        return term

    def _push(self, token: Json, stack: list[Term]) -> None:
        match token:
            case None:
                stack.append(UNWRITTEN)
            case "[]":
                stack.append(NIL)
            case "[|]":
                stack[-2:] = [Cons(stack[-2], stack[-1])]
            case str():
                stack.append(token[1:])
            case int() | float():
                stack.append(token)
            case ["cell", int(number)]:
                stack.append(self.cells[number])
            case ["held", int(number)]:
                stack.append(self.held[number])
            case ["var", str(name)]:
                stack.append(Var(name))
            case ["struct", str(functor), int(args), int(notes), bool(negated)]:
                first = len(stack) - args - notes
                parts = stack[first:]
                stack[first:] = [Struct(functor, tuple(parts[:args]), parts[args:], negated)]
            case _:
                raise SavedStateError(f"a saved term holds {token!r:.40}")


def _cells_in(data: Json) -> list[int]:
    """The numbers of the variables in a saved term."""
    tokens = data if isinstance(data, list) else []
    return [token[1] for token in tokens if isinstance(token, list) and token[0] == "cell"]  # type: ignore[misc]


def _has_circle(leads_to: Sequence[Sequence[int]]) -> bool:
    """Whether a variable leads back to itself."""
    waits = [len(others) for others in leads_to]
    comes_from: list[list[int]] = [[] for _ in leads_to]
    for number, others in enumerate(leads_to):
        for other in others:
            comes_from[other].append(number)
    free = [number for number, count in enumerate(waits) if not count]
    for number in free:
        for other in comes_from[number]:
            waits[other] -= 1
            if not waits[other]:
                free.append(other)
    return len(free) < len(waits)


VERSION = 3

Data = dict[str, Any]
"""JSON objects; `restore` checks what it reads."""

_ENDLESS = (RecursionError, EvaluationError)
"""What data raise that nest without end, or hold terms that are too large to be compared."""
_ENUMS = {kind.__name__: kind for kind in (Performative, Waiting)}
_OBJECTS = {
    kind.__name__: kind
    for kind in (Appointment, Deadline, Event, Failure, Frame, Intention, Loop, Message, Pending)
}
_DERIVED = {"Frame": "code", "Loop": "answers"}
"""Slots that are not kept: a frame's steps are those of its plan, and of a `for` nothing is kept."""
_ADDED: dict[str, tuple[str, ...]] = {"Failure": ("term",), "Intention": ("joins",), "Pending": ("elapsed",)}
"""Slots that older saved states lack; they stand behind the others, and their default is None."""
_COUNTS = ("cycles", "now", "numbers", "percepts", "timers", "conditions", "watchers", "suspensions")
_HELD: dict[str, type] = {
    "events": Event,
    "intentions": Intention,
    "ready": Intention,
    "atomics": Intention,
    "pending": Intention,
    "mail": Message,
    "sent": Message,
}
"""Collections of an agent, and what they hold."""


@cache
def _slots(kind: str) -> tuple[str, ...]:
    """The slots of a class that are kept, in a fixed order."""
    names = {name for parent in _OBJECTS[kind].__mro__ for name in vars(parent).get("__slots__", ())}
    added = _ADDED.get(kind, ())
    return (*sorted(names - {_DERIVED.get(kind), *added}), *added)


def save(agent: RunningAgent) -> Data:
    """The state of an agent between two phases, ready for JSON.

    Raises:
        SavedStateError: a `for` waits for its next answer.
    """
    saver = _Saver(agent)
    made: Data = {
        "version": VERSION,
        "phase": agent.phase.value,
        "given": agent.plans.given,
        "beliefs": [
            [fact.place, saver.term(fact.plain), saver.terms(fact.annotations)] for fact in agent.beliefs
        ],
        "places": agent.beliefs.places,
        "rules": None
        if agent.rules is agent.given_rules
        else [
            [*saver.term(clause.term), clause.place] for clauses in agent.rules.values() for clause in clauses
        ],
        "perceived": [fact.place for fact in agent.beliefs.percepts.values()],
        "unchecked": agent.belief_version != agent.checked_version,
        "library": len(saver.plans),
        "alarms": saver.value([row for row in sorted(agent.alarms) if not row[2].over]),
        "random": json.loads(json.dumps(agent.random.getstate())),
    }
    made |= {name: saver.value(getattr(agent, name)) for name in (*_COUNTS, *_HELD)}
    made["objects"] = saver.objects()
    made["plans"] = [_plan_data(plan) for plan in saver.plans]
    made["cells"] = saver.bindings()
    made["held"] = saver.collections()
    return made


def _plan_data(plan: CompiledPlan) -> Data:
    """A plan by its text; places are kept, because failures name them."""
    source = plan.plan
    return {
        "name": plan.name,
        "text": plan.text,
        "source": source.source,
        "provenance": dict(source.provenance),
        "places": [list(source.position), *(list(item.position) for item in steps_of(source.body))],
    }


class _Saver(Encoder):
    """Turns values into data and numbers the objects it meets."""

    def __init__(self, agent: RunningAgent) -> None:
        super().__init__()
        self.plans: list[CompiledPlan] = list(agent.plans)
        self._met: list[Any] = []
        self._places: dict[int, int] = {}

    def value(self, value: Any) -> Any:
        """A value; what objects hold is kept apart, by `objects`."""
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if kind in (list, deque, set, dict):
            items = value.items() if kind is dict else sorted(value) if kind is set else value
            return [self.value(item) for item in items]
        if kind is tuple:
            return {"tuple": [self.value(item) for item in value]}
        if isinstance(value, StrEnum):
            return {kind.__name__: value.value}
        if kind is CompiledPlan:
            if value not in self.plans:
                self.plans.append(value)  # removed from the library while it runs
            return {"plan": self.plans.index(value)}
        if kind.__name__ not in _OBJECTS:
            return {"term": self.term(value)}
        place = self._places.setdefault(id(value), len(self._met))
        if place == len(self._met):
            self._met.append(value)
        return {"object": place}

    def objects(self) -> list[Json]:
        """The objects met so far, and those that they hold."""
        made: list[Json] = []
        while len(made) < len(self._met):
            item = self._met[len(made)]
            if isinstance(item, Loop) and item.answers is not None:
                raise SavedStateError("a `for` waits for its next answer")
            kind = type(item).__name__
            made.append([kind, *(self.value(getattr(item, name)) for name in _slots(kind))])
        return made


def restore(agent: RunningAgent, data: Data) -> None:
    """Give a new agent of the same program a saved state.

    Raises:
        SavedStateError: the data are no saved state, or that of another program.
    """
    if data.get("version") != VERSION:
        raise SavedStateError(f"saved state of version {data.get('version')!r}; this is version {VERSION}")
    try:
        _restore(agent, data)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, *_ENDLESS) as error:
        raise SavedStateError(f"the saved state is damaged: {error!r}") from error


def _restore(agent: RunningAgent, data: Data) -> None:
    restorer = _Restorer(agent, data)
    beliefs, perceived = agent.beliefs, {}
    beliefs.clear()
    for place, plain, notes in data["beliefs"]:
        fact = Fact(restorer.literal(plain), restorer.terms(notes), place)
        beliefs.put(fact)
        if PERCEPT in fact.annotations:
            perceived[place] = fact
    beliefs.places = data["places"]
    if data.get("rules") is not None:
        agent.rules = {}
        for rule in data["rules"]:  # older states lack its place, which is behind its term
            *tokens, place = rule if isinstance(rule[-1], int) else (*rule, 0)
            clause = rule_of(restorer.literal(tokens))
            clause.place = place
            agent.rules.setdefault(clause.indicator, []).append(clause)
    beliefs.percepts = {perceived[place].plain: perceived[place] for place in data["perceived"]}
    agent.plans.restore(restorer.plans[: data["library"]], data["given"])
    state = data["random"]
    agent.random.setstate((state[0], tuple(state[1]), state[2]))
    agent.belief_version = agent.checked_version + bool(data["unchecked"])
    agent.phase, agent.alarms = Phase(data["phase"]), restorer.value(data["alarms"])
    for name in ("cycles", "now", "numbers", "percepts", "timers"):
        setattr(agent, name, restorer.value(data[name]))
    for name in ("conditions", "watchers", "suspensions"):
        setattr(agent, name, set(data[name]))
    for name, kind in _HELD.items():
        held = type(getattr(agent, name))(restorer.value(data[name]))
        if not all(isinstance(item, kind) for item in (held.values() if isinstance(held, dict) else held)):
            raise SavedStateError(f"the {name} of a saved state hold something else")
        setattr(agent, name, held)


class _Restorer(Decoder):
    """Turns data back into values; objects are made first, so that they can hold each other."""

    def __init__(self, agent: RunningAgent, data: Data) -> None:
        super().__init__(data["cells"], data.get("held", ()), agent.room)
        # The program's own plans are used as they are, others are read from their texts.
        own = {plan.name: plan for plan in agent.plans}
        self.plans: list[CompiledPlan] = []
        for item in data["plans"]:
            known = own.get(item["name"])
            if known is None or (known.text, known.plan.source) != (item["text"], item["source"]):
                known = CompiledPlan(_placed(item), item["name"])
            self.plans.append(known)
        self._objects: list[Any] = [object.__new__(_OBJECTS[kind]) for kind, *_ in data["objects"]]
        for made, (kind, *kept) in zip(self._objects, data["objects"], strict=True):
            names = _slots(kind)
            if len(kept) < len(names) - len(_ADDED.get(kind, ())):
                raise SavedStateError(f"a saved {kind} is incomplete")
            for name, value in zip_longest(names, kept):
                object.__setattr__(made, name, self.value(value))
            if isinstance(made, Frame):
                made.plan.compile()
                made.code = made.plan.code or EMPTY_TURN
            elif isinstance(made, Loop):
                made.answers = None

    def value(self, data: Any) -> Any:
        """A value."""
        if isinstance(data, list):
            return [self.value(item) for item in data]
        if not isinstance(data, dict):
            return data
        ((kind, kept),) = data.items()
        match kind:
            case "object":
                return self._objects[kept]
            case "term":
                return self.term(kept)
            case "tuple":
                return tuple([self.value(item) for item in kept])
            case "plan":
                return self.plans[kept]
        return _ENUMS[kind](kept)


def _placed(data: Data) -> Plan:
    """A plan read from its saved text, with the places it had."""
    plan = parse_plan(data["text"], data["source"])
    own, *rest = [Position(*item) for item in data["places"]]
    places = iter(rest)
    body = _with_places(plan.body, places)
    return replace(plan, position=own, body=body, provenance=data["provenance"])


def _with_places(body: Body, places: Iterator[Position]) -> Body:
    """The same steps with these places, in the order of `steps_of`."""
    made: list[BodyItem] = []
    for item in body:
        position = next(places)
        if isinstance(item, Step):
            made.append(replace(item, position=position))
        elif isinstance(item, If):
            branches = tuple((condition, _with_places(block, places)) for condition, block in item.branches)
            made.append(If(branches, _with_places(item.otherwise, places), position))
        else:
            made.append(replace(item, body=_with_places(item.body, places), position=position))
    return tuple(made)
