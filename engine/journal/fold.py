"""State as a fold of events: only this, with the `*_fold` modules beside it, changes an agent's state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from engine.domain.state import AgentState
from engine.journal import (
    action_fold,
    agent_fold,
    approval_fold,
    break_fold,
    budget_fold,
    dispute_fold,
    goal_fold,
    meta_fold,
    reasoner_fold,
    recovery_fold,
    rewind_fold,
    stopping_fold,
    stride_fold,
)
from engine.journal import events as ev
from engine.journal.event import Event
from engine.journal.kept_state import SNAPSHOT_FORMAT, copy_state, dump_state, load_state

__all__ = ["SNAPSHOT_FORMAT", "apply", "copy_state", "dump_state", "fold", "handled", "load_state"]

_handlers: dict[type[ev.Payload], Callable[[AgentState, Any, Event], None]] = {
    **agent_fold.HANDLERS,
    **goal_fold.HANDLERS,
    **action_fold.HANDLERS,
    **recovery_fold.HANDLERS,
    **reasoner_fold.HANDLERS,
    **meta_fold.HANDLERS,
    **stopping_fold.HANDLERS,
    **break_fold.HANDLERS,
    **approval_fold.HANDLERS,
    **budget_fold.HANDLERS,
    **rewind_fold.HANDLERS,
    **dispute_fold.HANDLERS,
}


def apply(state: AgentState, event: Event, payload: ev.Payload | None = None) -> AgentState:
    """Bring the state forward by one event of its stream, in place.

    Args:
        state: the state just before the event.
        event: the next event of the stream.
        payload: the event's payload when the caller has it; it is parsed otherwise.
    """
    payload = payload if payload is not None else ev.payload_of(event)
    budget_fold.time_passed(state, event)
    if state.beliefs_end and event.at >= state.beliefs_end:
        goal_fold.beliefs_ended(state, event.at)
    handler = _handlers.get(type(payload))
    if handler is not None:
        before = break_fold.noted(state, payload) if state.watched else None
        handler(state, payload, event)
        if before is not None:
            break_fold.match(state, before, payload, event)
        if state.stride is not None and state.grants:
            stride_fold.went_on(state, payload)
    state.tick = max(state.tick, event.tick)
    state.version, state.hash, state.at = event.version, event.hash, event.at
    return state


def handled(kind: str) -> bool:
    """Whether events of this kind change more of a state than its version; unknown kinds count as if."""
    known = ev.kinds().get(kind)
    return known is None or known in _handlers


def fold(events: Iterable[Event], state: AgentState | None = None) -> AgentState:
    """The state after the events, from `state` (which is changed) or from nothing."""
    state = state if state is not None else AgentState()
    for event in events:
        apply(state, event)
    return state
