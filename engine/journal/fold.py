"""State as a fold of events: the only place where an agent's state changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from functools import cache
from itertools import islice
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter

from engine.domain.action import ResultStatus
from engine.domain.belief import Belief
from engine.domain.budgets import Spent
from engine.domain.failure import OF_GOALS, UNTRIED_RATE, Failure, Strategy, rate_key
from engine.domain.goal import Goal, GoalStatus
from engine.domain.parameters import Settled
from engine.domain.plan import Op, Plan, PlanStep, StepStatus
from engine.domain.session import Handover, Job, ReturnedShell
from engine.domain.state import (
    ActiveAction,
    AgentState,
    Intervention,
    OpenWorkflow,
    OperatorRequest,
    Retry,
    RunState,
)
from engine.domain.thinking import DecisionKind, RecentAction
from engine.journal import (
    approval_fold,
    break_fold,
    budget_fold,
    dispute_fold,
    meta_fold,
    reasoner_fold,
    rewind_fold,
    stopping_fold,
    stride_fold,
)
from engine.journal import events as ev
from engine.journal.event import Event, canonical
from engine.journal.reasoner_fold import answered, end_stride, roused

SNAPSHOT_FORMAT = 7
"""Raised whenever `AgentState` changes shape; older snapshots are then ignored."""

FAILURES_KEPT = 100
JOBS_KEPT = 20
"""Background jobs that a state remembers after their end."""
SUMMARY_LIMIT = 150
RECENT_KEPT = 10
"""Actions that a thinker is told of with what came of them (spec master-loop §3.4, fetch)."""
ANSWER_HEAD = 4_000
ARGUMENT_HEAD = 1_000
"""Characters that are kept of an action's answer, and of each of its arguments."""
BACKGROUND = "background "
"""How the purpose of a call begins that is no turn of the agent's, so that its prompt is not shown as one."""
LEARNING_RATE = 0.3
"""Weight of the newest outcome in a recovery's success rate (seed parameter processing)."""

P = TypeVar("P", bound=ev.Payload)
_Handler = Callable[[AgentState, Any, Event], None]
_handlers: dict[type[ev.Payload], _Handler] = {
    **reasoner_fold.HANDLERS,
    **meta_fold.HANDLERS,
    **stopping_fold.HANDLERS,
    **break_fold.HANDLERS,
    **approval_fold.HANDLERS,
    **budget_fold.HANDLERS,
    **rewind_fold.HANDLERS,
    **dispute_fold.HANDLERS,
}


def _on(kind: type[P]) -> Callable[[Callable[[AgentState, P, Event], None]], None]:
    def register(handler: Callable[[AgentState, P, Event], None]) -> None:
        _handlers[kind] = handler

    return register


def apply(state: AgentState, event: Event, payload: ev.Payload | None = None) -> AgentState:
    """Bring the state forward by one event of its stream, in place.

    Args:
        state: the state just before the event.
        event: the next event of the stream.
        payload: the event's payload when the caller has it; it is parsed otherwise.
    """
    payload = payload if payload is not None else ev.payload_of(event)
    budget_fold.time_passed(state, event)
    handler = _handlers.get(type(payload))
    if handler is not None:
        before = break_fold.noted(state, payload) if state.watched else None
        handler(state, payload, event)
        if before is not None:
            break_fold.match(state, before, payload, event)
        if state.stride is not None and state.grants:
            stride_fold.went_on(state, payload)
    state.tick = max(state.tick, event.tick)
    state.version, state.hash, state.at = event.version, event.hash, event.at
    return state


def handled(kind: str) -> bool:
    """Whether events of this kind change more of a state than its version; unknown kinds count as if."""
    known = ev.kinds().get(kind)
    return known is None or known in _handlers


def fold(events: Iterable[Event], state: AgentState | None = None) -> AgentState:
    """The state after the events, from `state` (which is changed) or from nothing."""
    state = state if state is not None else AgentState()
    for event in events:
        apply(state, event)
    return state


