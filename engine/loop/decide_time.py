"""What follows from commands about an agent's time: going back, and undoing the operator's last change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.domain import commands as cmd
from engine.domain.failure import FailureKind
from engine.domain.rewinding import RewindScope
from engine.domain.state import AgentState, RunState
from engine.generation.validation import problems_of
from engine.journal import events as ev
from engine.loop.decide_goals import open_goal
from engine.loop.outcome import Outcome, RefusedError, close_turn
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


def _adopt(state: AgentState, said: cmd.AdoptFork, registry: ToolRegistry) -> Outcome:
    check_stands(state, RewindScope.FILES)
    return Outcome("the files are taken over")


def _undo(state: AgentState, said: cmd.Undo, registry: ToolRegistry) -> Outcome:
    from engine.loop.decide import decide  # which has this room's handlers

    try:
        command = cmd.parse_command(said.command)
    except ValueError as error:
        raise RefusedError(f"what makes up for {said.of} is no command: {error}") from None
    if isinstance(command, NOT_WITHIN) or command.agent != state.agent_id:
        raise RefusedError(f"'{command.do}' cannot be part of an undo")
    outcome = decide(state, command, registry)
    return Outcome(f"{'done again' if said.again else 'undone'}: {outcome.message}", outcome.events)


def _put_back(state: AgentState, said: cmd.PutBack, registry: ToolRegistry) -> Outcome:
    events: list[ev.Payload] = []
    if said.steps is not None:
        goal, plan = open_goal(state, said.goal), state.plans.get(said.goal)
        if plan is None:
            raise RefusedError(f"goal {goal.id} has no plan any more; it is made anew")
        if state.acting and state.action is not None and state.action.goal == goal.id:
            raise RefusedError("an action of this plan is running; wait for it or stop the agent first")
        if problems := problems_of(said.steps, registry):
            raise RefusedError("; ".join(problems[:5]))
        change = "put back as it was"
        events.append(ev.PlanRevised(plan=plan.id, goal=goal.id, change=change, steps=said.steps))
        events += close_turn(state, goal=goal.id, resolution=change)
    events += [
        ev.BeliefAdded(
            key=one.key, value=one.value, confidence=one.confidence, source=one.source, until=one.until
        )
        for one in said.beliefs
    ]
    events += [ev.BeliefRemoved(key=key, reason="undone") for key in said.forget if key in state.beliefs]
    if (turn := said.turn) is not None and state.intervention is None:
        kind = FailureKind(turn.kind) if turn.kind else None
        events.append(
            ev.InterventionOpened(
                goal=turn.goal, step=turn.step, reason=turn.reason, failure=kind, tried=turn.tried
            )
        )
    return Outcome("put back as it was", tuple(events))


NOT_WITHIN = (cmd.Undo, cmd.Rewind, cmd.AdoptFork, cmd.CallTool, cmd.TakeShell, cmd.DeleteAgent)
"""Commands that no undo carries out."""

HANDLERS: dict[type[cmd.Command], Callable[[AgentState, Any, ToolRegistry], Outcome]] = {
    cmd.Rewind: _rewind,
    cmd.AdoptFork: _adopt,
    cmd.Undo: _undo,
    cmd.PutBack: _put_back,
}
