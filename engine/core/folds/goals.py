"""Folds goals, beliefs, plans, workflows and the operator's disputes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from engine.core import events as ev
from engine.core.beliefs import Belief, ResultDisputed, first_end, moment_after
from engine.core.control import operator_of
from engine.core.folds import agents as budget_fold
from engine.core.folds import approvals as approval_fold
from engine.core.folds import metacognition as meta_fold
from engine.core.folds.reasoner import roused
from engine.core.goals import Goal, GoalStatus
from engine.core.journal import Event
from engine.core.plan import Plan, PlanStep, StepStatus
from engine.core.reasons import Reason
from engine.core.recovery import OF_GOALS, OpenWorkflow, Strategy
from engine.core.state import AgentState, count_id, folds
from engine.value import fields_of


@folds(ResultDisputed)
def _disputed(state: AgentState, payload: ResultDisputed, event: Event) -> None:
    if payload.lifted:
        state.disputed.pop(payload.event, None)
    else:
        state.disputed[payload.event] = payload.reason


SUMMARY_LIMIT = 150


def change_step(state: AgentState, step_id: str, event: Event, **changes: Any) -> PlanStep | None:
    """Change fields of a step wherever its plan is; the step as it is now, None where there is none."""
    place = state.find_step(step_id)
    if place is None:
        return None
    plan, step = place
    step = replace(step, event=event.ref, **changes)
    steps = tuple(step if old.id == step_id else old for old in plan.steps)
    state.plans[plan.goal] = replace(plan, steps=steps)
    return step


@folds(ev.GoalAdopted)
def _adopted(state: AgentState, payload: ev.GoalAdopted, event: Event) -> None:
    count_id(state, payload.goal)
    status, order = GoalStatus.ACTIVE if state.reasons else GoalStatus.PENDING, len(state.goals)
    goal = Goal(
        payload.goal, payload.text, payload.priority, status, payload.parent, payload.parent_step, order
    )
    state.goals[payload.goal] = replace(goal, criteria=payload.criteria, event=event.ref)
    roused(state)
    if _by_operator(event):
        meta_fold.turned_to(state)
    if payload.parent_step:
        state.loops += 1
        meta_fold.turned(state)
        change_step(state, payload.parent_step, event, status=StepStatus.RUNNING)


def _by_operator(event: Event) -> bool:
    return event.actor.startswith("operator:")


@folds(ev.GoalSelected)
def _selected(state: AgentState, payload: ev.GoalSelected, event: Event) -> None:
    state.current_goal = payload.goal
    goal = state.goals.get(payload.goal)
    if goal is not None and goal.status is GoalStatus.PENDING:
        state.goals[payload.goal] = replace(goal, status=GoalStatus.ACTIVE)


@folds(ev.GoalChanged)
def _goal_changed(state: AgentState, payload: ev.GoalChanged, event: Event) -> None:
    goal = state.goals.get(payload.goal)
    if goal is None:
        return
    meta_fold.turned_to(state)
    if payload.text != goal.text:
        _edited(state, event, [f"text {payload.goal}"])
        plan = state.plans.pop(payload.goal, None)
        _forget_steps(state, plan.steps if plan else ())
        _plan_afresh(state, payload.goal)
        approval_fold.goal_over(state, payload.goal)
    state.goals[payload.goal] = replace(goal, text=payload.text, priority=payload.priority, event=event.ref)


@folds(ev.GoalMoved)
def _goal_moved(state: AgentState, payload: ev.GoalMoved, event: Event) -> None:
    goal = state.goals.get(payload.goal)
    if goal is not None:
        state.goals[payload.goal] = replace(goal, parent=payload.parent, event=event.ref)
        roused(state)


@folds(ev.GoalEnded)
def _goal_ended(state: AgentState, payload: ev.GoalEnded, event: Event) -> None:
    goal = state.goals.get(payload.goal)
    if goal is None:
        return
    state.goals[payload.goal] = replace(goal, status=payload.status, reason=payload.reason, event=event.ref)
    state.workflows = tuple(workflow for workflow in state.workflows if workflow.goal != payload.goal)
    roused(state)
    approval_fold.goal_over(state, payload.goal)
    if payload.status is GoalStatus.ACHIEVED or _by_operator(event):
        meta_fold.turned_to(state)
    meta_fold.goal_over(state, payload.goal)
    if state.current_goal == payload.goal:
        state.needs_replan = False
        state.retry = None
    _plan_afresh(state, payload.goal)
    plan = state.plans.get(payload.goal)
    if plan is not None and payload.status is not GoalStatus.ACHIEVED:
        steps = tuple(
            step if step.status.terminal else replace(step, status=StepStatus.ABANDONED)
            for step in plan.steps
        )
        state.plans[payload.goal] = replace(plan, steps=steps)
        _forget_steps(state, steps)
    _settle_failures(state, goal=payload.goal)
    if not state.open_goals:
        state.grants = 0


def _forget_steps(state: AgentState, steps: Iterable[PlanStep]) -> None:
    for step in steps:
        state.breakpoints.pop(step.id, None)
        _begin_afresh(state, step.id)


def _begin_afresh(state: AgentState, step_id: str) -> None:
    """What recovery tried and plans for a step holds no longer."""
    state.tried.pop(step_id, None)
    state.settled.pop(step_id, None)
    if state.retry is not None and state.retry.step == step_id:
        state.retry = None


def _plan_afresh(state: AgentState, goal: str) -> None:
    """What recovery tried and plans for a goal's plan holds no longer."""
    state.tried.pop(goal, None)
    state.replans.pop(goal, None)
    if state.retry is not None and (state.retry.step, state.retry.goal) == ("", goal):
        state.retry = None