DUMPED_AT_ONCE = 32
"""Goals, plans or other entries of a state that are written or read between two turns of other threads."""


@cache
def _adapters() -> dict[str, TypeAdapter[Any]]:
    """How each field of a state is written and read."""
    hints = get_type_hints(AgentState)
    return {one.name: TypeAdapter(hints[one.name]) for one in fields(AgentState)}


def dump_state(state: AgentState) -> str:
    """The state as JSON, for a snapshot, behind a line with its SHA-256.

    It is put together from small pieces: a thread that does it lets others have their turn between them.
    """
    # Not sorted, as the order of goals and beliefs is part of the state.
    text = "{" + ", ".join(f'"{name}": {_dumped(state, name)}' for name in _adapters()) + "}"
    return f"{_digest(text)}\n{text}"


def _dumped(state: AgentState, name: str) -> str:
    value, adapter = getattr(state, name), _adapters()[name]
    if not isinstance(value, dict):
        return json.dumps(adapter.dump_python(value))
    pieces = (json.dumps(adapter.dump_python(piece)) for piece in _pieces(value))
    return "{" + ", ".join(piece[1:-1] for piece in pieces) + "}"


def load_state(text: str) -> AgentState:
    """The state from a snapshot, piece by piece as it was written.

    Raises:
        ValueError: the snapshot is not of this format, or is not what was kept.
    """
    digest, _, text = text.partition("\n")
    if _digest(text) != digest:
        raise ValueError("it was changed after it was kept, or was not kept whole")
    # Not `validate_json`, which refuses the half surrogate pairs that an operator's text may hold.
    said = json.loads(text)
    if not isinstance(said, dict):
        raise ValueError("it is not a state")  # noqa: TRY004  a text of another shape, not a wrong argument
    return AgentState(**{name: _loaded(name, value) for name, value in said.items() if name in _adapters()})


def _loaded(name: str, value: Any) -> Any:
    adapter = _adapters()[name]
    if not isinstance(value, dict) or not isinstance(_default(name), dict):
        return adapter.validate_python(value)
    loaded: dict[Any, Any] = {}
    for piece in _pieces(value):
        loaded.update(adapter.validate_python(piece))
    return loaded


@cache
def _default(name: str) -> Any:
    return getattr(AgentState(), name)


def _pieces(entries: dict[Any, Any]) -> Iterator[dict[Any, Any]]:
    """A mapping in pieces of a few entries each."""
    items = iter(entries.items())
    while piece := dict(islice(items, DUMPED_AT_ONCE)):
        yield piece


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def copy_state(state: AgentState) -> AgentState:
    """An independent copy; the values inside are frozen and shared."""
    fresh = replace(state)
    for name in AgentState.__slots__:
        value = getattr(state, name)
        if isinstance(value, dict):
            setattr(fresh, name, {k: list(v) if isinstance(v, list) else v for k, v in value.items()})
        elif isinstance(value, list):
            setattr(fresh, name, list(value))
    return fresh


# ------------------------------------------------------------------ small moves


def _number(state: AgentState, ident: str) -> None:
    """Remember the highest number given to an id such as `s12`."""
    kind, number = ident[:1], ident[1:]
    if number.isdigit():
        state.next_id[kind] = max(state.next_id.get(kind, 0), int(number))


def _change_step(state: AgentState, step_id: str, event: Event, **changes: Any) -> PlanStep | None:
    found = state.find_step(step_id)
    if found is None:
        return None
    plan, step = found
    step = replace(step, event=event.ref, **changes)
    steps = tuple(step if old.id == step_id else old for old in plan.steps)
    state.plans[plan.goal] = replace(plan, steps=steps)
    return step


def _end_action(state: AgentState, event: Event, answer: dict[str, Any] | None) -> None:
    action = state.action
    if action is not None and action.shell and action.started and answer is not None:
        state.returned = ReturnedShell(action.id, action.snapshot, answer, event.ref)
        state.perceived = False
    if action is not None and action.step:
        state.breakpoint_hit = ""
        if state.reasons:
            state.settled.pop(action.step, None)  # what an intention asks for again is another request
    state.action = None


