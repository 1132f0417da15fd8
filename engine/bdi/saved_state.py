"""An agent's whole state as data, and an agent that goes on from it in the same way.

It is taken between phases. A `for` is saved by the number of answers it has had: restoring asks its question
again and passes over as many. Functions, limits and settings are the host's and are given anew by the host.

Terms as data for JSON: flat lists in postfix order, so depth costs nothing; variables stay shared.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from engine.bdi.beliefs import Fact
from engine.bdi.errors import Position
from engine.bdi.instructions import For
from engine.bdi.intentions import (
    Alarm,
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
from engine.bdi.terms import NIL, PERCEPT, Cell, Cons, Struct, Term, Var, children, resolved, same
from engine.bdi.unification import UNWRITTEN

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class SavedStateError(ValueError):
    """Data that is no saved state, or one of another program."""


class Encoder:
    """Turns terms into data and numbers the variables it meets."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._cells: list[Cell] = []

    def cell(self, cell: Cell) -> int:
        """The number of a variable."""
        number = self._numbers.get(id(cell))
        if number is None:
            number = self._numbers[id(cell)] = len(self._cells)
            self._cells.append(cell)
        return number

    def term(self, term: Term) -> list[Json]:
        """A term; what its variables stand for is kept apart, by `bindings`."""
        tokens: list[Json] = []
        waiting = [term]
        while waiting:
            item = waiting.pop()
            tokens.append(self._token(item))
            waiting.extend(children(item))
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
        if isinstance(term, Struct):
            return ["struct", term.functor, len(term.args), len(term.annotations), term.negated]
        return "[]" if term is NIL else "[|]"

    def bindings(self) -> list[Json]:
        """What each variable met so far stands for, None where it has no value; call it last."""
        made: list[Json] = []
        while len(made) < len(self._cells):
            ref = self._cells[len(made)].ref
            made.append(None if ref is None else self.term(ref))
        return made


class Decoder:
    """Turns data back into terms."""

    def __init__(self, bindings: Sequence[Json]) -> None:
        self.cells = [Cell() for _ in bindings]
        for cell, data in zip(self.cells, bindings, strict=True):
            if data is not None:
                cell.ref = self.term(data)

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
            case ["var", str(name)]:
                stack.append(Var(name))
            case ["struct", str(functor), int(args), int(notes), bool(negated)]:
                first = len(stack) - args - notes
                parts = stack[first:]
                stack[first:] = [Struct(functor, tuple(parts[:args]), parts[args:], negated)]
            case _:
                raise SavedStateError(f"a saved term holds {token!r:.40}")


VERSION = 2

Data = dict[str, Any]
"""JSON objects; `restore` checks what it reads."""


def save(agent: RunningAgent) -> Data:
    """The state of an agent between two phases, ready for JSON."""
    return _Saver(agent).data()


def restore(agent: RunningAgent, data: Data) -> None:
    """Give a new agent of the same program a saved state.

    Raises:
        SavedStateError: the data are no saved state, or that of another program.
    """
    if data.get("version") != VERSION:
        raise SavedStateError(f"saved state of version {data.get('version')!r}; this is version {VERSION}")
    try:
        _Restorer(agent, data).restore()
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise SavedStateError(f"the saved state is damaged: {error!r}") from error


