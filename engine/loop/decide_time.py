"""What follows from commands about an agent's time: going back, and undoing the operator's last change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.domain import commands as cmd
from engine.domain.rewinding import RewindScope
from engine.domain.state import AgentState, RunState
from engine.loop.outcome import Outcome, RefusedError
from engine.tools.registry import ToolRegistry


def check_stands(state: AgentState, scope: RewindScope) -> None:
    """Refuse to rewind an agent that acts or may act at any moment.

    Raises:
        RefusedError: says what is in the way, and what to do about it.
    """
    if state.rewinding is not None:
        raise RefusedError("a rewind is under way already")
    if state.acting and state.action is not None:
        raise RefusedError(
            f"{state.action.id} {state.action.command} is running; wait for it or stop it first"
        )
    if state.shell_taken or state.returned is not None:
        raise RefusedError("you have the shell; hand it back first: ctrl+]")
    if state.busy or state.requests:
        raise RefusedError("a call of yours is on its way; wait for it or stop the agent first")
    held = state.intervention is not None or state.handover is not None
    if state.grants or (state.run is RunState.RUNNING and state.has_work and not held):
        raise RefusedError("the agent runs; pause it first, so that nothing changes while it is taken back")
    if state.reasons and scope is not RewindScope.FILES:
        raise RefusedError(
            "the mind of an agent with a program of its own cannot be taken back; its files can: rewind files"
        )


def _rewind(state: AgentState, said: cmd.Rewind, registry: ToolRegistry) -> Outcome:
    check_stands(state, RewindScope(said.scope))
    if said.to > state.version:
        raise RefusedError(f"{state.agent_id}:{said.to} has not happened yet")
    return Outcome("the rewind begins")


HANDLERS: dict[type[cmd.Command], Callable[[AgentState, Any, ToolRegistry], Outcome]] = {
    cmd.Rewind: _rewind,
}