# ------------------------------------------------------------------ agent


@_on(ev.AgentCreated)
def _created(state: AgentState, said: ev.AgentCreated, event: Event) -> None:
    state.agent_id, state.agent_type = said.agent_id, said.agent_type
    state.description, state.config = said.description, said.config
    state.run_reason, state.run_event = "not set running yet", event.ref
    state.tracing = bool(said.config.meta.get("tracing"))
    own = said.config.set_aside
    state.budget = own if own.any else None


@_on(ev.AgentOpened)
def _opened(state: AgentState, said: ev.AgentOpened, event: Event) -> None:
    state.session = said.session
    state.perceived = False
    state.requests.clear()
    # What was allowed to somebody who watched is not allowed once nobody does.
    state.grants = 0
    state.unsaved_step = ""
    stopping_fold.ended(state)
    approval_fold.reopened(state)
    meta_fold.reopened(state)
    budget_fold.reopened(state)


@_on(ev.AgentDeleted)
def _deleted(state: AgentState, said: ev.AgentDeleted, event: Event) -> None:
    state.deleted = True
    state.run, state.run_reason, state.run_event = RunState.STOPPED, "deleted", event.ref
    stopping_fold.ended(state)


@_on(ev.AgentResumed)
def _resumed(state: AgentState, said: ev.AgentResumed, event: Event) -> None:
    state.run, state.run_reason, state.run_event = RunState.RUNNING, "", event.ref
    state.grants, state.held = 0, ""
    state.loops, state.max_loops, state.until = 0, said.max_loops, said.until
    state.config = replace(state.config, ask=said.ask)
    approval_fold.resumed(state)
    meta_fold.turned_to(state)


@_on(ev.AgentPaused)
def _paused(state: AgentState, said: ev.AgentPaused, event: Event) -> None:
    state.run, state.run_reason, state.run_event = RunState.PAUSED, said.reason, event.ref
    state.grants, state.held = 0, ""


@_on(ev.StepGranted)
def _granted(state: AgentState, said: ev.StepGranted, event: Event) -> None:
    state.run = RunState.PAUSED
    state.run_reason, state.run_event = "stepping", event.ref
    state.held = ""
    state.grants = 1 if stride_fold.lasts(said.stride) else state.grants + 1
    approval_fold.stepped(state)
    state.stride = said.stride


@_on(ev.AgentStopped)
def _stopped(state: AgentState, said: ev.AgentStopped, event: Event) -> None:
    state.run, state.run_reason, state.run_event = RunState.STOPPED, said.reason, event.ref
    state.stop_event = event.ref
    state.grants = 0
    stopping_fold.ended(state)
    state.requests.clear()


# ------------------------------------------------------------------ goals and beliefs


@_on(ev.GoalAdopted)
def _adopted(state: AgentState, said: ev.GoalAdopted, event: Event) -> None:
    _number(state, said.goal)
    state.goals[said.goal] = Goal(
        id=said.goal,
        text=said.text,
        priority=said.priority,
        parent=said.parent,
        parent_step=said.parent_step,
        criteria=said.criteria,
        order=len(state.goals),
        status=GoalStatus.ACTIVE if state.reasons else GoalStatus.PENDING,
        event=event.ref,
    )
    roused(state)
    if _by_operator(event):
        meta_fold.turned_to(state)
    if said.parent_step:
        state.loops += 1
        meta_fold.turned(state)
        _change_step(state, said.parent_step, event, status=StepStatus.RUNNING)


def _by_operator(event: Event) -> bool:
    return event.actor.startswith("operator:")


@_on(ev.GoalSelected)
def _selected(state: AgentState, said: ev.GoalSelected, event: Event) -> None:
    state.current_goal = said.goal
    goal = state.goals.get(said.goal)
    if goal is not None and goal.status is GoalStatus.PENDING:
        state.goals[said.goal] = replace(goal, status=GoalStatus.ACTIVE)


