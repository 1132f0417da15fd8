"""What the events of a reasoner do to a state; `engine.core.fold` applies them with all others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.core import events as ev
from engine.core.journal import Event, Payload
from engine.core.reasoner import Generation, GenerationStage, MindBreakpoint
from engine.core.state import AgentState, count_id, folds
from engine.value import fields_of

GENERATIONS_KEPT = 50
"""Generations that a state remembers after their end."""


@folds(ev.ReasonerAdvanced)
def _advanced(state: AgentState, payload: ev.ReasonerAdvanced, event: Event) -> None:
    state.mind = payload.mind
    state.loops += payload.steps
    for item in payload.intentions:
        state.intentions[item.id] = item
    for ended in payload.ended:
        state.intentions.pop(ended.intention, None)
    for held in payload.believed:
        state.held_beliefs.pop(held.text, None)
        state.held_beliefs[held.text] = replace(held, event=event.ref, tick=event.tick)
    for text in payload.forgotten:
        state.held_beliefs.pop(text, None)
    gone = {ended.intention for ended in payload.ended}
    state.wanted = [item for item in (*state.wanted, *payload.wanted) if item.intention not in gone]
    if payload.generated is not None:
        state.generated = payload.generated
    if payload.stride_over:
        end_stride(state)
    waits = any(item.state not in ("running", "suspended") for item in state.intentions.values())
    if payload.mind.idle and not waits:
        state.grants, state.stride = 0, None


def end_stride(state: AgentState) -> None:
    """The operator's step is done."""
    state.grants = max(0, state.grants - 1)
    if not state.grants:
        state.stride = None


def roused(state: AgentState) -> None:
    """Something came in that the reasoner has not seen yet."""
    if state.reasons and state.mind is not None and (state.mind.idle or state.mind.poised):
        state.mind = replace(state.mind, idle=False, poised=False)


def answered(state: AgentState, step: str) -> None:
    """An action that an intention waited for has ended."""
    before = len(state.wanted)
    state.wanted = [action for action in state.wanted if action.step != step]
    if len(state.wanted) != before:
        roused(state)


@folds(ev.TimePassed, ev.BeliefTold, ev.MessageHeard)
def _roused(state: AgentState, payload: Payload, event: Event) -> None:
    roused(state)


@folds(ev.IntentionSteered)
def _steered(state: AgentState, payload: ev.IntentionSteered, event: Event) -> None:
    roused(state)
    if payload.how in ("drop", "fail"):
        state.wanted = [action for action in state.wanted if action.intention != payload.intention]


@folds(ev.MindBreakpointChanged)
def _breakpoint_changed(state: AgentState, payload: ev.MindBreakpointChanged, event: Event) -> None:
    count_id(state, payload.breakpoint)
    if payload.cleared:
        state.mind_breakpoints.pop(payload.breakpoint, None)
        return
    known = state.mind_breakpoints.get(payload.breakpoint)
    if known is None:
        known = MindBreakpoint(payload.breakpoint, payload.on, payload.pattern)
    state.mind_breakpoints[payload.breakpoint] = replace(known, enabled=payload.enabled, event=event.ref)


@folds(ev.MindBreakpointHit)
def _breakpoint_hit(state: AgentState, payload: ev.MindBreakpointHit, event: Event) -> None:
    known = state.mind_breakpoints.get(payload.breakpoint)
    if known is not None:
        state.mind_breakpoints[payload.breakpoint] = replace(known, hits=known.hits + 1)


def _move(
    state: AgentState, payload: Any, event: Event, stage: GenerationStage, *fields: str, **changes: Any
) -> None:
    """Bring a generation to a stage, with fields of the event of the same name and other changes."""
    known = state.generations.get(payload.generation)
    if known is not None:
        changes |= fields_of(payload, *fields)
        moved = replace(known, stage=stage, event=event.ref, at=event.at, **changes)
        state.generations[payload.generation] = moved


@folds(ev.TracingSet)
def _tracing(state: AgentState, payload: ev.TracingSet, event: Event) -> None:
    state.tracing = payload.on


@folds(ev.GenerationBegun)
def _begun(state: AgentState, payload: ev.GenerationBegun, event: Event) -> None:
    count_id(state, payload.generation)
    made = Generation(payload.generation, payload.goal, payload.trigger, event=event.ref, at=event.at)
    state.generations[payload.generation] = made
    over = [generation.id for generation in state.generations.values() if generation.stage.over]
    for ident in over[: max(0, len(over) - GENERATIONS_KEPT)]:
        del state.generations[ident]


@folds(ev.GenerationAsked)
def _asked(state: AgentState, payload: ev.GenerationAsked, event: Event) -> None:
    _move(state, payload, event, GenerationStage.ASKED, "attempt", "model", "system", "prompt")


@folds(ev.GenerationAnswered)
def _answered(state: AgentState, payload: ev.GenerationAnswered, event: Event) -> None:
    model = ("model",) if payload.model else ()
    fields = ("answer", "tokens", "duration_ms", *model)
    _move(state, payload, event, GenerationStage.ANSWERED, *fields, reason=payload.error)


@folds(ev.GenerationReviewed)
def _reviewed(state: AgentState, payload: ev.GenerationReviewed, event: Event) -> None:
    fields = ("plans", "problems", "repair", "inventions")
    _move(state, payload, event, GenerationStage.REVIEWED, *fields, reason=payload.failure)


@folds(ev.PlansHeld)
def _held(state: AgentState, payload: ev.PlansHeld, event: Event) -> None:
    _move(state, payload, event, GenerationStage.HELD)


@folds(ev.PlansDecided)
def _decided(state: AgentState, payload: ev.PlansDecided, event: Event) -> None:
    _move(state, payload, event, GenerationStage.DECIDED, "decision", decision_text=payload.text)


@folds(ev.GenerationSettled)
def _settled(state: AgentState, payload: ev.GenerationSettled, event: Event) -> None:
    roused(state)
    stage = GenerationStage.INSTALLED if payload.plans else GenerationStage.FAILED
    _move(state, payload, event, stage, "reason")
