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
from engine.core.folds import approvals as approval_fold
from engine.core.folds import metacognition as meta_fold
from engine.core.folds.reasoner import end_stride
from engine.core.journal import Event
from engine.core.plan import Op, StepStatus
from engine.core.reasoner import Stride
from engine.core.recovery import Rewinding
from engine.core.rewind import bring_back
from engine.core.sandbox import StopGrade
from engine.core.state import AgentState, folds


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


def step_ended(state: AgentState, said: ev.StepEnded) -> None:
    """Remember what a step took that is done; what waits for a sub-goal is none of its own."""
    place = state.find_step(said.step) if said.status.terminal else None
    if place is None or place[1].op in (Op.ACHIEVE, Op.THINK):
        return
    spent, pace = state.spent.get(said.goal, Spent()), state.paces.get(said.goal, StepCosts())
    done = said.status is StepStatus.COMPLETED
    state.paces[said.goal] = pace.stepped(spent) if done else replace(pace, began=spent)


@folds(ev.BudgetReached)
def _reached(state: AgentState, said: ev.BudgetReached, event: Event) -> None:
    running = state.run is RunState.RUNNING
    state.run, state.run_reason, state.run_event = RunState.PAUSED, f"BUDGET: {said.reason}", event.ref
    state.grants = 0
    if said.budget:
        state.budget_hold = BudgetHold(said.budget, said.of, event.ref, goes_on=running)


@folds(ev.BudgetEased)
def _eased(state: AgentState, said: ev.BudgetEased, event: Event) -> None:
    held = state.held_by
    if held is None:
        return
    state.run_event, state.budget_hold = event.ref, None
    if held.goes_on:
        state.run, state.run_reason = RunState.RUNNING, ""
    else:
        state.run_reason = "paused; there is more of the budget now"


@folds(ev.BudgetSet)
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


G = TypeVar("G", Envelope, Accepted)


@folds(ev.RewindBegun)
def _begun(state: AgentState, said: ev.RewindBegun, event: Event) -> None:
    state.rewinding = Rewinding(said.to, said.what.value, said.snapshot, said.saved, event.ref)


@folds(ev.RewindFailed)
def _failed(state: AgentState, said: ev.RewindFailed, event: Event) -> None:
    state.rewinding = None
    if said.partly:
        state.perceived = False


@folds(ev.RewindCutOff)
def _cut_off(state: AgentState, said: ev.RewindCutOff, event: Event) -> None:
    state.rewinding = None
    state.perceived = False


@folds(ev.Rewound)
def _rewound(state: AgentState, said: ev.Rewound, event: Event) -> None:
    state.rewinding = None
    state.perceived = False
    # What was under way is no longer wanted, as after a stop; the agent itself is only paused.
    state.stop_event = event.ref
    if said.course is None:
        return
    bring_back(state, said.course)
    state.run, state.run_reason, state.run_event = RunState.PAUSED, f"rewound to event {said.to}", event.ref
    state.grants, state.stride = 0, None
    # What waited for the operator was about a course that is no more; what they allowed or accepted since
    # then is asked for again.
    known, state.reached = state.approvals, ()
    envelopes, accepted = _before(known.envelopes, said.to), _before(known.accepted, said.to)
    state.approvals = replace(known, question=None, once={}, held={}, envelopes=envelopes, accepted=accepted)


def _before(given: dict[str, G], to: int) -> dict[str, G]:
    """What was given up to a version of the stream."""
    return {goal: value for goal, value in given.items() if int(value.event.rpartition(":")[2]) <= to}


@folds(ev.AgentForked)
def _forked(state: AgentState, said: ev.AgentForked, event: Event) -> None:
    bring_back(state, said.course)
    state.next_id, state.budget = dict(said.next_id), said.budget
    state.forked = Forked(said.parent, said.snapshot, event.ref)
    state.run_reason, state.run_event = f"forked from {said.parent}", event.ref


@folds(ev.AgentHeld)
def _held(state: AgentState, said: ev.AgentHeld, event: Event) -> None:
    if state.run is not RunState.STOPPED:
        state.run, state.run_reason = RunState.PAUSED, said.reason
    state.run_event = event.ref
    state.grants = 0
    state.requests.clear()
    state.held = said.grade.value
    if said.grade.rank >= StopGrade.CUT.rank:
        state.stop_event = event.ref
    if said.grade is StopGrade.FREEZE:
        state.frozen = True