@_on(ev.GoalChanged)
def _goal_changed(state: AgentState, said: ev.GoalChanged, event: Event) -> None:
    goal = state.goals.get(said.goal)
    if goal is None:
        return
    meta_fold.turned_to(state)
    if said.text != goal.text:
        plan = state.plans.pop(said.goal, None)
        _forget_steps(state, plan.steps if plan else ())
        _plan_afresh(state, said.goal)
        approval_fold.goal_over(state, said.goal)
    state.goals[said.goal] = replace(goal, text=said.text, priority=said.priority, event=event.ref)


@_on(ev.GoalMoved)
def _goal_moved(state: AgentState, said: ev.GoalMoved, event: Event) -> None:
    goal = state.goals.get(said.goal)
    if goal is not None:
        state.goals[said.goal] = replace(goal, parent=said.parent, event=event.ref)
        roused(state)


@_on(ev.GoalEnded)
def _goal_ended(state: AgentState, said: ev.GoalEnded, event: Event) -> None:
    goal = state.goals.get(said.goal)
    if goal is None:
        return
    state.goals[said.goal] = replace(goal, status=said.status, reason=said.reason, event=event.ref)
    state.workflows = tuple(one for one in state.workflows if one.goal != said.goal)
    roused(state)
    approval_fold.goal_over(state, said.goal)
    if said.status is GoalStatus.ACHIEVED or _by_operator(event):
        meta_fold.turned_to(state)
    meta_fold.goal_over(state, said.goal)
    if state.current_goal == said.goal:
        state.needs_replan = False
        state.retry = None
    _plan_afresh(state, said.goal)
    plan = state.plans.get(said.goal)
    if plan is not None and said.status is not GoalStatus.ACHIEVED:
        steps = tuple(
            step if step.status.terminal else replace(step, status=StepStatus.ABANDONED)
            for step in plan.steps
        )
        state.plans[said.goal] = replace(plan, steps=steps)
        _forget_steps(state, steps)
    _settle_failures(state, goal=said.goal)
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


@_on(ev.BeliefAdded)
def _believed(state: AgentState, said: ev.BeliefAdded, event: Event) -> None:
    state.beliefs[said.key] = Belief(
        said.key, said.value, said.confidence, said.source, event=event.ref, tick=event.tick
    )
    roused(state)
    if _by_operator(event):
        meta_fold.turned_to(state)


@_on(ev.BeliefRemoved)
def _disbelieved(state: AgentState, said: ev.BeliefRemoved, event: Event) -> None:
    state.beliefs.pop(said.key, None)
    roused(state)


@_on(ev.WorldPerceived)
def _perceived(state: AgentState, said: ev.WorldPerceived, event: Event) -> None:
    state.perceived, state.returned = True, None
    state.sandbox = said.session
    if said.world is not None:
        state.world = said.world
    roused(state)
    for key, value in said.facts.items():
        held = state.beliefs.get(key)
        if value is None:
            state.beliefs.pop(key, None)
        elif held is None or held.value != value:
            state.beliefs[key] = Belief(key, value, event=event.ref, tick=event.tick)


# ------------------------------------------------------------------ plans


@_on(ev.PlanAsked)
def _plan_asked(state: AgentState, said: ev.PlanAsked, event: Event) -> None:
    if state.retry is not None and (state.retry.step, state.retry.goal) == ("", said.goal):
        state.retry = None
    meta_fold.asked(state, event)


@_on(ev.PlanRejected)
def _plan_rejected(state: AgentState, said: ev.PlanRejected, event: Event) -> None:
    state.needs_replan = True


@_on(ev.PlanAdopted)
def _plan_adopted(state: AgentState, said: ev.PlanAdopted, event: Event) -> None:
    _number(state, said.plan)
    for step in said.steps:
        _number(state, step.id)
    steps = tuple(replace(step, event=event.ref) for step in said.steps)
    old = state.plans.get(said.goal)
    approval_fold.replanned(state, said.goal, "planned anew", old.steps if old else (), steps, event)
    state.plans[said.goal] = Plan(said.plan, said.goal, 1, steps, event.ref)
    state.needs_replan = False
    _planned(state, said.goal)
    budget_fold.planned(state, said.goal)


