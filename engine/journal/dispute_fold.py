"""What the operator's marks do to an agent's state; `engine.journal.fold` applies it with all else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.domain.state import AgentState
from engine.journal.dispute_events import ResultDisputed
from engine.journal.event import Event
from engine.journal.payload import Payload


def _disputed(state: AgentState, said: ResultDisputed, event: Event) -> None:
    if said.lifted:
        state.disputed.pop(said.event, None)
    else:
        state.disputed[said.event] = said.reason


HANDLERS: dict[type[Payload], Callable[[AgentState, Any, Event], None]] = {ResultDisputed: _disputed}