class _Saver:
    def __init__(self, agent: RunningAgent) -> None:
        self.agent = agent
        self.code = Encoder()
        self.plans: list[CompiledPlan] = list(agent.plans)

    def data(self) -> Data:
        agent, code = self.agent, self.code
        made: Data = {
            "version": VERSION,
            "cycles": agent.cycles,
            "phase": agent.phase.value,
            "now": agent.now,
            "numbers": agent.numbers,
            "given": agent.plans.given,
            "beliefs": [
                [fact.place, code.term(fact.plain), code.terms(fact.annotations)] for fact in agent.beliefs
            ],
            "places": agent.beliefs.places,
            "perceived": [fact.place for fact in agent.beliefs.percepts.values()],
            "unchecked": agent.belief_version != agent.checked_version,
            "library": len(self.plans),
            "events": [self.event(event) for event in agent.events],
            "intentions": [self.intention(intention) for intention in agent.intentions.values()],
            "ready": [intention.id for intention in agent.ready],
            "atomics": [intention.id for intention in agent.atomics],
            "mail": [self.message(message) for message in agent.mail],
            "sent": [self.message(message) for message in agent.sent],
            "percepts": None if agent.percepts is None else code.terms(agent.percepts),
            "timers": sorted(agent.timers),
            "alarms": [[due, *self.alarm(alarm)] for due, _, alarm in sorted(agent.alarms) if not alarm.over],
            "random": json.loads(json.dumps(agent.random.getstate())),
        }
        made["plans"] = [self.plan(plan) for plan in self.plans]
        made["cells"] = code.bindings()
        return made

    def plan(self, plan: CompiledPlan) -> Data:
        """A plan by its text; places are kept, because failures name them."""
        source = plan.plan
        return {
            "name": plan.name,
            "text": plan.text,
            "source": source.source,
            "provenance": dict(source.provenance),
            "places": [list(source.position), *(list(item.position) for item in steps_of(source.body))],
        }

    def alarm(self, alarm: Alarm) -> list[Json | Data]:
        """Its number, and the event that it raises or the milliseconds that it gave."""
        if isinstance(alarm, Appointment):
            return [alarm.number, self.event(alarm.event)]
        assert isinstance(alarm, Deadline)
        return [alarm.number, alarm.limit]

    def event(self, event: Event) -> Data:
        return {
            "sign": event.sign,
            "literal": self.code.term(event.literal),
            "intention": event.intention.id if event.intention else None,
            "cells": [self.code.cell(cell) for cell in event.cells],
            "failure": self.failure(event.failure),
            "tag": event.tag,
            "deadline": event.deadline.number if event.deadline else None,
        }

    def failure(self, failure: Failure | None) -> Json:
        if failure is None:
            return None
        details = self.code.terms(failure.details)
        return [failure.id, failure.message, failure.code, failure.source, failure.line, details]

    def intention(self, intention: Intention) -> Data:
        pending = intention.pending
        return {
            "id": intention.id,
            "tag": intention.tag,
            "frames": [self.frame(frame) for frame in intention.frames],
            "suspended": intention.suspended,
            "parked": intention.parked,
            "pending": None if pending is None else self.pending(pending),
            "question": None if intention.question is None else self.message(intention.question),
            "asked": None if intention.asked is None else self.code.term(intention.asked),
        }

    def pending(self, pending: Pending) -> Data:
        return {
            "kind": pending.kind.value,
            "number": pending.number,
            "what": self.code.term(pending.what),
            "reason": pending.reason,
            "until": pending.until,
            "since": pending.since,
            "event": None if pending.event is None else self.event(pending.event),
        }

    def frame(self, frame: Frame) -> Data:
        if frame.plan not in self.plans:
            self.plans.append(frame.plan)  # removed from the library while it runs
        return {
            "plan": self.plans.index(frame.plan),
            "env": self.code.terms(frame.env),
            "pc": frame.pc,
            "sign": frame.sign,
            "literal": self.code.term(frame.literal),
            "cells": [self.code.cell(cell) for cell in frame.cells],
            "loops": [self.loop(loop) for loop in frame.loops],
            "collapsed": frame.collapsed,
            "deadline": frame.deadline.number if frame.deadline else None,
        }

    def loop(self, loop: Loop) -> Data:
        trail = loop.answers.trail if loop.answers is not None else []
        return {
            "at": loop.at,
            "rounds": loop.rounds,
            "cells": [self.code.cell(cell) for cell in loop.cells],
            "trail": [self.code.cell(cell) for cell in trail],
        }

    def message(self, message: Message) -> Json:
        content = self.code.term(message.content)
        kind = message.performative.value
        return [message.sender, message.receiver, kind, content, message.number, message.answers]