def _planned(state: AgentState, goal: str) -> None:
    """The thinker has given a plan; that the goal was planned anew before still counts."""
    state.replans.pop(goal, None)
    again = [strategy for strategy in state.tried.pop(goal, ()) if strategy in OF_GOALS]
    if again:
        state.tried[goal] = again


@_on(ev.PlanRevised)
def _plan_revised(state: AgentState, said: ev.PlanRevised, event: Event) -> None:
    old = state.plans.get(said.goal)
    before = {step.id: step for step in old.steps} if old else {}
    for step in said.steps:
        _number(state, step.id)
    steps = tuple(
        step if before.get(step.id) == step else replace(step, event=event.ref) for step in said.steps
    )
    approval_fold.replanned(state, said.goal, said.change, before.values(), steps, event)
    kept = {step.id for step in steps}
    _forget_steps(state, [step for step in before.values() if step.id not in kept])
    changed = [step.id for step in steps if before.get(step.id) != step]
    if event.actor == "agent":
        _planned(state, said.goal)
        for step_id in changed:
            state.settled.pop(step_id, None)
    else:
        meta_fold.turned_to(state)
        _plan_afresh(state, said.goal)
        for step_id in changed:
            _begin_afresh(state, step_id)
    state.plans[said.goal] = Plan(said.plan, said.goal, (old.revision if old else 0) + 1, steps, event.ref)
    state.needs_replan = False
    budget_fold.planned(state, said.goal)


@_on(ev.StepEnded)
def _step_ended(state: AgentState, said: ev.StepEnded, event: Event) -> None:
    _change_step(state, said.step, event, status=said.status, summary=said.summary[:SUMMARY_LIMIT])
    approval_fold.step_over(state, said.goal, said.step, said.status, event)
    budget_fold.step_ended(state, said)
    if said.status is StepStatus.FAILED:
        return
    if state.retry is not None and state.retry.step == said.step:
        state.retry = None
    state.needs_replan = False
    state.replans.pop(said.goal, None)
    if said.status.terminal:
        state.breakpoints.pop(said.step, None)
        state.tried.pop(said.step, None)
        state.consecutive_errors = 0
        _settle_failures(state, step=said.step)
    if said.status is StepStatus.COMPLETED and state.open_thought(said.goal) is not None:
        # The thinker was told of what went wrong, and something has worked since.
        state.failures = [
            replace(failure, resolved=True)
            if failure.goal == said.goal and failure.strategy is Strategy.DECIDE_ANEW
            else failure
            for failure in state.failures
        ]


def _settle_failures(state: AgentState, *, step: str = "", goal: str = "") -> None:
    state.failures = [
        replace(failure, resolved=True)
        if not failure.resolved and ((step and failure.step == step) or (goal and failure.goal == goal))
        else failure
        for failure in state.failures
    ]


# ------------------------------------------------------------------ actions


@_on(ev.OperatorActionQueued)
def _queued(state: AgentState, said: ev.OperatorActionQueued, event: Event) -> None:
    state.requests.append(OperatorRequest(said.tool, said.command, said.args, event.actor, event.ref))


@_on(ev.ActionRequested)
def _requested(state: AgentState, said: ev.ActionRequested, event: Event) -> None:
    _number(state, said.action)
    state.action = ActiveAction(
        said.action,
        said.tool,
        said.command,
        said.args,
        event.actor,
        said.step,
        said.goal,
        at=event.at,
        event=event.ref,
    )
    approval_fold.requested(state, said.step)
    if state.requests and not said.step:
        state.requests.pop(0)


