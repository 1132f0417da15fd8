"""What actions, jobs, the operator at the shell, failures, recovery and thinking do to a state."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from engine.core import events as ev
from engine.core.actions import ResultStatus, Settled
from engine.core.agents import RunState
from engine.core.beliefs import Belief
from engine.core.budgets import Spent
from engine.core.folds import agents as agent_fold
from engine.core.folds import approvals as approval_fold
from engine.core.folds import metacognition as meta_fold
from engine.core.folds.goals import SUMMARY_LIMIT, change_step
from engine.core.folds.reasoner import answered, end_stride, roused
from engine.core.journal import Event, canonical
from engine.core.plan import Op, StepStatus
from engine.core.reasons import Reason
from engine.core.recovery import (
    OF_GOALS,
    UNTRIED_RATE,
    ActiveAction,
    Failure,
    Intervention,
    OperatorRequest,
    Retry,
    Strategy,
    rate_key,
)
from engine.core.sandbox import WRITE_COMMAND, WRITE_TOOL, Handover, Job, ReturnedShell, place_of
from engine.core.state import AgentState, count_id, folds
from engine.core.thinking import DecisionKind, RecentAction
from engine.value import fields_of

FAILURES_KEPT = 100
BACKGROUND = "background "
"""How the purpose of a call begins that is no turn of the agent's, so that its prompt is not shown as one."""
LEARNING_RATE = 0.3
"""Weight of the newest outcome in a recovery's success rate (seed parameter processing)."""
JOBS_KEPT = 20
"""Background jobs that a state remembers after their end."""
RECENT_KEPT = 10
"""Actions that a thinker is told of with their results."""
WRITTEN_KEPT = 500
"""Files that a state remembers as written by the agent."""
ANSWER_HEAD = 4_000
ARGUMENT_HEAD = 1_000
"""Characters that are kept of an action's answer, and of each of its arguments."""


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


@folds(ev.OperatorActionQueued)
def _queued(state: AgentState, payload: ev.OperatorActionQueued, event: Event) -> None:
    asked = OperatorRequest(
        payload.tool, payload.command, payload.args, event.actor, event.ref, payload.client, payload.wait_s
    )
    state.requests.append(asked)


@folds(ev.CallDropped)
def _dropped(state: AgentState, payload: ev.CallDropped, event: Event) -> None:
    state.requests = [request for request in state.requests if request.event != payload.queued]
    action = state.action
    if action is not None and action.queued == payload.queued:
        state.action = replace(action, dropped=True)


@folds(ev.ActionRequested)
def _requested(state: AgentState, payload: ev.ActionRequested, event: Event) -> None:
    count_id(state, payload.action)
    call = (payload.action, payload.tool, payload.command, payload.args)
    state.action = ActiveAction(*call, event.actor, payload.step, payload.goal, at=event.at, event=event.ref)
    approval_fold.requested(state, payload.step)
    if state.requests and not payload.step:
        asked = state.requests.pop(0)
        state.action = replace(
            state.action, client=asked.client, attended=asked.wait_s > 0, queued=asked.event
        )


@folds(ev.ParametersProcessed)
def _processed(state: AgentState, payload: ev.ParametersProcessed, event: Event) -> None:
    action = state.action
    if action is None:
        return
    state.action = replace(action, args=payload.args)
    if action.step:
        before = state.settled[action.step].corrections if action.step in state.settled else ()
        state.settled[action.step] = Settled(payload.args, (*before, *payload.corrections))


@folds(ev.OperatorNeeded)
def _needs(state: AgentState, payload: ev.OperatorNeeded, event: Event) -> None:
    if state.action is not None and state.action.id == payload.action:
        state.action = replace(state.action, needs=payload.why, request=payload.request)


@folds(ev.ActionWithdrawn)
def _withdrawn(state: AgentState, payload: ev.ActionWithdrawn, event: Event) -> None:
    if state.action is not None and state.reasons:
        state.settled.pop(state.action.step, None)
    approval_fold.withdrawn(state, payload.action, event)
    if state.action is not None and state.action.client:
        approval_fold.client_over(state)
    state.action = None


