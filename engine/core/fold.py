"""State as a fold of events: only this and the handlers in `engine/core/folds` change an agent's state.

Also a state as text and back, for snapshots, and copies of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from itertools import islice
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from engine.core import events as ev
from engine.core.folds import actions, agents, approvals, breakpoints, goals, metacognition, reasoner  # noqa: F401
from engine.core.folds.agents import advance_stride, time_passed
from engine.core.folds.breakpoints import match, state_before
from engine.core.folds.goals import beliefs_ended
from engine.core.journal import Event
from engine.core.late_values import LateValues
from engine.core.plan import Plan
from engine.core.state import HANDLERS, AgentState

SNAPSHOT_FORMAT = 15
"""Raised whenever `AgentState` changes shape; older snapshots are then ignored."""
_PLANS = "plans"
_DECODER = json.JSONDecoder()
DUMPED_AT_ONCE = 32
"""Goals, plans or other entries of a state that are written or read between two turns of other threads."""


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {entry.name: hints[entry.name] for entry in fields(kind)}


@cache
def _adapter(kind: Any, name: str) -> TypeAdapter[Any]:
    """How a field is written and read; of a state's plans: how one of them is."""
    return TypeAdapter(Plan if (kind, name) == (AgentState, _PLANS) else _hints(kind)[name])


def _is_plain(value: Any) -> bool:
    """Whether a value is its own JSON, so that no adapter is built for it."""
    return value is None or type(value) in (str, int, float, bool) or value in ({}, [], ())


def dump_state(state: AgentState) -> str:
    """The state as JSON, for a snapshot, behind a line with its SHA-256.

    It is put together from small pieces: a thread that does it lets others have their turn between them.
    Plans come last, each on a line of its own, as they are most of the state of a long session.
    """
    # Not sorted, as the order of goals and beliefs is part of the state.
    values = {name: getattr(state, name) for name in _hints(AgentState) if name != _PLANS}
    plain = {name: value for name, value in values.items() if _is_plain(value)}
    parts = [json.dumps(plain)[1:-1]]
    parts += [f'"{name}": {_dumped(name, value)}' for name, value in values.items() if name not in plain]
    plans = [f"{json.dumps(goal)}: {_plan_text(plan)}" for goal, plan in state.plans.texts()]
    return with_checksum("{" + ", ".join(parts) + f', "{_PLANS}": {{\n' + ",\n".join(plans) + "\n}}")


def _plan_text(plan: Plan | str) -> str:
    return plan if isinstance(plan, str) else json.dumps(_adapter(AgentState, _PLANS).dump_python(plan))


def _read_plan(text: str) -> Plan:
    plan: Plan = _adapter(AgentState, _PLANS).validate_python(json.loads(text))
    return plan


def with_checksum(text: str) -> str:
    """A text behind a line with its SHA-256."""
    return f"{_digest(text)}\n{text}"


def without_checksum(text: str) -> str:
    """What was sealed.

    Raises:
        ValueError: it is not what was kept.
    """
    digest, _, text = text.partition("\n")
    if _digest(text) != digest:
        raise ValueError("it was changed after it was kept, or was not kept whole")
    return text


def _dumped(name: str, value: Any) -> str:
    adapter = _adapter(AgentState, name)
    if not isinstance(value, dict):
        return json.dumps(adapter.dump_python(value))
    pieces = (json.dumps(adapter.dump_python(piece)) for piece in _pieces(value))
    return "{" + ", ".join(piece[1:-1] for piece in pieces) + "}"


def load_state(text: str) -> AgentState:
    """The state from a snapshot, piece by piece as it was written; plans are read when they are used.

    Raises:
        ValueError: the snapshot is not of this format, or is not what was kept.
    """
    head, *lines = without_checksum(text).split("\n")
    # Not `validate_json`, which refuses the half surrogate pairs that an operator's text may hold.
    stored = json.loads(head + "}}")
    if not isinstance(stored, dict) or stored.pop(_PLANS, None) != {} or lines[-1:] != ["}}"]:
        raise ValueError("it is not a state")
    state = AgentState(**_changed(_usual_state(), stored))
    state.plans = LateValues(texts=dict(map(_plan_line, filter(None, lines[:-1]))), read=_read_plan)
    return state