@_on(ev.ParametersProcessed)
def _processed(state: AgentState, said: ev.ParametersProcessed, event: Event) -> None:
    action = state.action
    if action is None:
        return
    state.action = replace(action, args=said.args)
    if action.step:
        before = state.settled[action.step].corrections if action.step in state.settled else ()
        state.settled[action.step] = Settled(said.args, (*before, *said.corrections))


@_on(ev.ActionWithdrawn)
def _withdrawn(state: AgentState, said: ev.ActionWithdrawn, event: Event) -> None:
    if state.action is not None and state.reasons:
        state.settled.pop(state.action.step, None)
    approval_fold.withdrawn(state, said.action, event)
    state.action = None


@_on(ev.ActionStarted)
def _started(state: AgentState, said: ev.ActionStarted, event: Event) -> None:
    if state.action is None:
        return
    state.action = replace(state.action, started=True, mutates=said.mutates, at=event.at, event=event.ref)
    if not state.action.step:
        state.operator_actions += 1
        return
    state.retry = None
    approval_fold.began(state, state.action.step)
    if state.unsaved_step == state.action.step:
        state.unsaved_step = ""
    state.actions += 1
    budget_fold.take(state, state.action.goal, Spent(actions=1))
    state.loops += not state.reasons
    if (
        state.run is RunState.PAUSED
        and state.grants
        and (state.stride is None or state.stride.scope == "step")
    ):
        end_stride(state)
    found = state.find_step(state.action.step)
    if found is not None:
        attempts = found[1].attempts + 1
        _change_step(state, found[1].id, event, status=StepStatus.RUNNING, attempts=attempts)


@_on(ev.ActionFinished)
def _finished(state: AgentState, said: ev.ActionFinished, event: Event) -> None:
    action = state.action
    if said.session is not None:
        state.sandbox = said.session
    state.last_summary = said.summary[:SUMMARY_LIMIT]
    if action is not None and action.step:
        approval_fold.began(state, action.step)
        if said.code is None:
            state.consecutive_errors = 0
            state.successes_since_reflection += 1.0
            state.successes_since_consolidation += 1.0
        else:
            state.failed_actions += 1
        meta_fold.acted(state, action, said, event)
        answered(state, action.step)
        if state.config.replans and not state.reasons:
            _remember_action(state, action, said, event)
    if said.world is not None:
        state.world = said.world
        roused(state)
    _end_action(state, event, None if said.status is ResultStatus.ERROR else said.result)


def _remember_action(state: AgentState, action: ActiveAction, said: ev.ActionFinished, event: Event) -> None:
    """Keep what a thinker is told of an action that has ended."""
    answer = canonical(said.result)
    if len(answer) > ANSWER_HEAD:
        answer = f"{answer[:ANSWER_HEAD]}… ({len(answer) - ANSWER_HEAD:,} characters more)"
    args = {
        name: f"{value[:ARGUMENT_HEAD]}…" if isinstance(value, str) and len(value) > ARGUMENT_HEAD else value
        for name, value in action.args.items()
    }
    done = RecentAction(action.step, action.tool, action.command, args, said.code is None, answer, event.ref)
    state.recent = (*state.recent, done)[-RECENT_KEPT:]


@_on(ev.ActionCancelled)
def _cancelled(state: AgentState, said: ev.ActionCancelled, event: Event) -> None:
    _end_action(state, event, {})


@_on(ev.ActionOutcomeUnknown)
def _unknown(state: AgentState, said: ev.ActionOutcomeUnknown, event: Event) -> None:
    if state.action is not None and state.action.step:
        state.failed_actions += 1
        answered(state, state.action.step)
    _end_action(state, event, {})


# ------------------------------------------------------------------ snapshots, jobs, the operator's shell


@_on(ev.SnapshotTaken)
def _saved(state: AgentState, said: ev.SnapshotTaken, event: Event) -> None:
    if state.action is not None:
        state.action = replace(state.action, snapshot=said.snapshot)


@_on(ev.SnapshotWaived)
def _waived(state: AgentState, said: ev.SnapshotWaived, event: Event) -> None:
    state.unsaved_step = said.step


