"""Folds agents as a whole: created, running, stopped, rewound, forked, held by budgets, and strides.

A stride over a step or out of a goal ends where that has ended, however it did, and with the first failure:
the operator sees it before anything is done about it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from engine.core import events as ev
from engine.core.agents import Forked, RunState
from engine.core.approvals import Accepted, Envelope
from engine.core.budgets import BudgetHold, Spent, StepCosts
from engine.core.control import Control
from engine.core.folds import approvals as approval_fold
from engine.core.folds import metacognition as meta_fold
from engine.core.folds.reasoner import end_stride
from engine.core.journal import Event
from engine.core.plan import Op, StepStatus
from engine.core.reasoner import Stride
from engine.core.reasons import NONE, Reason
from engine.core.recovery import Rewinding
from engine.core.rewind import bring_back
from engine.core.sandbox import StopGrade
from engine.core.state import AgentState, folds


def works(state: AgentState) -> bool:
    """Whether the time from here to the next event is time at work.

    It is while one of the agent's own actions runs, and while it may continue (running, or allowed a step)
    with a goal at hand, or with something that its reasoner can do. A pause, a question to the operator, a
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
    generating = any(not generation.stage.over for generation in state.generations.values())
    return mind is None or not mind.idle or bool(state.wanted) or generating


def goal_of_work(state: AgentState) -> str:
    """The goal that time at work counts for; of a reasoner, which pursues its goals at once, its action's."""
    action = state.action
    return action.goal if action is not None and action.goal else state.goal_at_hand


def microseconds_between(before: str, after: str) -> int:
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
    passed = microseconds_between(state.at, event.at)
    if passed:
        state.worked_us += passed
        charge(state, goal_of_work(state), Spent(us=passed))


def charge(state: AgentState, goal: str, spent: Spent) -> None:
    """Count what was taken for a goal."""
    old = state.spent.get(goal)
    state.spent[goal] = spent if old is None else old + spent


def planned(state: AgentState, goal: str) -> None:
    """What planning took is none of the next step's."""
    if state.open_thought(goal) is None:
        pace = state.paces.get(goal, StepCosts())
        state.paces[goal] = replace(pace, began=state.spent.get(goal, Spent()))


def step_ended(state: AgentState, event: ev.StepEnded) -> None:
    """Remember what a step took that is done; what waits for a sub-goal is none of its own."""
    place = state.find_step(event.step) if event.status.terminal else None
    if place is None or place[1].op in (Op.ACHIEVE, Op.THINK):
        return
    spent, pace = state.spent.get(event.goal, Spent()), state.paces.get(event.goal, StepCosts())
    done = event.status is StepStatus.COMPLETED
    state.paces[event.goal] = pace.stepped(spent) if done else replace(pace, began=spent)


@folds(ev.BudgetReached)
def _reached(state: AgentState, payload: ev.BudgetReached, event: Event) -> None:
    running = state.run is RunState.RUNNING
    reason = Reason("run.budget", why=payload.reason)
    state.run, state.run_reason, state.run_event = RunState.PAUSED, reason, event.ref
    state.grants = 0
    if payload.budget:
        state.budget_hold = BudgetHold(payload.budget, payload.of, event.ref, goes_on=running)


@folds(ev.BudgetEased)
def _eased(state: AgentState, payload: ev.BudgetEased, event: Event) -> None:
    held = state.held_by
    if held is None:
        return
    state.run_event, state.budget_hold = event.ref, None
    if held.goes_on:
        state.run, state.run_reason = RunState.RUNNING, NONE
    else:
        state.run_reason = Reason("run.eased")


@folds(ev.AgentConfigured)
def _configured(state: AgentState, payload: ev.AgentConfigured, event: Event) -> None:
    meta = {**state.config.meta, **payload.settings}
    errors = payload.max_consecutive_errors
    state.config = replace(state.config, meta=meta, max_consecutive_errors=errors)


@folds(ev.BudgetSet)
def _set(state: AgentState, payload: ev.BudgetSet, event: Event) -> None:
    if not payload.goal:
        state.budget = payload.limits
    elif payload.limits is None:
        state.goal_budgets.pop(payload.goal, None)
    else:
        state.goal_budgets[payload.goal] = payload.limits


