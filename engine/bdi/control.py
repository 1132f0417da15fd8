"""What an operator, or a program, does to goals and intentions from outside their plans (spec §1.7, §5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.bdi import alarms, failures, waiting
from engine.bdi import trace as record
from engine.bdi.intentions import Frame, Intention
from engine.bdi.problems import ErrorId
from engine.bdi.terms import Struct
from engine.bdi.trace import Change
from engine.bdi.unification import Trail, undo, unify

if TYPE_CHECKING:
    from engine.bdi.agent import BdiAgent


def goals(agent: BdiAgent) -> Iterator[tuple[Intention, int, Frame]]:
    """Every goal that is pursued: its intention, its place on the stack, its frame; deepest last.

    A goal whose failure is being handled counts as pursued.
    """
    for intention in list(agent.intentions.values()):
        for place, frame in enumerate(list(intention.frames)):
            if frame.sign[1:] and frame.sign[0] != "^":
                yield intention, place, frame


def _fits(pattern: Struct, literal: Struct) -> bool:
    trail: Trail = []
    fits = unify(pattern, literal, trail)
    undo(trail, 0)
    return fits


def _with_goal(agent: BdiAgent, pattern: Struct) -> list[tuple[Intention, int]]:
    """Intentions that pursue such a goal, each with the place of the deepest one that fits."""
    found: dict[int, tuple[Intention, int]] = {}
    for intention, place, frame in goals(agent):
        if _fits(pattern, frame.literal):
            found.setdefault(intention.id, (intention, place))
    return list(found.values())


def drop(agent: BdiAgent, intention: Intention, reason: str) -> None:
    """Take an intention away without a failure event."""
    agent.end(intention, Change.DROPPED, reason)


def drop_goal(agent: BdiAgent, pattern: Struct, *, events: bool) -> None:
    """Drop the intentions with such a goal; with `events` also what would make one."""
    for intention, _ in _with_goal(agent, pattern):
        drop(agent, intention, "its goal was dropped")
    if events:
        drop_events(agent, pattern)


def drop_events(agent: BdiAgent, pattern: Struct | None) -> None:
    """Drop waiting goal events that fit, or all events; an intention that waits for one goes with it."""
    for event in list(agent.events):
        if pattern is None or (event.sign == "+!" and _fits(pattern, event.literal)):
            if agent.tracer is not None:
                agent.tracer(record.EventDropped(agent.name, agent.cycles, event.text, "dropped"))
            if event.intention is not None:
                drop(agent, event.intention, "its goal was dropped")
            else:
                agent.events.remove(event)
                if event.deadline is not None:
                    event.deadline.over = True
    for appointment in alarms.appointments(agent):
        event = appointment.event
        if pattern is None or (event.sign == "+!" and _fits(pattern, event.literal)):
            appointment.over = True


def suspend(agent: BdiAgent, intention: Intention, reason: str) -> None:
    """Hold an intention back before its next step; what it waits for goes on."""
    if not intention.suspended:
        intention.suspended = reason
        agent.suspensions.add(intention.id)
        agent.changed_intention(intention, Change.SUSPENDED, reason)


def resume(agent: BdiAgent, intention: Intention) -> None:
    """Let a suspended intention go on."""
    if intention.suspended:
        intention.suspended = ""
        agent.suspensions.discard(intention.id)
        agent.changed_intention(intention, Change.RESUMED)
        if intention.parked:
            intention.parked = False
            agent.settle(intention)


def suspend_goal(agent: BdiAgent, pattern: Struct) -> None:
    """Suspend the intentions with such a goal."""
    for intention, _ in _with_goal(agent, pattern):
        suspend(agent, intention, "its goal was suspended")


def resume_goal(agent: BdiAgent, pattern: Struct) -> None:
    """Resume the intentions with such a goal."""
    for intention, _ in _with_goal(agent, pattern):
        resume(agent, intention)


def succeed_goal(agent: BdiAgent, pattern: Struct) -> None:
    """Take such goals as achieved: the bindings of the pattern reach their callers, which go on."""
    for intention, place in _with_goal(agent, pattern):
        waiting.call_off(agent, intention)
        while len(intention.frames) > place + 1:
            intention.pop()
        frame = intention.frames[-1]
        unify(frame.literal, pattern, [])
        frame.loops.clear()
        frame.pc = len(frame.code)
        agent.settle(intention, cut_short=True)


def fail_goal(agent: BdiAgent, pattern: Struct) -> None:
    """Let such goals fail."""
    for intention, place in _with_goal(agent, pattern):
        waiting.call_off(agent, intention)
        failures.fail_goal(
            agent, intention, place, ErrorId.INTERNAL_ACTION_FAILED, "the goal was made to fail"
        )