@_on(ev.JobStarted)
def _job_started(state: AgentState, said: ev.JobStarted, event: Event) -> None:
    state.jobs[said.job] = Job(said.job, said.command, at=event.at, event=event.ref)
    _believe_of_job(state, said.job, f"running: {said.command}", event)


def _believe_of_job(state: AgentState, job: str, value: str, event: Event) -> None:
    key = f"job.{job}"
    state.beliefs[key] = Belief(key, value, event=event.ref, tick=event.tick)


@_on(ev.JobEnded)
def _job_ended(state: AgentState, said: ev.JobEnded, event: Event) -> None:
    job = state.jobs.pop(said.job, None)
    if job is None:
        return
    state.jobs[said.job] = replace(
        job, ended=said.ended, code=said.code, message=said.message, event=event.ref
    )
    _believe_of_job(state, said.job, said.message or said.ended, event)
    over = [old.id for old in state.jobs.values() if not old.running]
    for old in over[:-JOBS_KEPT]:
        del state.jobs[old]
        state.beliefs.pop(f"job.{old}", None)


@_on(ev.ChangesOffered)
def _offered(state: AgentState, said: ev.ChangesOffered, event: Event) -> None:
    state.returned = None
    state.handover = Handover(said.action, said.offers, said.session, event.ref)


@_on(ev.ChangesSettled)
def _settled(state: AgentState, said: ev.ChangesSettled, event: Event) -> None:
    state.handover = None
    meta_fold.turned_to(state)
    state.perceived = False
    if said.session is not None:
        state.sandbox = said.session


# ------------------------------------------------------------------ recovery and intervention


@_on(ev.FailureRecorded)
def _failed(state: AgentState, said: ev.FailureRecorded, event: Event) -> None:
    state.failures.append(
        Failure(said.failure, said.message, said.goal, said.step, said.action, said.subject, event=event.ref)
    )
    del state.failures[:-FAILURES_KEPT]
    state.consecutive_errors += not said.escalated_from
    if not said.escalated_from:
        meta_fold.failed(state)
    state.needs_replan = True
    state.successes_since_reflection = 0.0


@_on(ev.ModelCalled)
def _model_called(state: AgentState, said: ev.ModelCalled, event: Event) -> None:
    state.model_calls += 1
    state.unpriced_calls += said.cost_usd is None
    state.tokens += said.tokens
    state.cost_usd += said.cost_usd or 0.0
    took = Spent(1, said.tokens, said.cost_usd or 0.0, unpriced=int(said.cost_usd is None))
    budget_fold.take(state, said.goal, took)
    if not said.purpose.startswith(BACKGROUND):
        state.model = said.model
        state.context, state.context_window = said.shares, said.window


@_on(ev.RecoveryChosen)
def _recovery_chosen(state: AgentState, said: ev.RecoveryChosen, event: Event) -> None:
    if state.failures:
        state.failures[-1] = replace(
            state.failures[-1],
            strategy=said.strategy,
            attempt=said.attempt,
            of=said.of,
            delay_s=said.delay_s,
        )
    tried_on = said.goal if said.strategy in OF_GOALS or not said.step else said.step
    state.tried.setdefault(tried_on, []).append(said.strategy)
    match said.strategy:
        case Strategy.RETRY_WITH_DELAY:
            state.retry = Retry(
                said.step, said.attempt, said.of, said.delay_s, event.ref, said.goal, at=event.at
            )
            state.needs_replan = False
        case Strategy.ALTERNATIVE_TOOL:
            state.needs_replan = False
        case Strategy.DECIDE_ANEW:
            _give_up_step(state, said.goal, said.step, event)
        case Strategy.SIMPLIFIED_APPROACH:
            state.replans[said.goal] = event.ref
            state.needs_replan = False
        case _:
            state.replans.pop(said.goal, None)


