"""An agent's state as text and back, for snapshots, and copies of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from itertools import islice
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from engine.domain.state import AgentState

SNAPSHOT_FORMAT = 10
"""Raised whenever `AgentState` changes shape; older snapshots are then ignored."""
DUMPED_AT_ONCE = 32
"""Goals, plans or other entries of a state that are written or read between two turns of other threads."""


@cache
def _adapters() -> dict[str, TypeAdapter[Any]]:
    """How each field of a state is written and read."""
    hints = get_type_hints(AgentState)
    return {one.name: TypeAdapter(hints[one.name]) for one in fields(AgentState)}


def dump_state(state: AgentState) -> str:
    """The state as JSON, for a snapshot, behind a line with its SHA-256.

    It is put together from small pieces: a thread that does it lets others have their turn between them.
    """
    # Not sorted, as the order of goals and beliefs is part of the state.
    text = "{" + ", ".join(f'"{name}": {_dumped(state, name)}' for name in _adapters()) + "}"
    return sealed(text)


def sealed(text: str) -> str:
    """A text behind a line with its SHA-256."""
    return f"{_digest(text)}\n{text}"


def unsealed(text: str) -> str:
    """What was sealed.

    Raises:
        ValueError: it is not what was kept.
    """
    digest, _, text = text.partition("\n")
    if _digest(text) != digest:
        raise ValueError("it was changed after it was kept, or was not kept whole")
    return text


def _dumped(state: AgentState, name: str) -> str:
    value, adapter = getattr(state, name), _adapters()[name]
    if not isinstance(value, dict):
        return json.dumps(adapter.dump_python(value))
    pieces = (json.dumps(adapter.dump_python(piece)) for piece in _pieces(value))
    return "{" + ", ".join(piece[1:-1] for piece in pieces) + "}"


def load_state(text: str) -> AgentState:
    """The state from a snapshot, piece by piece as it was written.

    Raises:
        ValueError: the snapshot is not of this format, or is not what was kept.
    """
    text = unsealed(text)
    # Not `validate_json`, which refuses the half surrogate pairs that an operator's text may hold.
    said = json.loads(text)
    if not isinstance(said, dict):
        raise ValueError("it is not a state")  # noqa: TRY004  a text of another shape, not a wrong argument
    return AgentState(**{name: _loaded(name, value) for name, value in said.items() if name in _adapters()})


def _loaded(name: str, value: Any) -> Any:
    adapter = _adapters()[name]
    if not isinstance(value, dict) or not isinstance(_default(name), dict):
        return adapter.validate_python(value)
    loaded: dict[Any, Any] = {}
    for piece in _pieces(value):
        loaded.update(adapter.validate_python(piece))
    return loaded


@cache
def _default(name: str) -> Any:
    return getattr(AgentState(), name)


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
        if isinstance(value, dict):
            setattr(fresh, name, {k: list(v) if isinstance(v, list) else v for k, v in value.items()})
        elif isinstance(value, list):
            setattr(fresh, name, list(value))
    return fresh