@folds(ev.BeliefAdded)
def _believed(state: AgentState, payload: ev.BeliefAdded, event: Event) -> None:
    until = payload.until if payload.ttl_s is None else moment_after(event.at, payload.ttl_s)
    held = fields_of(payload, "key", "value", "confidence", "source")
    state.beliefs[payload.key] = Belief(**held, event=event.ref, tick=event.tick, until=until)
    if until:
        state.beliefs_end = first_end(state.beliefs)
    roused(state)
    if _by_operator(event):
        meta_fold.turned_to(state)


def beliefs_ended(state: AgentState, at: str) -> None:
    """Hold no longer what was to be held up to this moment or before."""
    state.beliefs = {
        key: belief for key, belief in state.beliefs.items() if not belief.until or belief.until > at
    }
    state.beliefs_end = first_end(state.beliefs)


@folds(ev.BeliefRemoved)
def _disbelieved(state: AgentState, payload: ev.BeliefRemoved, event: Event) -> None:
    state.beliefs.pop(payload.key, None)
    roused(state)


@folds(ev.WorldPerceived)
def _perceived(state: AgentState, payload: ev.WorldPerceived, event: Event) -> None:
    state.perceived, state.returned = True, None
    state.sandbox = payload.session
    if payload.world is not None:
        state.world = payload.world
    roused(state)
    for key, value in payload.facts.items():
        held = state.beliefs.get(key)
        if value is None:
            state.beliefs.pop(key, None)
        elif held is None or held.value != value:
            state.beliefs[key] = Belief(key, value, event=event.ref, tick=event.tick)


@folds(ev.PlanAsked)
def _plan_asked(state: AgentState, payload: ev.PlanAsked, event: Event) -> None:
    if state.retry is not None and (state.retry.step, state.retry.goal) == ("", payload.goal):
        state.retry = None
    meta_fold.asked(state, event, plans=True)


@folds(ev.PlanRejected)
def _plan_rejected(state: AgentState, payload: ev.PlanRejected, event: Event) -> None:
    state.needs_replan = True


@folds(ev.PlanAdopted)
def _plan_adopted(state: AgentState, payload: ev.PlanAdopted, event: Event) -> None:
    count_id(state, payload.plan)
    for step in payload.steps:
        count_id(state, step.id)
    steps = tuple(replace(step, event=event.ref) for step in payload.steps)
    old = state.plans.get(payload.goal)
    approval_fold.replanned(state, payload.goal, Reason("plan.new"), old.steps if old else (), steps, event)
    state.plans[payload.goal] = Plan(payload.plan, payload.goal, 1, steps, event.ref)
    state.needs_replan = False
    _planned(state, payload.goal)
    budget_fold.planned(state, payload.goal)