def _plan_line(line: str) -> tuple[str, str]:
    goal, end = _DECODER.raw_decode(line)
    return goal, line[end + 2 :].rstrip(",")


def _changed(usual: Any, stored: dict[str, Any]) -> dict[str, Any]:
    """Those of stored fields that are not as usual; readers are made for these only, as that takes time."""
    kind: Any = type(usual)
    hints = _hints(kind)
    pairs = ((name, value, getattr(usual, name)) for name, value in stored.items() if name in hints)
    return {name: _loaded(usual, name, value) for name, value, known in pairs if _differs(known, value)}


def _differs(usual: Any, value: Any) -> bool:
    if type(value) in (list, dict):
        return bool(value) or value != (list(usual) if type(usual) is tuple else usual)
    return type(value) is not type(usual) or value != usual


def _loaded(owner: Any, name: str, value: Any) -> Any:
    """A stored field of a value."""
    kind: Any = type(owner)
    usual, hint = getattr(owner, name), _hints(kind)[name]
    if type(value) is hint and hint in (str, int, float, bool):
        return value
    if is_dataclass(usual) and isinstance(value, dict):
        return replace(usual, **_changed(usual, value))  # type: ignore[type-var]
    adapter = _adapter(kind, name)
    if not isinstance(value, dict) or not isinstance(usual, dict):
        return adapter.validate_python(value)
    loaded: dict[Any, Any] = {}
    for piece in _pieces(value):
        loaded.update(adapter.validate_python(piece))
    return loaded


@cache
def _usual_state() -> AgentState:
    """What is true of an agent without events; it is only looked at."""
    return AgentState()


def _pieces(entries: dict[Any, Any]) -> Iterator[dict[Any, Any]]:
    """A mapping in pieces of a few entries each."""
    items = iter(entries.items())
    while piece := dict(islice(items, DUMPED_AT_ONCE)):
        yield piece


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def copy_state(state: AgentState) -> AgentState:
    """An independent copy; the values inside are frozen and shared."""
    fresh = replace(state)
    for name in AgentState.__slots__:
        value = getattr(state, name)
        if isinstance(value, LateValues):
            setattr(fresh, name, value.copy())
        elif isinstance(value, dict):
            setattr(fresh, name, {k: list(v) if isinstance(v, list) else v for k, v in value.items()})
        elif isinstance(value, list):
            setattr(fresh, name, list(value))
    return fresh


def apply(state: AgentState, event: Event, payload: ev.Payload | None = None) -> AgentState:
    """Bring the state forward by one event of its stream, in place.

    Args:
        state: the state just before the event.
        event: the next event of the stream.
        payload: the event's payload when the caller has it; it is parsed otherwise.
    """
    payload = payload if payload is not None else ev.payload_of(event)
    time_passed(state, event)
    if state.beliefs_end and event.at >= state.beliefs_end:
        beliefs_ended(state, event.at)
    handler = HANDLERS.get(type(payload))
    if handler is not None:
        before = state_before(state, payload) if state.watched else None
        handler(state, payload, event)
        if before is not None:
            match(state, before, payload, event)
        if state.stride is not None and state.grants:
            advance_stride(state, payload)
    state.tick = max(state.tick, event.tick)
    state.version, state.hash, state.at = event.version, event.hash, event.at
    return state


def handled(kind: str) -> bool:
    """Whether events of this kind change more of a state than its version; unknown kinds count as if."""
    known = ev.kinds().get(kind)
    return known is None or known in HANDLERS


def fold(events: Iterable[Event], state: AgentState | None = None) -> AgentState:
    """The state after the events, from `state` (which is changed) or from nothing."""
    state = state if state is not None else AgentState()
    for event in events:
        apply(state, event)
    return state
