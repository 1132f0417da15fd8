"""What the events of a reasoner do to a state; `engine.journal.fold` applies them with all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.domain.reasoning import Generation, GenerationStage, MindBreakpoint
from engine.domain.state import AgentState
from engine.journal import reasoner_events as ev
from engine.journal.event import Event
from engine.journal.payload import Payload

GENERATIONS_KEPT = 50
"""Generations that a state remembers after their end."""


def _advanced(state: AgentState, said: ev.ReasonerAdvanced, event: Event) -> None:
    state.mind = said.mind
    state.loops += said.steps
    for one in said.intentions:
        state.intentions[one.id] = one
    for ended in said.ended:
        state.intentions.pop(ended.intention, None)
    for held in said.believed:
        state.held_beliefs.pop(held.text, None)
        state.held_beliefs[held.text] = replace(held, event=event.ref, tick=event.tick)
    for text in said.forgotten:
        state.held_beliefs.pop(text, None)
    gone = {ended.intention for ended in said.ended}
    state.wanted = [one for one in (*state.wanted, *said.wanted) if one.intention not in gone]
    if said.generated is not None:
        state.generated = said.generated
    if said.stride_over:
        end_stride(state)
    waits = any(one.state not in ("running", "suspended") for one in state.intentions.values())
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
    state.wanted = [one for one in state.wanted if one.step != step]
    if len(state.wanted) != before:
        roused(state)


def _roused(state: AgentState, said: Payload, event: Event) -> None:
    roused(state)


def _steered(state: AgentState, said: ev.IntentionSteered, event: Event) -> None:
    roused(state)
    if said.how in ("drop", "fail"):
        state.wanted = [one for one in state.wanted if one.intention != said.intention]


def _breakpoint_changed(state: AgentState, said: ev.MindBreakpointChanged, event: Event) -> None:
    number = said.breakpoint[1:]
    if number.isdigit():
        state.next_id["b"] = max(state.next_id.get("b", 0), int(number))
    if said.cleared:
        state.mind_breakpoints.pop(said.breakpoint, None)
        return
    known = state.mind_breakpoints.get(said.breakpoint)
    if known is None:
        known = MindBreakpoint(said.breakpoint, said.on, said.pattern)
    state.mind_breakpoints[said.breakpoint] = replace(known, enabled=said.enabled, event=event.ref)


def _breakpoint_hit(state: AgentState, said: ev.MindBreakpointHit, event: Event) -> None:
    known = state.mind_breakpoints.get(said.breakpoint)
    if known is not None:
        state.mind_breakpoints[said.breakpoint] = replace(known, hits=known.hits + 1)


def _change(state: AgentState, ident: str, event: Event, **changes: Any) -> None:
    known = state.generations.get(ident)
    if known is not None:
        state.generations[ident] = replace(known, event=event.ref, at=event.at, **changes)


def _tracing(state: AgentState, said: ev.TracingSet, event: Event) -> None:
    state.tracing = said.on


def _begun(state: AgentState, said: ev.GenerationBegun, event: Event) -> None:
    number = said.generation[1:]
    if number.isdigit():
        state.next_id["q"] = max(state.next_id.get("q", 0), int(number))
    made = Generation(said.generation, said.goal, said.trigger, event=event.ref, at=event.at)
    state.generations[said.generation] = made
    over = [one.id for one in state.generations.values() if one.stage.over]
    for ident in over[: max(0, len(over) - GENERATIONS_KEPT)]:
        del state.generations[ident]


def _asked(state: AgentState, said: ev.GenerationAsked, event: Event) -> None:
    _change(
        state,
        said.generation,
        event,
        stage=GenerationStage.ASKED,
        attempt=said.attempt,
        model=said.model,
        system=said.system,
        prompt=said.prompt,
    )


def _answered(state: AgentState, said: ev.GenerationAnswered, event: Event) -> None:
    _change(
        state,
        said.generation,
        event,
        stage=GenerationStage.ANSWERED,
        answer=said.answer,
        reason=said.error,
        tokens=said.tokens,
        duration_ms=said.duration_ms,
    )
    if said.model:
        _change(state, said.generation, event, model=said.model)


def _reviewed(state: AgentState, said: ev.GenerationReviewed, event: Event) -> None:
    _change(
        state,
        said.generation,
        event,
        stage=GenerationStage.REVIEWED,
        plans=said.plans,
        problems=said.problems,
        repair=said.repair,
        reason=said.failure,
        inventions=said.inventions,
    )


def _held(state: AgentState, said: ev.PlansHeld, event: Event) -> None:
    _change(state, said.generation, event, stage=GenerationStage.HELD)


def _decided(state: AgentState, said: ev.PlansDecided, event: Event) -> None:
    _change(
        state,
        said.generation,
        event,
        stage=GenerationStage.DECIDED,
        decision=said.decision,
        decision_text=said.text,
    )


def _settled(state: AgentState, said: ev.GenerationSettled, event: Event) -> None:
    roused(state)
    stage = GenerationStage.INSTALLED if said.plans else GenerationStage.FAILED
    _change(state, said.generation, event, stage=stage, reason=said.reason)


HANDLERS: dict[type[Payload], Callable[[AgentState, Any, Event], None]] = {
    ev.ReasonerAdvanced: _advanced,
    ev.TimePassed: _roused,
    ev.BeliefTold: _roused,
    ev.MessageHeard: _roused,
    ev.IntentionSteered: _steered,
    ev.MindBreakpointChanged: _breakpoint_changed,
    ev.MindBreakpointHit: _breakpoint_hit,
    ev.TracingSet: _tracing,
    ev.GenerationBegun: _begun,
    ev.GenerationAsked: _asked,
    ev.GenerationAnswered: _answered,
    ev.GenerationReviewed: _reviewed,
    ev.PlansHeld: _held,
    ev.PlansDecided: _decided,
    ev.GenerationSettled: _settled,
}