@folds(ev.ActionStarted)
def _started(state: AgentState, payload: ev.ActionStarted, event: Event) -> None:
    if state.action is None:
        return
    state.action = replace(state.action, started=True, mutates=payload.mutates, at=event.at, event=event.ref)
    if not state.action.step:
        state.operator_actions += 1
        if state.action.client:
            approval_fold.began(state, "")
        return
    state.retry = None
    approval_fold.began(state, state.action.step)
    if state.unsaved_step == state.action.step:
        state.unsaved_step = ""
    state.actions += 1
    agent_fold.charge(state, state.action.goal, Spent(actions=1))
    state.loops += not state.reasons
    if (
        state.run is RunState.PAUSED
        and state.grants
        and (state.stride is None or state.stride.scope == "step")
    ):
        end_stride(state)
    place = state.find_step(state.action.step)
    if place is not None:
        attempts = place[1].attempts + 1
        change_step(state, place[1].id, event, status=StepStatus.RUNNING, attempts=attempts)


@folds(ev.ActionFinished)
def _finished(state: AgentState, payload: ev.ActionFinished, event: Event) -> None:
    action = state.action
    if payload.session is not None:
        state.sandbox = payload.session
    state.last_summary = payload.summary[:SUMMARY_LIMIT]
    if action is not None and action.step:
        approval_fold.began(state, action.step)
        if payload.code is None:
            _remember_written(state, action)
            state.consecutive_errors = 0
            state.successes_since_reflection += 1.0
            state.successes_since_consolidation += 1.0
        else:
            state.failed_actions += 1
        meta_fold.acted(state, action, payload, event)
        answered(state, action.step)
        if state.config.replans and not state.reasons:
            _remember_action(state, action, payload, event)
    elif action is not None and action.client:
        approval_fold.client_over(state)
        if payload.code is None:
            _remember_written(state, action)
    if payload.world is not None:
        state.world = payload.world
        roused(state)
    _end_action(state, event, None if payload.status is ResultStatus.ERROR else payload.result)


def _remember_written(state: AgentState, action: ActiveAction) -> None:
    """Keep what the agent itself put into a file, so that it may put something else there."""
    path, content = action.args.get("path"), action.args.get("content")
    if (action.tool, action.command) != (WRITE_TOOL, WRITE_COMMAND) or not isinstance(path, str):
        return
    place = place_of(state.sandbox.cwd, path)
    state.written.pop(place, None)
    state.written[place] = hashlib.sha256(str(content).encode("utf-8", "surrogatepass")).hexdigest()
    for old in list(state.written)[:-WRITTEN_KEPT]:
        del state.written[old]


def _remember_action(
    state: AgentState, action: ActiveAction, payload: ev.ActionFinished, event: Event
) -> None:
    """Keep what a thinker is told of an action that has ended."""
    answer = canonical(payload.result)
    if len(answer) > ANSWER_HEAD:
        answer = f"{answer[:ANSWER_HEAD]}… ({len(answer) - ANSWER_HEAD:,} characters more)"
    args = {
        name: f"{value[:ARGUMENT_HEAD]}…" if isinstance(value, str) and len(value) > ARGUMENT_HEAD else value
        for name, value in action.args.items()
    }
    ok, tool, command = payload.code is None, action.tool, action.command
    done = RecentAction(action.step, tool, command, args, ok, answer, event.ref, action.id)
    state.recent = (*state.recent, done)[-RECENT_KEPT:]


@folds(ev.ActionCancelled)
def _cancelled(state: AgentState, payload: ev.ActionCancelled, event: Event) -> None:
    _end_action(state, event, {})


@folds(ev.ActionOutcomeUnknown)
def _unknown(state: AgentState, payload: ev.ActionOutcomeUnknown, event: Event) -> None:
    if state.action is not None and state.action.step:
        state.failed_actions += 1
        answered(state, state.action.step)
    _end_action(state, event, {})


