"""How budgets bear on an agent's state: what its work takes, by goal and step, and what holds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from engine.domain.budgets import BudgetHold, Pace, Spent
from engine.domain.plan import Op, StepStatus
from engine.domain.state import AgentState, RunState
from engine.journal import events as ev
from engine.journal.event import Event
from engine.journal.payload import Payload


def works(state: AgentState) -> bool:
    """Whether the time from here to the next event is time at work.

    It is while one of the agent's own actions runs, and while it may go on (running, or allowed a step) with
    a goal at hand, or with something that its reasoner can do. A pause, a question to the operator, a
    hand-over of the shell, a stop, a call of the operator's and the time between two sessions are not.
    """
    action = state.action
    if action is not None and (action.started or not action.step):
        return bool(action.step)
    may = state.run is RunState.RUNNING or state.grants > 0
    if not may or state.deleted or state.intervention is not None or state.handover is not None:
        return False
    if not state.reasons:
        return bool(state.goal_at_hand)
    mind = state.mind
    generating = any(not one.stage.over for one in state.generations.values())
    return mind is None or not mind.idle or bool(state.wanted) or generating


def goal_of_work(state: AgentState) -> str:
    """The goal that time at work counts for; of a reasoner, which pursues its goals at once, its action's."""
    action = state.action
    return action.goal if action is not None and action.goal else state.goal_at_hand


def between_us(before: str, after: str) -> int:
    """Microseconds from one time of day to another; 0 where a clock went back or a time cannot be read."""
    try:
        passed = datetime.fromisoformat(after) - datetime.fromisoformat(before)
    except (ValueError, TypeError):
        return 0
    return max(0, (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds)


def time_passed(state: AgentState, event: Event) -> None:
    """Count the time since the event before, where it was time at work."""
    if event.kind == ev.AgentOpened.kind or not works(state):
        return
    passed = between_us(state.at, event.at)
    if passed:
        state.worked_us += passed
        take(state, goal_of_work(state), Spent(us=passed))


def take(state: AgentState, goal: str, spent: Spent) -> None:
    """Count what was taken for a goal."""
    old = state.spent.get(goal)
    state.spent[goal] = spent if old is None else old + spent


def planned(state: AgentState, goal: str) -> None:
    """What planning took is none of the next step's."""
    if state.open_thought(goal) is None:
        pace = state.paces.get(goal, Pace())
        state.paces[goal] = replace(pace, began=state.spent.get(goal, Spent()))


def step_ended(state: AgentState, said: ev.StepEnded) -> None:
    """Remember what a step took that is done; what waits for a sub-goal is none of its own."""
    found = state.find_step(said.step) if said.status.terminal else None
    if found is None or found[1].op in (Op.ACHIEVE, Op.THINK):
        return
    spent, pace = state.spent.get(said.goal, Spent()), state.paces.get(said.goal, Pace())
    done = said.status is StepStatus.COMPLETED
    state.paces[said.goal] = pace.stepped(spent) if done else replace(pace, began=spent)


def _reached(state: AgentState, said: ev.BudgetReached, event: Event) -> None:
    running = state.run is RunState.RUNNING
    state.run, state.run_reason, state.run_event = RunState.PAUSED, f"BUDGET: {said.reason}", event.ref
    state.grants = 0
    if said.budget:
        state.budget_hold = BudgetHold(said.budget, said.of, event.ref, goes_on=running)


def _eased(state: AgentState, said: ev.BudgetEased, event: Event) -> None:
    held = state.held_by
    if held is None:
        return
    state.run_event, state.budget_hold = event.ref, None
    if held.goes_on:
        state.run, state.run_reason = RunState.RUNNING, ""
    else:
        state.run_reason = "paused; there is more of the budget now"


def _set(state: AgentState, said: ev.BudgetSet, event: Event) -> None:
    if not said.goal:
        state.budget = said.limits
    elif said.limits is None:
        state.goal_budgets.pop(said.goal, None)
    else:
        state.goal_budgets[said.goal] = said.limits


def reopened(state: AgentState) -> None:
    """What a budget holds does not go on by itself in another session."""
    if state.budget_hold is not None:
        state.budget_hold = replace(state.budget_hold, goes_on=False)


HANDLERS: dict[type[Payload], Callable[[AgentState, Any, Event], None]] = {
    ev.BudgetSet: _set,
    ev.BudgetReached: _reached,
    ev.BudgetEased: _eased,
}
