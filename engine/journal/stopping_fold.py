"""What stopping in grades does to an agent's state; `engine.journal.fold` applies it with all else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.domain.state import AgentState, RunState
from engine.domain.stopping import StopGrade
from engine.journal import stopping_events as ev
from engine.journal.event import Event
from engine.journal.payload import Payload


def _held(state: AgentState, said: ev.AgentHeld, event: Event) -> None:
    if state.run is not RunState.STOPPED:
        state.run, state.run_reason = RunState.PAUSED, said.reason
    state.run_event = event.ref
    state.grants = 0
    state.requests.clear()
    state.held = said.grade.value
    if said.grade.rank >= StopGrade.CUT.rank:
        state.stop_event = event.ref
    if said.grade is StopGrade.FREEZE:
        state.frozen = True


def _thawed(state: AgentState, said: ev.AgentThawed, event: Event) -> None:
    state.frozen = False


def _observed(state: AgentState, said: ev.StopObserved, event: Event) -> None:
    state.stop_receipt = said.receipt


def ended(state: AgentState) -> None:
    """Nothing of the agent runs any more, so nothing of it is held or frozen."""
    state.held, state.frozen = "", False


HANDLERS: dict[type[Payload], Callable[[AgentState, Any, Event], None]] = {
    ev.AgentHeld: _held,
    ev.AgentThawed: _thawed,
    ev.StopObserved: _observed,
}
