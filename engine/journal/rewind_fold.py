"""What a rewind and a fork do to an agent's state; `engine.journal.fold` applies it with all else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from engine.domain.approval import Accepted, Envelope
from engine.domain.rewinding import bring_back
from engine.domain.state import AgentState, Forked, Rewinding, RunState
from engine.journal import rewind_events as ev
from engine.journal.event import Event
from engine.journal.payload import Payload

G = TypeVar("G", Envelope, Accepted)


def _begun(state: AgentState, said: ev.RewindBegun, event: Event) -> None:
    state.rewinding = Rewinding(said.to, said.what.value, said.snapshot, said.saved, event.ref)


def _failed(state: AgentState, said: ev.RewindFailed, event: Event) -> None:
    state.rewinding = None
    if said.partly:
        state.perceived = False


def _cut_off(state: AgentState, said: ev.RewindCutOff, event: Event) -> None:
    state.rewinding = None
    state.perceived = False


def _rewound(state: AgentState, said: ev.Rewound, event: Event) -> None:
    state.rewinding = None
    state.perceived = False
    # What was under way is no longer wanted, as after a stop; the agent itself is only paused.
    state.stop_event = event.ref
    if said.course is None:
        return
    bring_back(state, said.course)
    state.run, state.run_reason, state.run_event = RunState.PAUSED, f"rewound to event {said.to}", event.ref
    state.grants, state.stride = 0, None
    # What waited for the operator was about a course that is no more; what they allowed or accepted since
    # then is asked for again.
    known, state.reached = state.approvals, ()
    state.approvals = replace(
        known,
        question=None,
        once={},
        held={},
        envelopes=_before(known.envelopes, said.to),
        accepted=_before(known.accepted, said.to),
    )


def _before(given: dict[str, G], to: int) -> dict[str, G]:
    """What was given up to a version of the stream."""
    return {goal: one for goal, one in given.items() if int(one.event.rpartition(":")[2]) <= to}


def _forked(state: AgentState, said: ev.AgentForked, event: Event) -> None:
    bring_back(state, said.course)
    state.next_id, state.budget = dict(said.next_id), said.budget
    state.forked = Forked(said.parent, said.snapshot, event.ref)
    state.run_reason, state.run_event = f"forked from {said.parent}", event.ref


HANDLERS: dict[type[Payload], Callable[[AgentState, Any, Event], None]] = {
    ev.RewindBegun: _begun,
    ev.RewindFailed: _failed,
    ev.RewindCutOff: _cut_off,
    ev.Rewound: _rewound,
    ev.AgentForked: _forked,
}