def reopened(state: AgentState) -> None:
    """What a budget holds does not continue by itself in another session."""
    if state.budget_hold is not None:
        state.budget_hold = replace(state.budget_hold, goes_on=False)


G = TypeVar("G", Envelope, Accepted)


@folds(ev.RewindBegun)
def _begun(state: AgentState, payload: ev.RewindBegun, event: Event) -> None:
    state.rewinding = Rewinding(payload.to, payload.what.value, payload.snapshot, payload.saved, event.ref)


@folds(ev.RewindFailed)
def _failed(state: AgentState, payload: ev.RewindFailed, event: Event) -> None:
    state.rewinding = None
    if payload.partly:
        state.perceived = False


@folds(ev.RewindCutOff)
def _cut_off(state: AgentState, payload: ev.RewindCutOff, event: Event) -> None:
    state.rewinding = None
    state.perceived = False


@folds(ev.Rewound)
def _rewound(state: AgentState, payload: ev.Rewound, event: Event) -> None:
    state.rewinding = None
    state.perceived = False
    # What was under way is no longer wanted, as after a stop; the agent itself is only paused.
    state.stop_event = event.ref
    if payload.course is None:
        return
    bring_back(state, payload.course)
    reason = Reason("run.rewound", to=payload.to)
    state.run, state.run_reason, state.run_event = RunState.PAUSED, reason, event.ref
    state.grants, state.stride = 0, None
    # What waited for the operator was about a course that is no more; what they allowed or accepted since
    # then is asked for again.
    known, state.reached = state.approvals, ()
    envelopes, accepted = _before(known.envelopes, payload.to), _before(known.accepted, payload.to)
    aside = _before(known.not_counted.envelopes, payload.to)
    state.approvals = replace(
        known,
        question=None,
        once={},
        held={},
        envelopes=envelopes,
        accepted=accepted,
        not_counted=replace(known.not_counted, once={}, envelopes=aside),
    )


def _before(given: dict[str, G], to: int) -> dict[str, G]:
    """What was given up to a version of the stream."""
    return {goal: value for goal, value in given.items() if int(value.event.rpartition(":")[2]) <= to}


@folds(ev.AgentForked)
def _forked(state: AgentState, payload: ev.AgentForked, event: Event) -> None:
    bring_back(state, payload.course)
    state.next_id, state.budget = dict(payload.next_id), payload.budget
    state.forked = Forked(payload.parent, payload.snapshot, event.ref)
    state.run_reason, state.run_event = Reason("run.forked", parent=payload.parent), event.ref


@folds(ev.AgentHeld)
def _held(state: AgentState, payload: ev.AgentHeld, event: Event) -> None:
    if state.run is not RunState.STOPPED:
        state.run, state.run_reason = RunState.PAUSED, payload.reason
    state.run_event = event.ref
    state.grants = 0
    state.requests.clear()
    state.held = payload.grade.value
    if payload.grade.rank >= StopGrade.CUT.rank:
        state.stop_event = event.ref
    if payload.grade is StopGrade.FREEZE:
        state.frozen = True


@folds(ev.AgentThawed)
def _thawed(state: AgentState, payload: ev.AgentThawed, event: Event) -> None:
    state.frozen = False


@folds(ev.StopObserved)
def _observed(state: AgentState, payload: ev.StopObserved, event: Event) -> None:
    state.stop_receipt = payload.receipt


def stop_ended(state: AgentState) -> None:
    """Nothing of the agent runs any more, so nothing of it is held or frozen."""
    state.held, state.frozen = "", False


def stride_lasts(stride: Stride | None) -> bool:
    """Whether a stride of an agent with plans goes beyond one action."""
    return stride is not None and bool(stride.goal) and stride.scope != "step"