def _give_up_step(state: AgentState, goal: str, step_id: str, event: Event) -> None:
    """A failed step and all that wait for it stay in the plan as they are; the thinker does without them."""
    plan = state.plans.get(goal)
    failed = plan.step(step_id) if plan is not None else None
    if plan is None or failed is None or failed.op is Op.THINK:
        return
    lost = {step_id}
    for step in plan.steps:
        if step.op is not Op.THINK and not step.status.terminal and not lost.isdisjoint(step.depends_on):
            lost.add(step.id)
            _change_step(state, step.id, event, status=StepStatus.ABANDONED, summary=f"needs {step_id}")
    _change_step(state, step_id, event, status=StepStatus.ABANDONED)


@_on(ev.RecoveryEnded)
def _recovery_ended(state: AgentState, said: ev.RecoveryEnded, event: Event) -> None:
    key = rate_key(said.failure, said.strategy)
    rate = state.recovery_rates.get(key, UNTRIED_RATE)
    state.recovery_rates[key] = (1 - LEARNING_RATE) * rate + LEARNING_RATE * (1.0 if said.success else 0.0)
    if said.rests_until:
        state.resting[key] = said.rests_until
    elif said.success:
        state.resting.pop(key, None)
    for at in range(len(state.failures) - 1, -1, -1):
        failure = state.failures[at]
        if failure.open_under(said.strategy, goal=said.goal, step=said.step):
            state.failures[at] = replace(failure, succeeded=said.success)
            break


@_on(ev.RecoveryHastened)
def _hastened(state: AgentState, said: ev.RecoveryHastened, event: Event) -> None:
    if state.retry is not None and (state.retry.step, state.retry.goal) == ("", said.goal):
        state.retry = None


@_on(ev.InterventionOpened)
def _intervention_opened(state: AgentState, said: ev.InterventionOpened, event: Event) -> None:
    state.grants = 0
    state.intervention = Intervention(
        said.goal, said.step, said.reason, said.failure.value if said.failure else "", said.tried, event.ref
    )


@_on(ev.InterventionClosed)
def _intervention_closed(state: AgentState, said: ev.InterventionClosed, event: Event) -> None:
    state.intervention = None
    meta_fold.turned_to(state)
    state.consecutive_errors = 0
    state.needs_replan = False
    state.perceived = False


@_on(ev.ThoughtRecorded)
def _thought(state: AgentState, said: ev.ThoughtRecorded, event: Event) -> None:
    state.successes_since_reflection += 0.5
    state.successes_since_consolidation += 0.5
    state.consecutive_errors = 0
    state.musings += 1
    meta_fold.turned(state)


# ------------------------------------------------------------------ workflows


@_on(ev.WorkflowEntered)
def _entered(state: AgentState, said: ev.WorkflowEntered, event: Event) -> None:
    state.workflows = (*state.workflows, OpenWorkflow(said.workflow, said.goal))


@_on(ev.WorkflowLeft)
def _left(state: AgentState, said: ev.WorkflowLeft, event: Event) -> None:
    state.workflows = tuple(one for one in state.workflows if one.id != said.workflow)


# ------------------------------------------------------------------ decisions


@_on(ev.DecisionAsked)
def _decision_asked(state: AgentState, said: ev.DecisionAsked, event: Event) -> None:
    if state.retry is not None and state.retry.step == said.step:
        state.retry = None
    meta_fold.asked(state, event)


@_on(ev.DecisionMade)
def _decided(state: AgentState, said: ev.DecisionMade, event: Event) -> None:
    if said.decision.kind is not DecisionKind.CALL:
        state.loops += 1  # a call counts when it starts
    if said.decision.kind in (DecisionKind.CALL, DecisionKind.SUBGOAL):
        approval_fold.decided(state, said.goal, event)
    if said.decision.kind is DecisionKind.PLAN:
        meta_fold.turned(state)
    if said.decision.kind is not DecisionKind.THINK:
        state.musings = 0
    state.deferred = said.decision.deferred
    # Deciding is what a single step is for, as it costs: what was decided is looked at before it runs.
    if state.run is RunState.PAUSED and state.grants and not stride_fold.lasts(state.stride):
        end_stride(state)