def _planned(state: AgentState, goal: str) -> None:
    """The thinker has given a plan; that the goal was planned anew before still counts."""
    state.replans.pop(goal, None)
    again = [strategy for strategy in state.tried.pop(goal, ()) if strategy in OF_GOALS]
    if again:
        state.tried[goal] = again


@folds(ev.PlanRevised)
def _plan_revised(state: AgentState, payload: ev.PlanRevised, event: Event) -> None:
    old = state.plans.get(payload.goal)
    before = {step.id: step for step in old.steps} if old else {}
    for step in payload.steps:
        count_id(state, step.id)
    steps = (
        *(old.steps[: payload.kept] if old else ()),
        *(step if before.get(step.id) == step else replace(step, event=event.ref) for step in payload.steps),
    )
    approval_fold.replanned(state, payload.goal, payload.change, before.values(), steps, event)
    kept = {step.id for step in steps}
    _forget_steps(state, [step for step in before.values() if step.id not in kept])
    changed = [step.id for step in steps if before.get(step.id) != step]
    _edited(state, event, [payload.goal, *changed, *(before.keys() - kept)])
    if event.actor == "agent":
        _planned(state, payload.goal)
        for step_id in changed:
            state.settled.pop(step_id, None)
    else:
        meta_fold.turned_to(state)
        _plan_afresh(state, payload.goal)
        for step_id in changed:
            _begin_afresh(state, step_id)
    state.plans[payload.goal] = Plan(
        payload.plan, payload.goal, (old.revision if old else 0) + 1, steps, event.ref
    )
    state.needs_replan = False
    budget_fold.planned(state, payload.goal)


def _edited(state: AgentState, event: Event, things: Iterable[str]) -> None:
    """Remember who of the operators changed these last."""
    by = operator_of(event.actor)
    for thing in things:
        if by:
            state.editors[thing] = by
        else:
            state.editors.pop(thing, None)


@folds(ev.StepEnded)
def _step_ended(state: AgentState, payload: ev.StepEnded, event: Event) -> None:
    change_step(state, payload.step, event, status=payload.status, summary=payload.summary.cut(SUMMARY_LIMIT))
    approval_fold.step_over(state, payload.goal, payload.step, payload.status, event)
    budget_fold.step_ended(state, payload)
    if payload.status is StepStatus.FAILED:
        return
    if state.retry is not None and state.retry.step == payload.step:
        state.retry = None
    state.needs_replan = False
    state.replans.pop(payload.goal, None)
    if payload.status.terminal:
        state.breakpoints.pop(payload.step, None)
        state.tried.pop(payload.step, None)
        state.consecutive_errors = 0
        _settle_failures(state, step=payload.step)
    if payload.status is StepStatus.COMPLETED and state.open_thought(payload.goal) is not None:
        # The thinker was told of what went wrong, and something has worked since.
        for at, failure in enumerate(state.failures):
            if failure.goal == payload.goal and failure.strategy is Strategy.DECIDE_ANEW:
                state.failures[at] = replace(failure, resolved=True)


def _settle_failures(state: AgentState, *, step: str = "", goal: str = "") -> None:
    for at, failure in enumerate(state.failures):
        about = (step and failure.step == step) or (goal and failure.goal == goal)
        if about and not failure.resolved:
            state.failures[at] = replace(failure, resolved=True)


@folds(ev.WorkflowEntered)
def _entered(state: AgentState, payload: ev.WorkflowEntered, event: Event) -> None:
    state.workflows = (*state.workflows, OpenWorkflow(payload.workflow, payload.goal))


@folds(ev.WorkflowLeft)
def _left(state: AgentState, payload: ev.WorkflowLeft, event: Event) -> None:
    state.workflows = tuple(workflow for workflow in state.workflows if workflow.id != payload.workflow)
