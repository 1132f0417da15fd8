"""What follows when the operator marks something recorded as wrong (steering §3 idea 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.domain import commands as cmd
from engine.domain.state import AgentState
from engine.journal.dispute_events import ResultDisputed
from engine.loop.outcome import Outcome, RefusedError
from engine.tools.registry import ToolRegistry


def _dispute(state: AgentState, said: cmd.Dispute, registry: ToolRegistry) -> Outcome:
    stream, _, version = said.event.rpartition(":")
    if stream != state.agent_id or not (version.isascii() and version.isdigit() and len(version) < 19):
        raise RefusedError(
            f"'{said.event}' is no event of {state.agent_id}; one is called {state.agent_id}:12"
        )
    ref = f"{stream}:{int(version)}"
    if not 0 < int(version) <= state.version:
        raise RefusedError(f"{ref} has not happened; the newest event is {state.agent_id}:{state.version}")
    if said.lifted:
        if ref not in state.disputed:
            known = ", ".join(state.disputed) or "none"
            raise RefusedError(f"{ref} is not marked as wrong; marked: {known}")
        return Outcome(f"{ref} is no longer marked as wrong", (ResultDisputed(event=ref, lifted=True),))
    if state.disputed.get(ref) == said.reason:
        return Outcome(f"{ref} is marked as wrong already")
    return Outcome(f"{ref} is marked as wrong", (ResultDisputed(event=ref, reason=said.reason),))


HANDLERS: dict[type[cmd.Command], Callable[[AgentState, Any, ToolRegistry], Outcome]] = {
    cmd.Dispute: _dispute
}
