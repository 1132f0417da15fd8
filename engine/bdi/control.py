"""What an operator, or a program, does to goals and intentions from outside their plans.

An agent's intentions made readable, as they are at the moment of asking.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from engine.bdi import goal_states
from engine.bdi import trace as record
from engine.bdi import waits as waiting
from engine.bdi.errors import ErrorId
from engine.bdi.intentions import Frame, Intention, RunningAgent
from engine.bdi.printer import SHOWN, headline, shown_text, text_of
from engine.bdi.syntax import Body, BodyItem, For, If, While
from engine.bdi.term_compiler import UNWRITTEN
from engine.bdi.terms import Cell, Cons, Struct, deref
from engine.bdi.trace import Change, FrameView, IntentionView, ItemView, PendingStep
from engine.bdi.unification import Trail, undo, unify


def goals(agent: RunningAgent) -> Iterator[tuple[Intention, int, Frame]]:
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


def with_goal(agent: RunningAgent, pattern: Struct) -> list[tuple[Intention, int]]:
    """Intentions that pursue such a goal, each with the place of the deepest one that fits."""
    result: dict[int, tuple[Intention, int]] = {}
    for intention, place, frame in goals(agent):
        if _fits(pattern, frame.literal):
            result.setdefault(intention.id, (intention, place))
    return list(result.values())


def drop(agent: RunningAgent, intention: Intention, reason: str) -> None:
    """Take an intention away without a failure event."""
    agent.end(intention, Change.DROPPED, reason)


def drop_goal(agent: RunningAgent, pattern: Struct, *, events: bool) -> None:
    """Drop the intentions with such a goal; with `events` also what would make one."""
    for intention, _ in with_goal(agent, pattern):
        drop(agent, intention, "its goal was dropped")
    if events:
        drop_events(agent, pattern)


def drop_events(agent: RunningAgent, pattern: Struct | None) -> None:
    """Drop waiting goal events that fit, or all events; an intention that waits for one goes with it."""
    for event in list(agent.events):
        if pattern is None or (event.sign == "+!" and _fits(pattern, event.literal)):
            agent.trace(record.EventDropped, event.text, "dropped")
            if event.intention is not None:
                drop(agent, event.intention, "its goal was dropped")
            else:
                agent.events.remove(event)
                if event.deadline is not None:
                    event.deadline.over = True
    for appointment in waiting.appointments(agent):
        event = appointment.event
        if pattern is None or (event.sign == "+!" and _fits(pattern, event.literal)):
            appointment.over = True


def suspend(agent: RunningAgent, intention: Intention, reason: str) -> None:
    """Hold an intention back before its next step; what it waits for continues."""
    if not intention.suspended:
        intention.suspended = reason
        agent.suspensions.add(intention.id)
        agent.changed_intention(intention, Change.SUSPENDED, reason)


def resume(agent: RunningAgent, intention: Intention) -> None:
    """Let a suspended intention continue."""
    if intention.suspended:
        intention.suspended = ""
        agent.suspensions.discard(intention.id)
        agent.changed_intention(intention, Change.RESUMED)
        if intention.parked:
            intention.parked = False
            agent.settle(intention)


def succeed_goal(agent: RunningAgent, pattern: Struct) -> None:
    """Take such goals as achieved: the bindings of the pattern reach their callers, which continue."""
    for intention, place in with_goal(agent, pattern):
        waiting.call_off(agent, intention)
        while len(intention.frames) > place + 1:
            intention.pop()
        frame = intention.frames[-1]
        unify(frame.literal, pattern, [])
        frame.loops.clear()
        frame.pc = len(frame.code)
        agent.settle(intention, cut_short=True)


def fail_goal(agent: RunningAgent, pattern: Struct) -> None:
    """Let such goals fail."""
    for intention, place in with_goal(agent, pattern):
        waiting.call_off(agent, intention)
        goal_states.fail_goal(
            agent, intention, place, ErrorId.INTERNAL_ACTION_FAILED, "the goal was made to fail"
        )


def next_to_run(agent: RunningAgent) -> Intention | None:
    """The intention whose step runs next if no event is handled before; None when none can run."""
    held = agent.atomic()
    able = (item for item in agent.ready if not item.suspended and (held is None or item is held))
    return next(able, None)


def pending_step(agent: RunningAgent) -> PendingStep | None:
    """The step that runs next if no event is handled before; None when no intention can run."""
    intention = next_to_run(agent)
    if intention is None:
        return None
    frame = intention.frames[-1]
    step = frame.code[frame.pc]
    return PendingStep(
        intention.id,
        f"{frame.sign}{shown_text(frame.literal)}",
        frame.plan.name,
        step.text,
        frame.plan.plan.source,
        step.item.position,
    )


FRAMES_SHOWN = 20
"""Frames of one intention that are shown at each end of its stack."""


def intentions(agent: RunningAgent) -> tuple[IntentionView, ...]:
    """All intentions, oldest first."""
    return tuple(map(intention_view, agent.intentions.values()))


def intention_view(intention: Intention) -> IntentionView:
    """One intention; of a stack of many plans the outermost and the innermost."""
    state, reason = "running", ""
    if intention.suspended:
        state, reason = "suspended", intention.suspended
    elif intention.pending is not None:
        state, reason = str(intention.pending.kind), shown_text(intention.pending.what)
    elif intention.event is not None:
        state, reason = "waiting for an event", intention.event.text
    frames, left_out = intention.frames, max(0, len(intention.frames) - 2 * FRAMES_SHOWN)
    if left_out:
        frames = frames[:FRAMES_SHOWN] + frames[-FRAMES_SHOWN:]
    room = [SHOWN]
    shown = tuple(_frame(frame, room) for frame in frames)
    return IntentionView(intention.id, state, reason, shown, left_out, intention.tag)


def abridged(view: IntentionView) -> IntentionView:
    """The view with one whole body, the innermost; of the others the step whose goal is pursued."""
    outer = (
        replace(frame, items=tuple(item for item in frame.items if item.current))
        for frame in view.frames[:-1]
    )
    return replace(view, frames=(*outer, *view.frames[-1:]))


def _bindings(frame: Frame, room: list[int]) -> Iterator[tuple[str, str]]:
    """The variables of a frame with their values; of large terms less, once they have used up the room."""
    for name, slot in frame.plan.slots.items():
        value = deref(frame.env[slot])
        if isinstance(value, Struct | Cons):
            text = text_of(value, limit=max(room[0], SHORTENED))
            room[0] -= len(text)
        elif frame.env[slot] is not UNWRITTEN and not isinstance(value, Cell):
            text = shown_text(value)
        else:
            continue
        yield name, text


SHORTENED = 200
"""Characters at which a large term of an intention is cut that has shown as much as `SHOWN` already."""


def _frame(frame: Frame, room: list[int]) -> FrameView:
    current = frame.code[frame.pc].item if frame.pc < len(frame.code) else None
    bindings = tuple(_bindings(frame, room))
    return FrameView(
        f"{frame.sign}{shown_text(_told(frame))}",
        frame.plan.name,
        tuple(_items(frame.plan.plan.body, current, 0)),
        bindings,
        frame.collapsed,
    )


def _told(frame: Frame) -> Struct:
    """The goal of a frame; of why a goal has failed only the kind of error."""
    if frame.sign not in ("-!", "-?"):
        return frame.literal
    return frame.literal.with_annotations(
        [term for term in frame.literal.annotations if isinstance(term, Struct) and term.functor == "error"]
    )


def _items(body: Body, current: BodyItem | None, depth: int) -> Iterator[ItemView]:
    for item in body:
        yield ItemView(headline(item), depth, item is current, item.position)
        if isinstance(item, If):
            for number, (condition, block) in enumerate(item.branches):
                if number:
                    yield ItemView(f"elif ({text_of(condition)})", depth, False, item.position)
                yield from _items(block, current, depth + 1)
            if item.otherwise:
                yield ItemView("else", depth, False, item.position)
                yield from _items(item.otherwise, current, depth + 1)
        elif isinstance(item, For | While):
            yield from _items(item.body, current, depth + 1)
