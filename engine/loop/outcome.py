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


def close_turn(
    state: AgentState, *, resolution: str, step: str = "", goal: str = ""
) -> tuple[ev.Payload, ...]:
    """The event that ends an open intervention on this step or goal, when there is one."""
    open_one = state.intervention
    if open_one is None:
        return ()
    if (step and open_one.step == step) or (goal and open_one.goal == goal):
        return (ev.InterventionClosed(resolution=resolution),)
    return ()
