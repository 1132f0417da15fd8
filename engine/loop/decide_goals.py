"""What follows from a command about goals: adopting, changing, giving up, and what serves what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.domain import commands as cmd
from engine.domain.goal import Goal, GoalStatus
from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.loop.outcome import Outcome, RefusedError, close_turn, fresh_id
from engine.tools.registry import ToolRegistry

SUBGOAL_LIMIT = 20
"""Goals inside one another; a recipe that achieves its own goal would otherwise never end."""


def open_goal(state: AgentState, goal_id: str) -> Goal:
    """The goal with this id.

    Raises:
        RefusedError: there is none, or it has ended.
    """
    goal = state.goals.get(goal_id)
    if goal is None:
        known = ", ".join(goal.id for goal in state.open_goals) or "none"
        raise RefusedError(f"there is no goal '{goal_id}'; open goals: {known}")
    if goal.status.terminal:
        raise RefusedError(f"goal {goal_id} is {goal.status} already")
    return goal


def _adopt_goal(state: AgentState, said: cmd.AdoptGoal, registry: ToolRegistry) -> Outcome:
    text = said.text.strip()
    if not text:
        raise RefusedError("the goal has no text")
    if said.criteria and not state.config.replans:
        raise RefusedError("only a model can show that criteria hold: leave them out, or give it a model")
    goal = fresh_id(state, "g")
    adopted = ev.GoalAdopted(goal=goal, text=text, priority=said.priority, criteria=said.criteria)
    return Outcome(f"goal {goal} adopted", (adopted,))


def _change_goal(state: AgentState, said: cmd.ChangeGoal, registry: ToolRegistry) -> Outcome:
    goal = open_goal(state, said.goal)
    text = (said.text or goal.text).strip()
    if not text:
        raise RefusedError("the goal has no text")
    priority = goal.priority if said.priority is None else said.priority
    if text != goal.text and state.acting and state.action and state.action.goal == goal.id:
        raise RefusedError("an action of this goal is running; wait for it or stop the agent first")
    change = ev.GoalChanged(goal=goal.id, text=text, priority=priority)
    closing = () if text == goal.text else close_turn(state, goal=goal.id, resolution="goal reworded")
    return Outcome(f"goal {goal.id} changed", (change, *closing))


def end_goal(state: AgentState, goal: Goal, status: GoalStatus, reason: str) -> list[ev.Payload]:
    """The events that end a goal and every open sub-goal of it, deepest first."""
    events: list[ev.Payload] = []
    for child in state.children(goal.id):
        if not child.status.terminal:
            events += end_goal(state, child, status, reason)
    events.append(ev.GoalEnded(goal=goal.id, status=status, reason=reason))
    return events


def _serves(state: AgentState, goal: Goal) -> Goal:
    """The goal that is given up with this one: its root, or itself where no step of another waits for it."""
    while goal.parent is not None and goal.parent_step is not None:
        goal = state.goals[goal.parent]
    return goal


def _give_up(state: AgentState, goal_id: str, status: GoalStatus, reason: str) -> Outcome:
    goal = _serves(state, open_goal(state, goal_id))
    if state.acting and state.action and state.action.step:
        raise RefusedError("an action is running; wait for it or stop the agent first")
    events = end_goal(state, goal, status, reason)
    ended = {event.goal for event in events if isinstance(event, ev.GoalEnded)}
    turn = state.intervention
    over = turn is not None and (
        not turn.goal or turn.goal in ended or _serves(state, state.goals[turn.goal]).id == goal.id
    )
    closing = (ev.InterventionClosed(resolution=f"goal {status}"),) if over else ()
    return Outcome(f"goal {goal.id} {status}", (*events, *closing))


def _drop_goal(state: AgentState, said: cmd.DropGoal, registry: ToolRegistry) -> Outcome:
    return _give_up(state, said.goal, GoalStatus.DROPPED, said.reason)


def _abort_goal(state: AgentState, said: cmd.AbortGoal, registry: ToolRegistry) -> Outcome:
    return _give_up(state, said.goal, GoalStatus.FAILED, said.reason)


# ------------------------------------------------------------------ goals below goals


def _push_goal(state: AgentState, said: cmd.PushGoal, registry: ToolRegistry) -> Outcome:
    _check_planned(state)
    above = open_goal(state, said.goal)
    text = said.text.strip()
    if not text:
        raise RefusedError("the goal has no text")
    _check_depth(state, above, 1)
    pushed = ev.GoalAdopted(goal=fresh_id(state, "g"), text=text, priority=above.priority, parent=above.id)
    return Outcome(f"goal {pushed.goal} comes first, then {above.id} goes on", (pushed,))


def _move_goal(state: AgentState, said: cmd.MoveGoal, registry: ToolRegistry) -> Outcome:
    _check_planned(state)
    goal = open_goal(state, said.goal)
    above = open_goal(state, said.parent) if said.parent else None
    if goal.parent_step is not None:
        raise RefusedError(
            f"step {goal.parent_step} of {goal.parent} waits for {goal.id}: change that plan instead"
        )
    if goal.parent == (above.id if above else None):
        raise RefusedError(f"{goal.id} is there already")
    if above is not None and goal in state.lineage(above.id):
        raise RefusedError(f"{above.id} is {goal.id} or serves it: a goal cannot serve itself")
    if state.acting and state.action and goal in state.lineage(state.action.goal):
        raise RefusedError("an action of this goal is running; wait for it or stop the agent first")
    if above is not None:
        _check_depth(state, above, _height(state, goal))
    where = f"below {above.id}" if above is not None else "to the roots"
    moved = ev.GoalMoved(goal=goal.id, parent=above.id if above is not None else None)
    return Outcome(f"goal {goal.id} moved {where}", (moved,))


def _check_planned(state: AgentState) -> None:
    if state.reasons:
        raise RefusedError("this agent's program decides which goal serves which; give it goals of their own")


def _height(state: AgentState, goal: Goal) -> int:
    """How many goals lie one below the other from this one on."""
    below, height = [goal], 0
    while below:
        height += 1
        below = [child for one in below for child in state.children(one.id)]
    return height


def _check_depth(state: AgentState, above: Goal, height: int) -> None:
    if len(state.lineage(above.id)) + height > SUBGOAL_LIMIT:
        raise RefusedError(f"more than {SUBGOAL_LIMIT} goals would lie inside one another")


HANDLERS: Mapping[type[cmd.Command], Callable[[AgentState, Any, ToolRegistry], Outcome]] = {
    cmd.AdoptGoal: _adopt_goal,
    cmd.ChangeGoal: _change_goal,
    cmd.DropGoal: _drop_goal,
    cmd.AbortGoal: _abort_goal,
    cmd.PushGoal: _push_goal,
    cmd.MoveGoal: _move_goal,
}
