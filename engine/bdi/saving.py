"""An agent's whole state as data, and an agent that goes on from it in the same way.

It is taken between phases. A `for` is saved by the number of answers it has had: restoring asks its question
again and passes over as many. Functions, limits and settings are the host's and are given anew by the host.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.bdi.alarms import Alarm, Appointment, Deadline
from engine.bdi.beliefs import Fact
from engine.bdi.cycle import Phase
from engine.bdi.encoding import Decoder, Encoder, Json, SavedStateError
from engine.bdi.instructions import For
from engine.bdi.intentions import Event, Failure, Frame, Intention, Loop, Pending, Waiting
from engine.bdi.messages import Message, Performative
from engine.bdi.parser import parse_plan
from engine.bdi.plans import CompiledPlan
from engine.bdi.syntax import Body, BodyItem, If, Plan, Position, Step, steps_of
from engine.bdi.terms import PERCEPT, resolved, same

if TYPE_CHECKING:
    from engine.bdi.agent import BdiAgent

VERSION = 2

Data = dict[str, Any]
"""JSON objects; `restore` checks what it reads."""


def save(agent: BdiAgent) -> Data:
    """The state of an agent between two phases, ready for JSON."""
    return _Saver(agent).data()


def restore(agent: BdiAgent, data: Data) -> None:
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
    def __init__(self, agent: BdiAgent) -> None:
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
            "events": [self.event(one) for one in agent.events],
            "intentions": [self.intention(one) for one in agent.intentions.values()],
            "ready": [one.id for one in agent.ready],
            "atomics": [one.id for one in agent.atomics],
            "mail": [self.message(one) for one in agent.mail],
            "sent": [self.message(one) for one in agent.sent],
            "percepts": None if agent.percepts is None else code.terms(agent.percepts),
            "timers": sorted(agent.timers),
            "alarms": [[due, *self.alarm(one)] for due, _, one in sorted(agent.alarms) if not one.over],
            "random": json.loads(json.dumps(agent.random.getstate())),
        }
        made["plans"] = [self.plan(one) for one in self.plans]
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
            "cells": [self.code.cell(one) for one in event.cells],
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
            "frames": [self.frame(one) for one in intention.frames],
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
            "cells": [self.code.cell(one) for one in frame.cells],
            "loops": [self.loop(one) for one in frame.loops],
            "collapsed": frame.collapsed,
            "deadline": frame.deadline.number if frame.deadline else None,
        }

    def loop(self, loop: Loop) -> Data:
        trail = loop.answers.trail if loop.answers is not None else []
        return {
            "at": loop.at,
            "rounds": loop.rounds,
            "cells": [self.code.cell(one) for one in loop.cells],
            "trail": [self.code.cell(one) for one in trail],
        }

    def message(self, message: Message) -> Json:
        content = self.code.term(message.content)
        kind = message.performative.value
        return [message.sender, message.receiver, kind, content, message.number, message.answers]


class _Restorer:
    def __init__(self, agent: BdiAgent, data: Data) -> None:
        self.agent = agent
        self.data = data
        self.code = Decoder(data["cells"])
        self.plans: list[CompiledPlan] = []
        self.deadlines: dict[int, Deadline] = {}

    def restore(self) -> None:
        agent, data, code = self.agent, self.data, self.code
        agent.cycles, agent.now, agent.numbers = data["cycles"], data["now"], data["numbers"]
        agent.phase = _phase(data["phase"])
        self._beliefs()
        self._plans()
        state = data["random"]
        agent.random.setstate((state[0], tuple(state[1]), state[2]))
        agent.belief_version = agent.checked_version + bool(data["unchecked"])
        agent.intentions.clear()
        self._alarms()
        for one in data["intentions"]:
            agent.intentions[one["id"]] = Intention(one["id"], one["tag"])
        for one in data["intentions"]:
            self._intention(agent.intentions[one["id"]], one)
        agent.events.clear()
        agent.events.extend(self._event(one) for one in data["events"])
        for event in agent.events:
            if event.intention is not None:
                event.intention.event = event
        agent.ready.clear()
        agent.ready.extend(agent.intentions[one] for one in data["ready"])
        agent.atomics = [agent.intentions[one] for one in data["atomics"]]
        agent.mail.clear()
        agent.mail.extend(self._message(one) for one in data["mail"])
        agent.sent[:] = [self._message(one) for one in data["sent"]]
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
        for one in self.data["plans"]:
            known = own.get(one["name"])
            if known is not None and known.text == one["text"] and known.plan.source == one["source"]:
                self.plans.append(known)
            else:
                self.plans.append(CompiledPlan(_placed(one), one["name"]))
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
        for one in data["frames"]:
            frame = self._frame(one)
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
        event = Event(
            data["sign"],
            self.code.literal(data["literal"]),
            None if data["intention"] is None else self.agent.intentions[data["intention"]],
            tuple(self.code.cells[one] for one in data["cells"]),
            None if data["failure"] is None else self._failure(data["failure"]),
            data["tag"],
        )
        if data["deadline"] is not None:
            event.deadline = self.deadlines[data["deadline"]]
            event.deadline.event = event
        return event

    def _failure(self, data: Any) -> Failure:
        error_id, message, code, source, line, details = data
        return Failure(error_id, message, code, source, line, self.code.terms(details))

    def _message(self, data: Any) -> Message:
        sender, receiver, kind, content, number, answers = data
        return Message(sender, receiver, Performative(kind), self.code.term(content), number, answers)

    def _frame(self, data: Data) -> Frame:
        plan = self.plans[data["plan"]]
        plan.compile()
        cells = tuple(self.code.cells[one] for one in data["cells"])
        event = Event(data["sign"], self.code.literal(data["literal"]), None, cells)
        event.deadline = None if data["deadline"] is None else self.deadlines[data["deadline"]]
        frame = Frame(plan, list(self.code.terms(data["env"])), event)
        frame.pc, frame.collapsed = data["pc"], data["collapsed"]
        for one in data["loops"]:
            self._loop(frame, one)
        return frame

    def _loop(self, frame: Frame, data: Data) -> None:
        """Bring a loop's question to the answer it stood at, then everything it bound to what was saved."""
        cells = [self.code.cells[one] for one in data["cells"]]
        loop = Loop(data["at"], None, cells)
        loop.rounds = data["rounds"]
        frame.loops.append(loop)
        step = frame.code[loop.at]
        if not isinstance(step, For):
            return
        saved = [(value, resolved(value)) for value in frame.env]
        bound = [(cell, cell.ref) for cell in (*cells, *(self.code.cells[one] for one in data["trail"]))]
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


def _phase(name: str) -> Phase:
    if name not in set(Phase):
        raise SavedStateError(f"the saved state has no phase {name!r:.40}")
    return Phase(name)


def _placed(data: Data) -> Plan:
    """A plan read from its saved text, with the places it had."""
    plan = parse_plan(data["text"], data["source"])
    own, *rest = [Position(*one) for one in data["places"]]
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
