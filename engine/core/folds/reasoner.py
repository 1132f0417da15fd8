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
def _advanced(state: AgentState, said: ev.ReasonerAdvanced, event: Event) -> None:
    state.mind = said.mind
    state.loops += said.steps
    for item in said.intentions:
        state.intentions[item.id] = item
    for ended in said.ended:
        state.intentions.pop(ended.intention, None)
    for held in said.believed:
        state.held_beliefs.pop(held.text, None)
        state.held_beliefs[held.text] = replace(held, event=event.ref, tick=event.tick)
    for text in said.forgotten:
        state.held_beliefs.pop(text, None)
    gone = {ended.intention for ended in said.ended}
    state.wanted = [item for item in (*state.wanted, *said.wanted) if item.intention not in gone]
    if said.generated is not None:
        state.generated = said.generated
    if said.stride_over:
        end_stride(state)
    waits = any(item.state not in ("running", "suspended") for item in state.intentions.values())
    if said.mind.idle and not waits:
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
def _roused(state: AgentState, said: Payload, event: Event) -> None:
    roused(state)


@folds(ev.IntentionSteered)
def _steered(state: AgentState, said: ev.IntentionSteered, event: Event) -> None:
    roused(state)
    if said.how in ("drop", "fail"):
        state.wanted = [action for action in state.wanted if action.intention != said.intention]


@folds(ev.MindBreakpointChanged)
def _breakpoint_changed(state: AgentState, said: ev.MindBreakpointChanged, event: Event) -> None:
    count_id(state, said.breakpoint)
    if said.cleared:
        state.mind_breakpoints.pop(said.breakpoint, None)
        return
    known = state.mind_breakpoints.get(said.breakpoint)
    if known is None:
        known = MindBreakpoint(said.breakpoint, said.on, said.pattern)
    state.mind_breakpoints[said.breakpoint] = replace(known, enabled=said.enabled, event=event.ref)


@folds(ev.MindBreakpointHit)
def _breakpoint_hit(state: AgentState, said: ev.MindBreakpointHit, event: Event) -> None:
    known = state.mind_breakpoints.get(said.breakpoint)
    if known is not None:
        state.mind_breakpoints[said.breakpoint] = replace(known, hits=known.hits + 1)


def _move(
    state: AgentState, said: Any, event: Event, stage: GenerationStage, *fields: str, **changes: Any
) -> None:
    """Bring a generation to a stage, with fields of the event of the same name and other changes."""
    known = state.generations.get(said.generation)
    if known is not None:
        changes |= fields_of(said, *fields)
        moved = replace(known, stage=stage, event=event.ref, at=event.at, **changes)
        state.generations[said.generation] = moved


@folds(ev.TracingSet)
def _tracing(state: AgentState, said: ev.TracingSet, event: Event) -> None:
    state.tracing = said.on


@folds(ev.GenerationBegun)
def _begun(state: AgentState, said: ev.GenerationBegun, event: Event) -> None:
    count_id(state, said.generation)
    made = Generation(said.generation, said.goal, said.trigger, event=event.ref, at=event.at)
    state.generations[said.generation] = made
    over = [generation.id for generation in state.generations.values() if generation.stage.over]
    for ident in over[: max(0, len(over) - GENERATIONS_KEPT)]:
        del state.generations[ident]


@folds(ev.GenerationAsked)
def _asked(state: AgentState, said: ev.GenerationAsked, event: Event) -> None:
    _move(state, said, event, GenerationStage.ASKED, "attempt", "model", "system", "prompt")


@folds(ev.GenerationAnswered)
def _answered(state: AgentState, said: ev.GenerationAnswered, event: Event) -> None:
    model = ("model",) if said.model else ()
    fields = ("answer", "tokens", "duration_ms", *model)
    _move(state, said, event, GenerationStage.ANSWERED, *fields, reason=said.error)


@folds(ev.GenerationReviewed)
def _reviewed(state: AgentState, said: ev.GenerationReviewed, event: Event) -> None:
    fields = ("plans", "problems", "repair", "inventions")
    _move(state, said, event, GenerationStage.REVIEWED, *fields, reason=said.failure)


@folds(ev.PlansHeld)
def _held(state: AgentState, said: ev.PlansHeld, event: Event) -> None:
    _move(state, said, event, GenerationStage.HELD)


@folds(ev.PlansDecided)
def _decided(state: AgentState, said: ev.PlansDecided, event: Event) -> None:
    _move(state, said, event, GenerationStage.DECIDED, "decision", decision_text=said.text)


@folds(ev.GenerationSettled)
def _settled(state: AgentState, said: ev.GenerationSettled, event: Event) -> None:
    roused(state)
    stage = GenerationStage.INSTALLED if said.plans else GenerationStage.FAILED
    _move(state, said, event, stage, "reason")