@folds(ev.AgentThawed)
def _thawed(state: AgentState, said: ev.AgentThawed, event: Event) -> None:
    state.frozen = False


@folds(ev.StopObserved)
def _observed(state: AgentState, said: ev.StopObserved, event: Event) -> None:
    state.stop_receipt = said.receipt


def stop_ended(state: AgentState) -> None:
    """Nothing of the agent runs any more, so nothing of it is held or frozen."""
    state.held, state.frozen = "", False


def stride_lasts(stride: Stride | None) -> bool:
    """Whether a stride of an agent with plans goes beyond one action."""
    return stride is not None and bool(stride.goal) and stride.scope != "step"


def advance_stride(state: AgentState, said: ev.Payload) -> None:
    """End the stride where this event brought the agent to where it was to go; the state is that after it."""
    stride = state.stride
    if stride is None or not stride.goal:
        return
    if stride.scope == "step":
        arrived = isinstance(said, ev.GoalAdopted) and bool(said.parent_step)
    else:
        arrived = isinstance(said, ev.FailureRecorded) or _through(state, stride, said)
    if arrived:
        end_stride(state)


def _through(state: AgentState, stride: Stride, said: ev.Payload) -> bool:
    """Whether what was to be stepped over or out of is over, or no longer there."""
    match said:
        case ev.GoalEnded():
            return said.goal == stride.goal
        case ev.StepEnded():
            return stride.scope == "over" and said.step == stride.step
        case ev.PlanRevised() | ev.PlanAdopted() | ev.GoalChanged():
            if stride.scope != "over" or said.goal != stride.goal:
                return False
            plan = state.plans.get(stride.goal)
            return plan is None or plan.step(stride.step) is None
    return False


@folds(ev.AgentCreated)
def _created(state: AgentState, said: ev.AgentCreated, event: Event) -> None:
    state.agent_id, state.agent_type = said.agent_id, said.agent_type
    state.description, state.config = said.description, said.config
    state.run_reason, state.run_event = "not set running yet", event.ref
    state.tracing = bool(said.config.meta.get("tracing"))
    own = said.config.set_aside
    state.budget = own if own.any else None


@folds(ev.AgentOpened)
def _opened(state: AgentState, said: ev.AgentOpened, event: Event) -> None:
    state.session = said.session
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
def _deleted(state: AgentState, said: ev.AgentDeleted, event: Event) -> None:
    state.deleted = True
    state.run, state.run_reason, state.run_event = RunState.STOPPED, "deleted", event.ref
    stop_ended(state)


@folds(ev.AgentResumed)
def _resumed(state: AgentState, said: ev.AgentResumed, event: Event) -> None:
    state.run, state.run_reason, state.run_event = RunState.RUNNING, "", event.ref
    state.grants, state.held = 0, ""
    state.loops, state.max_loops, state.until = 0, said.max_loops, said.until
    state.config = replace(state.config, ask=said.ask)
    approval_fold.resumed(state)
    meta_fold.turned_to(state)


@folds(ev.AgentPaused)
def _paused(state: AgentState, said: ev.AgentPaused, event: Event) -> None:
    state.run, state.run_reason, state.run_event = RunState.PAUSED, said.reason, event.ref
    state.grants, state.held = 0, ""


@folds(ev.StepGranted)
def _granted(state: AgentState, said: ev.StepGranted, event: Event) -> None:
    state.run = RunState.PAUSED
    state.run_reason, state.run_event = "stepping", event.ref
    state.held = ""
    state.grants = 1 if stride_lasts(said.stride) else state.grants + 1
    approval_fold.stepped(state)
    state.stride = said.stride


@folds(ev.AgentStopped)
def _stopped(state: AgentState, said: ev.AgentStopped, event: Event) -> None:
    state.run, state.run_reason, state.run_event = RunState.STOPPED, said.reason, event.ref
    state.stop_event = event.ref
    state.grants = 0
    stop_ended(state)
    state.requests.clear()