def advance_stride(state: AgentState, event: ev.Payload) -> None:
    """End the stride where this event brought the agent to where it was to go; the state is that after it."""
    stride = state.stride
    if stride is None or not stride.goal:
        return
    if stride.scope == "step":
        arrived = isinstance(event, ev.GoalAdopted) and bool(event.parent_step)
    else:
        arrived = isinstance(event, ev.FailureRecorded) or _through(state, stride, event)
    if arrived:
        end_stride(state)


def _through(state: AgentState, stride: Stride, event: ev.Payload) -> bool:
    """Whether what was to be stepped over or out of is over, or no longer there."""
    match event:
        case ev.GoalEnded():
            return event.goal == stride.goal
        case ev.StepEnded():
            return stride.scope == "over" and event.step == stride.step
        case ev.PlanRevised() | ev.PlanAdopted() | ev.GoalChanged():
            if stride.scope != "over" or event.goal != stride.goal:
                return False
            plan = state.plans.get(stride.goal)
            return plan is None or plan.step(stride.step) is None
    return False


@folds(ev.AgentCreated)
def _created(state: AgentState, payload: ev.AgentCreated, event: Event) -> None:
    state.agent_id, state.agent_type = payload.agent_id, payload.agent_type
    state.description, state.config = payload.description, payload.config
    state.run_reason, state.run_event = Reason("run.new"), event.ref
    state.tracing = bool(payload.config.meta.get("tracing"))
    own = payload.config.set_aside
    state.budget = own if own.any else None


@folds(ev.AgentOpened)
def _opened(state: AgentState, payload: ev.AgentOpened, event: Event) -> None:
    state.session = payload.session
    state.perceived = False
    state.requests.clear()
    # What was allowed to somebody who watched is not allowed once nobody does.
    state.grants = 0
    state.unsaved_step = ""
    stop_ended(state)
    approval_fold.reopened(state)
    meta_fold.reopened(state)
    reopened(state)


@folds(ev.AgentDeleted)
def _deleted(state: AgentState, payload: ev.AgentDeleted, event: Event) -> None:
    state.deleted = True
    state.run, state.run_reason, state.run_event = RunState.STOPPED, Reason("run.deleted"), event.ref
    stop_ended(state)


@folds(ev.AgentResumed)
def _resumed(state: AgentState, payload: ev.AgentResumed, event: Event) -> None:
    state.run, state.run_reason, state.run_event = RunState.RUNNING, NONE, event.ref
    state.grants, state.held = 0, ""
    state.loops, state.max_loops, state.until = 0, payload.max_loops, payload.until
    state.config = replace(state.config, ask=payload.ask)
    approval_fold.resumed(state)
    meta_fold.turned_to(state)


@folds(ev.AgentPaused)
def _paused(state: AgentState, payload: ev.AgentPaused, event: Event) -> None:
    state.run, state.run_reason, state.run_event = RunState.PAUSED, payload.reason, event.ref
    state.grants, state.held = 0, ""


@folds(ev.StepGranted)
def _granted(state: AgentState, payload: ev.StepGranted, event: Event) -> None:
    state.run = RunState.PAUSED
    state.run_reason, state.run_event = Reason("run.stepping"), event.ref
    state.held = ""
    state.grants = 1 if stride_lasts(payload.stride) else state.grants + 1
    approval_fold.stepped(state)
    state.stride = payload.stride


@folds(ev.AgentStopped)
def _stopped(state: AgentState, payload: ev.AgentStopped, event: Event) -> None:
    state.run, state.run_reason, state.run_event = RunState.STOPPED, payload.reason, event.ref
    state.stop_event = event.ref
    state.grants = 0
    stop_ended(state)
    state.requests.clear()


@folds(ev.ControlTaken, ev.ControlGiven)
def _held_by(state: AgentState, payload: ev.ControlTaken | ev.ControlGiven, event: Event) -> None:
    others = tuple(each for each in state.control.asked if each[0] != payload.holder)
    state.control = Control(payload.holder, event.at, others) if payload.holder else Control()


@folds(ev.ControlAsked)
def _control_asked(state: AgentState, payload: ev.ControlAsked, event: Event) -> None:
    state.control = replace(state.control, asked=(*state.control.asked, (payload.by, event.ref)))
