"""An agent's intentions made readable, as they are at the moment of asking (spec §5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.bdi.intentions import Frame, Intention
from engine.bdi.patterns import UNWRITTEN
from engine.bdi.printing import headline, text_of
from engine.bdi.syntax import Body, BodyItem, For, If, While
from engine.bdi.terms import Cell, Struct, deref
from engine.bdi.views import FrameView, IntentionView, ItemView, PendingStep

if TYPE_CHECKING:
    from engine.bdi.agent import BdiAgent


def pending_step(agent: BdiAgent) -> PendingStep | None:
    """The step that runs next if no event is handled before; None when no intention can run."""
    held = agent.atomic()
    able = (one for one in agent.ready if not one.suspended and (held is None or one is held))
    intention = next(able, None)
    if intention is None:
        return None
    frame = intention.frames[-1]
    step = frame.code[frame.pc]
    return PendingStep(
        intention.id,
        f"{frame.sign}{text_of(frame.literal)}",
        frame.plan.name,
        step.text,
        frame.plan.plan.source,
        step.item.position,
    )


FRAMES_SHOWN = 20
"""Frames of one intention that are shown at each end of its stack."""


def intentions(agent: BdiAgent) -> tuple[IntentionView, ...]:
    """All intentions, oldest first."""
    return tuple(map(intention_view, agent.intentions.values()))


def intention_view(intention: Intention) -> IntentionView:
    """One intention; of a stack of many plans the outermost and the innermost."""
    state, reason = "running", ""
    if intention.suspended:
        state, reason = "suspended", intention.suspended
    elif intention.pending is not None:
        state, reason = str(intention.pending.kind), text_of(intention.pending.what)
    elif intention.event is not None:
        state, reason = "waiting for an event", intention.event.text
    frames, left_out = intention.frames, max(0, len(intention.frames) - 2 * FRAMES_SHOWN)
    if left_out:
        frames = frames[:FRAMES_SHOWN] + frames[-FRAMES_SHOWN:]
    return IntentionView(intention.id, state, reason, tuple(map(_frame, frames)), left_out, intention.tag)


def in_short(view: IntentionView) -> IntentionView:
    """The view with one whole body, the innermost; of the others the step whose goal is pursued."""
    outer = (
        replace(frame, items=tuple(item for item in frame.items if item.current))
        for frame in view.frames[:-1]
    )
    return replace(view, frames=(*outer, *view.frames[-1:]))


def _frame(frame: Frame) -> FrameView:
    current = frame.code[frame.pc].item if frame.pc < len(frame.code) else None
    bindings = tuple(
        (name, text_of(frame.env[slot]))
        for name, slot in frame.plan.slots.items()
        if frame.env[slot] is not UNWRITTEN and not isinstance(deref(frame.env[slot]), Cell)
    )
    return FrameView(
        f"{frame.sign}{text_of(_told(frame))}",
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
        [one for one in frame.literal.annotations if isinstance(one, Struct) and one.functor == "error"]
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
