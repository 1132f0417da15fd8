"""What a command leads to: events, or a refusal in words."""

from __future__ import annotations

from dataclasses import dataclass

from engine.domain.state import AgentState
from engine.journal import events as ev


class RefusedError(Exception):
    """The command cannot be carried out now; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command leads to."""

    message: str
    events: tuple[ev.Payload, ...] = ()


def fresh_id(state: AgentState, kind: str, ahead: int = 1) -> str:
    """The next id of a kind (`g`, `p`, `s`, `a`), or one further ahead."""
    return f"{kind}{state.next_id.get(kind, 0) + ahead}"