@folds(ev.SnapshotTaken)
def _saved(state: AgentState, payload: ev.SnapshotTaken, event: Event) -> None:
    if state.action is not None:
        state.action = replace(state.action, snapshot=payload.snapshot)


@folds(ev.SnapshotWaived)
def _waived(state: AgentState, payload: ev.SnapshotWaived, event: Event) -> None:
    state.unsaved_step = payload.step


@folds(ev.JobStarted)
def _job_started(state: AgentState, payload: ev.JobStarted, event: Event) -> None:
    state.jobs[payload.job] = Job(payload.job, payload.command, at=event.at, event=event.ref)
    _believe_of_job(state, payload.job, f"running: {payload.command}", event)


def _believe_of_job(state: AgentState, job: str, value: str, event: Event) -> None:
    key = f"job.{job}"
    state.beliefs[key] = Belief(key, value, event=event.ref, tick=event.tick)


@folds(ev.JobEnded)
def _job_ended(state: AgentState, payload: ev.JobEnded, event: Event) -> None:
    job = state.jobs.pop(payload.job, None)
    if job is None:
        return
    state.jobs[payload.job] = replace(
        job, ended=payload.ended, code=payload.code, message=payload.message, event=event.ref
    )
    _believe_of_job(state, payload.job, str(payload.message or payload.ended), event)
    over = [old.id for old in state.jobs.values() if not old.running]
    for old in over[:-JOBS_KEPT]:
        del state.jobs[old]
        state.beliefs.pop(f"job.{old}", None)


@folds(ev.ChangesOffered)
def _offered(state: AgentState, payload: ev.ChangesOffered, event: Event) -> None:
    state.returned = None
    state.handover = Handover(payload.action, payload.offers, payload.session, event.ref)


@folds(ev.ChangesSettled)
def _settled(state: AgentState, payload: ev.ChangesSettled, event: Event) -> None:
    state.handover = None
    meta_fold.turned_to(state)
    state.perceived = False
    if payload.session is not None:
        state.sandbox = payload.session


# ------------------------------------------------------------------ failures, recovery, the operator's turn


@folds(ev.FailureRecorded)
def _failure_recorded(state: AgentState, payload: ev.FailureRecorded, event: Event) -> None:
    about = fields_of(payload, "message", "goal", "step", "action", "subject")
    state.failures.append(Failure(payload.failure, **about, event=event.ref))
    del state.failures[:-FAILURES_KEPT]
    state.consecutive_errors += not payload.escalated_from
    if not payload.escalated_from:
        meta_fold.failed(state)
    state.needs_replan = True
    state.successes_since_reflection = 0.0


@folds(ev.ModelCalled)
def _model_called(state: AgentState, payload: ev.ModelCalled, event: Event) -> None:
    state.model_calls += 1
    state.unpriced_calls += payload.cost_usd is None
    state.tokens += payload.tokens
    state.output_tokens += ((payload.answer or {}).get("usage") or {}).get("output_tokens") or 0
    state.cost_usd += payload.cost_usd or 0.0
    took = Spent(1, payload.tokens, payload.cost_usd or 0.0, unpriced=int(payload.cost_usd is None))
    agent_fold.charge(state, payload.goal, took)
    if not payload.purpose.startswith(BACKGROUND):
        state.model = payload.model
        state.context, state.context_window = payload.shares, payload.window


@folds(ev.RecoveryChosen)
def _recovery_chosen(state: AgentState, payload: ev.RecoveryChosen, event: Event) -> None:
    if state.failures:
        chosen = fields_of(payload, "strategy", "attempt", "of", "delay_s")
        state.failures[-1] = replace(state.failures[-1], **chosen)
    tried_on = payload.goal if payload.strategy in OF_GOALS or not payload.step else payload.step
    state.tried.setdefault(tried_on, []).append(payload.strategy)
    match payload.strategy:
        case Strategy.RETRY_WITH_DELAY:
            about = fields_of(payload, "step", "attempt", "of", "delay_s", "goal")
            state.retry = Retry(**about, event=event.ref, at=event.at)
            state.needs_replan = False
        case Strategy.ALTERNATIVE_TOOL:
            state.needs_replan = False
        case Strategy.DECIDE_ANEW:
            _give_up_step(state, payload.goal, payload.step, event)
        case Strategy.SIMPLIFIED_APPROACH:
            state.replans[payload.goal] = event.ref
            state.needs_replan = False
        case _:
            state.replans.pop(payload.goal, None)


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
            why = Reason("step.needs", step=step_id)
            change_step(state, step.id, event, status=StepStatus.ABANDONED, summary=why)
    change_step(state, step_id, event, status=StepStatus.ABANDONED)