class _Restorer:
    def __init__(self, agent: RunningAgent, data: Data) -> None:
        self.agent = agent
        self.data = data
        self.code = Decoder(data["cells"])
        self.plans: list[CompiledPlan] = []
        self.deadlines: dict[int, Deadline] = {}

    def restore(self) -> None:
        agent, data, code = self.agent, self.data, self.code
        agent.cycles, agent.now, agent.numbers = data["cycles"], data["now"], data["numbers"]
        if data["phase"] not in set(Phase):
            raise SavedStateError(f"the saved state has no phase {data['phase']!r:.40}")
        agent.phase = Phase(data["phase"])
        self._beliefs()
        self._plans()
        state = data["random"]
        agent.random.setstate((state[0], tuple(state[1]), state[2]))
        agent.belief_version = agent.checked_version + bool(data["unchecked"])
        agent.intentions.clear()
        self._alarms()
        for item in data["intentions"]:
            agent.intentions[item["id"]] = Intention(item["id"], item["tag"])
        for item in data["intentions"]:
            self._intention(agent.intentions[item["id"]], item)
        agent.events.clear()
        agent.events.extend(self._event(element) for element in data["events"])
        for event in agent.events:
            if event.intention is not None:
                event.intention.event = event
        agent.ready.clear()
        agent.ready.extend(agent.intentions[element] for element in data["ready"])
        agent.atomics = [agent.intentions[element] for element in data["atomics"]]
        agent.mail.clear()
        agent.mail.extend(self._message(element) for element in data["mail"])
        agent.sent[:] = [self._message(element) for element in data["sent"]]
        percepts = data["percepts"]
        agent.percepts = None if percepts is None else tuple(map(code.literal, percepts))
        agent.timers = [(due, number) for due, number in data["timers"]]
        heapq.heapify(agent.timers)

    def _beliefs(self) -> None:
        beliefs, perceived = self.agent.beliefs, {}
        beliefs.clear()
        for place, plain, notes in self.data["beliefs"]:
            fact = Fact(self.code.literal(plain), self.code.terms(notes), place)
            beliefs.put(fact)
            if PERCEPT in fact.annotations:
                perceived[place] = fact
        beliefs.places = self.data["places"]
        beliefs.percepts = {perceived[place].plain: perceived[place] for place in self.data["perceived"]}

    def _plans(self) -> None:
        """The program's own plans are used as they are, others are read from their texts."""
        own = {plan.name: plan for plan in self.agent.plans}
        for item in self.data["plans"]:
            known = own.get(item["name"])
            if known is not None and known.text == item["text"] and known.plan.source == item["source"]:
                self.plans.append(known)
            else:
                self.plans.append(CompiledPlan(_placed(item), item["name"]))
        self.agent.plans.restore(self.plans[: self.data["library"]], self.data["given"])

    def _alarms(self) -> None:
        """Appointments whole; deadlines, which events and frames name by their numbers."""
        alarms = self.agent.alarms
        alarms.clear()
        for due, number, what in self.data["alarms"]:
            if isinstance(what, dict):
                alarms.append((due, number, Appointment(number, self._event(what))))
            else:
                self.deadlines[number] = Deadline(number, what)
                alarms.append((due, number, self.deadlines[number]))
        heapq.heapify(alarms)

    def _intention(self, intention: Intention, data: Data) -> None:
        agent = self.agent
        for item in data["frames"]:
            frame = self._frame(item)
            intention.push(frame)
            if frame.deadline is not None:
                frame.deadline.intention = intention
        intention.suspended, intention.parked = data["suspended"], data["parked"]
        if intention.suspended:
            agent.suspensions.add(intention.id)
        if data["question"] is not None:
            intention.question = self._message(data["question"])
            intention.asked = self.code.term(data["asked"])
        if data["pending"] is not None:
            self._pending(intention, data["pending"])

    def _pending(self, intention: Intention, data: Data) -> None:
        agent = self.agent
        event = None if data["event"] is None else self._event(data["event"])
        pending = Pending(
            Waiting(data["kind"]),
            data["number"],
            self.code.term(data["what"]),
            data["reason"],
            data["until"],
            data["since"],
            event,
        )
        intention.pending = pending
        agent.pending[pending.number] = intention
        if pending.kind is Waiting.CONDITION:
            agent.conditions.add(pending.number)
        elif pending.kind is Waiting.EVENT:
            agent.watchers.add(pending.number)

    def _event(self, data: Data) -> Event:
        failure: Failure | None = None
        if data["failure"] is not None:
            error_id, message, code, source, line, details = data["failure"]
            failure = Failure(error_id, message, code, source, line, self.code.terms(details))
        event = Event(
            data["sign"],
            self.code.literal(data["literal"]),
            None if data["intention"] is None else self.agent.intentions[data["intention"]],
            tuple(self.code.cells[item] for item in data["cells"]),
            failure,
            data["tag"],
        )
        if data["deadline"] is not None:
            event.deadline = self.deadlines[data["deadline"]]
            event.deadline.event = event
        return event

    def _message(self, data: Any) -> Message:
        sender, receiver, kind, content, number, answers = data
        return Message(sender, receiver, Performative(kind), self.code.term(content), number, answers)

    def _frame(self, data: Data) -> Frame:
        plan = self.plans[data["plan"]]
        plan.compile()
        cells = tuple(self.code.cells[element] for element in data["cells"])
        event = Event(data["sign"], self.code.literal(data["literal"]), None, cells)
        event.deadline = None if data["deadline"] is None else self.deadlines[data["deadline"]]
        frame = Frame(plan, list(self.code.terms(data["env"])), event)
        frame.pc, frame.collapsed = data["pc"], data["collapsed"]
        for item in data["loops"]:
            self._loop(frame, item)
        return frame

    def _loop(self, frame: Frame, data: Data) -> None:
        """Bring a loop's question to the answer it stood at, then everything it bound to what was saved."""
        cells = [self.code.cells[item] for item in data["cells"]]
        loop = Loop(data["at"], None, cells)
        loop.rounds = data["rounds"]
        frame.loops.append(loop)
        step = frame.code[loop.at]
        if not isinstance(step, For):
            return
        saved = [(value, resolved(value)) for value in frame.env]
        bound = [(cell, cell.ref) for cell in (*cells, *(self.code.cells[item] for item in data["trail"]))]
        for cell, _ in bound:
            cell.ref = None
        loop.answers = step.condition.answers(frame.env, self.agent)
        for _ in range(loop.rounds):
            loop.answers.advance()
        for cell, ref in bound:
            if cell.ref is None:
                cell.ref = ref
        for slot, (value, meant) in enumerate(saved):
            # What the question has bound stays bound by it; the rest is as the body left it.
            if not same(frame.env[slot], meant):
                frame.env[slot] = value


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
