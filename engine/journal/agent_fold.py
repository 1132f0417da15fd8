"""An agent as a whole in its state: there, running or stopped; see `engine.journal.fold`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.domain.state import AgentState, RunState
from engine.journal import approval_fold, budget_fold, meta_fold, stopping_fold, stride_fold
from engine.journal import events as ev
from engine.journal.event import Event
from engine.journal.payload import Payload


def _created(state: AgentState, said: ev.AgentCreated, event: Event) -> None:
    state.agent_id, state.agent_type = said.agent_id, said.agent_type
    state.description, state.config = said.description, said.config
    state.run_reason, state.run_event = "not set running yet", event.ref
    state.tracing = bool(said.config.meta.get("tracing"))
    own = said.config.set_aside
    state.budget = own if own.any else None


def _opened(state: AgentState, said: ev.AgentOpened, event: Event) -> None:
    state.session = said.session
    state.perceived = False
    state.requests.clear()
    # What was allowed to somebody who watched is not allowed once nobody does.
    state.grants = 0
    state.unsaved_step = ""
    stopping_fold.ended(state)
    approval_fold.reopened(state)
    meta_fold.reopened(state)
    budget_fold.reopened(state)


def _deleted(state: AgentState, said: ev.AgentDeleted, event: Event) -> None:
    state.deleted = True
    state.run, state.run_reason, state.run_event = RunState.STOPPED, "deleted", event.ref
    stopping_fold.ended(state)


def _resumed(state: AgentState, said: ev.AgentResumed, event: Event) -> None:
    state.run, state.run_reason, state.run_event = RunState.RUNNING, "", event.ref
    state.grants, state.held = 0, ""
    state.loops, state.max_loops, state.until = 0, said.max_loops, said.until
    state.config = replace(state.config, ask=said.ask)
    approval_fold.resumed(state)
    meta_fold.turned_to(state)


def _paused(state: AgentState, said: ev.AgentPaused, event: Event) -> None:
    state.run, state.run_reason, state.run_event = RunState.PAUSED, said.reason, event.ref
    state.grants, state.held = 0, ""


def _granted(state: AgentState, said: ev.StepGranted, event: Event) -> None:
    state.run = RunState.PAUSED
    state.run_reason, state.run_event = "stepping", event.ref
    state.held = ""
    state.grants = 1 if stride_fold.lasts(said.stride) else state.grants + 1
    approval_fold.stepped(state)
    state.stride = said.stride


def _stopped(state: AgentState, said: ev.AgentStopped, event: Event) -> None:
    state.run, state.run_reason, state.run_event = RunState.STOPPED, said.reason, event.ref
    state.stop_event = event.ref
    state.grants = 0
    stopping_fold.ended(state)
    state.requests.clear()


HANDLERS: dict[type[Payload], Callable[[AgentState, Any, Event], None]] = {
    ev.AgentCreated: _created,
    ev.AgentOpened: _opened,
    ev.AgentDeleted: _deleted,
    ev.AgentResumed: _resumed,
    ev.AgentPaused: _paused,
    ev.StepGranted: _granted,
    ev.AgentStopped: _stopped,
}