@folds(ev.RecoveryEnded)
def _recovery_ended(state: AgentState, payload: ev.RecoveryEnded, event: Event) -> None:
    key = rate_key(payload.failure, payload.strategy)
    rate = state.recovery_rates.get(key, UNTRIED_RATE)
    state.recovery_rates[key] = (1 - LEARNING_RATE) * rate + LEARNING_RATE * (1.0 if payload.success else 0.0)
    if payload.rests_until:
        state.resting[key] = payload.rests_until
    elif payload.success:
        state.resting.pop(key, None)
    for at in range(len(state.failures) - 1, -1, -1):
        failure = state.failures[at]
        if failure.open_under(payload.strategy, goal=payload.goal, step=payload.step):
            state.failures[at] = replace(failure, succeeded=payload.success)
            break


@folds(ev.RecoveryHastened)
def _hastened(state: AgentState, payload: ev.RecoveryHastened, event: Event) -> None:
    if state.retry is not None and (state.retry.step, state.retry.goal) == ("", payload.goal):
        state.retry = None


@folds(ev.InterventionOpened)
def _intervention_opened(state: AgentState, payload: ev.InterventionOpened, event: Event) -> None:
    state.grants = 0
    about, kind = fields_of(payload, "goal", "step", "reason", "tried"), payload.failure
    state.intervention = Intervention(**about, kind=kind.value if kind else "", event=event.ref)


@folds(ev.InterventionClosed)
def _intervention_closed(state: AgentState, payload: ev.InterventionClosed, event: Event) -> None:
    state.intervention = None
    meta_fold.turned_to(state)
    state.consecutive_errors = 0
    state.needs_replan = False
    state.perceived = False


@folds(ev.ThoughtRecorded)
def _thought_recorded(state: AgentState, payload: ev.ThoughtRecorded, event: Event) -> None:
    state.successes_since_reflection += 0.5
    state.successes_since_consolidation += 0.5
    state.consecutive_errors = 0
    state.musings += 1
    meta_fold.turned(state)


@folds(ev.DecisionAsked)
def _decision_asked(state: AgentState, payload: ev.DecisionAsked, event: Event) -> None:
    if state.retry is not None and state.retry.step == payload.step:
        state.retry = None
    plan = state.plans.get(payload.goal)
    begins = plan is None or not any(step.status.terminal for step in plan.steps)
    meta_fold.asked(state, event, plans=begins)


@folds(ev.DecisionMade)
def _decision_made(state: AgentState, payload: ev.DecisionMade, event: Event) -> None:
    meta_fold.answered(state, event)
    if payload.decision.kind is DecisionKind.OUTLINE:
        return  # what it is about to do is still to be decided
    if payload.decision.kind is not DecisionKind.CALL:
        state.loops += 1  # a call counts when it starts
    if payload.decision.kind in (DecisionKind.CALL, DecisionKind.SUBGOAL):
        approval_fold.decided(state, payload.goal, event)
    if payload.decision.kind is DecisionKind.PLAN:
        meta_fold.turned(state)
    if payload.decision.kind is not DecisionKind.THINK:
        state.musings = 0
    state.deferred = payload.decision.deferred
    # Deciding is what a single step is for, as it costs: what was decided is looked at before it runs.
    if state.run is RunState.PAUSED and state.grants and not agent_fold.stride_lasts(state.stride):
        end_stride(state)
