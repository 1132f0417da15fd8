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
def _queued(state: AgentState, said: ev.OperatorActionQueued, event: Event) -> None:
    asked = OperatorRequest(
        said.tool, said.command, said.args, event.actor, event.ref, said.client, said.wait_s
    )
    state.requests.append(asked)


@folds(ev.CallDropped)
def _dropped(state: AgentState, said: ev.CallDropped, event: Event) -> None:
    state.requests = [request for request in state.requests if request.event != said.queued]
    action = state.action
    if action is not None and action.queued == said.queued:
        state.action = replace(action, dropped=True)


@folds(ev.ActionRequested)
def _requested(state: AgentState, said: ev.ActionRequested, event: Event) -> None:
    count_id(state, said.action)
    call = (said.action, said.tool, said.command, said.args)
    state.action = ActiveAction(*call, event.actor, said.step, said.goal, at=event.at, event=event.ref)
    approval_fold.requested(state, said.step)
    if state.requests and not said.step:
        asked = state.requests.pop(0)
        state.action = replace(
            state.action, client=asked.client, attended=asked.wait_s > 0, queued=asked.event
        )


@folds(ev.ParametersProcessed)
def _processed(state: AgentState, said: ev.ParametersProcessed, event: Event) -> None:
    action = state.action
    if action is None:
        return
    state.action = replace(action, args=said.args)
    if action.step:
        before = state.settled[action.step].corrections if action.step in state.settled else ()
        state.settled[action.step] = Settled(said.args, (*before, *said.corrections))


@folds(ev.OperatorNeeded)
def _needs(state: AgentState, said: ev.OperatorNeeded, event: Event) -> None:
    if state.action is not None and state.action.id == said.action:
        state.action = replace(state.action, needs=said.why, request=said.request)


@folds(ev.ActionWithdrawn)
def _withdrawn(state: AgentState, said: ev.ActionWithdrawn, event: Event) -> None:
    if state.action is not None and state.reasons:
        state.settled.pop(state.action.step, None)
    approval_fold.withdrawn(state, said.action, event)
    if state.action is not None and state.action.client:
        approval_fold.client_over(state)
    state.action = None


@folds(ev.ActionStarted)
def _started(state: AgentState, said: ev.ActionStarted, event: Event) -> None:
    if state.action is None:
        return
    state.action = replace(state.action, started=True, mutates=said.mutates, at=event.at, event=event.ref)
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
def _finished(state: AgentState, said: ev.ActionFinished, event: Event) -> None:
    action = state.action
    if said.session is not None:
        state.sandbox = said.session
    state.last_summary = said.summary[:SUMMARY_LIMIT]
    if action is not None and action.step:
        approval_fold.began(state, action.step)
        if said.code is None:
            _remember_written(state, action)
            state.consecutive_errors = 0
            state.successes_since_reflection += 1.0
            state.successes_since_consolidation += 1.0
        else:
            state.failed_actions += 1
        meta_fold.acted(state, action, said, event)
        answered(state, action.step)
        if state.config.replans and not state.reasons:
            _remember_action(state, action, said, event)
    elif action is not None and action.client:
        approval_fold.client_over(state)
        if said.code is None:
            _remember_written(state, action)
    if said.world is not None:
        state.world = said.world
        roused(state)
    _end_action(state, event, None if said.status is ResultStatus.ERROR else said.result)


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


def _remember_action(state: AgentState, action: ActiveAction, said: ev.ActionFinished, event: Event) -> None:
    """Keep what a thinker is told of an action that has ended."""
    answer = canonical(said.result)
    if len(answer) > ANSWER_HEAD:
        answer = f"{answer[:ANSWER_HEAD]}… ({len(answer) - ANSWER_HEAD:,} characters more)"
    args = {
        name: f"{value[:ARGUMENT_HEAD]}…" if isinstance(value, str) and len(value) > ARGUMENT_HEAD else value
        for name, value in action.args.items()
    }
    ok, tool, command = said.code is None, action.tool, action.command
    done = RecentAction(action.step, tool, command, args, ok, answer, event.ref, action.id)
    state.recent = (*state.recent, done)[-RECENT_KEPT:]


@folds(ev.ActionCancelled)
def _cancelled(state: AgentState, said: ev.ActionCancelled, event: Event) -> None:
    _end_action(state, event, {})


@folds(ev.ActionOutcomeUnknown)
def _unknown(state: AgentState, said: ev.ActionOutcomeUnknown, event: Event) -> None:
    if state.action is not None and state.action.step:
        state.failed_actions += 1
        answered(state, state.action.step)
    _end_action(state, event, {})


@folds(ev.SnapshotTaken)
def _saved(state: AgentState, said: ev.SnapshotTaken, event: Event) -> None:
    if state.action is not None:
        state.action = replace(state.action, snapshot=said.snapshot)


@folds(ev.SnapshotWaived)
def _waived(state: AgentState, said: ev.SnapshotWaived, event: Event) -> None:
    state.unsaved_step = said.step


@folds(ev.JobStarted)
def _job_started(state: AgentState, said: ev.JobStarted, event: Event) -> None:
    state.jobs[said.job] = Job(said.job, said.command, at=event.at, event=event.ref)
    _believe_of_job(state, said.job, f"running: {said.command}", event)


def _believe_of_job(state: AgentState, job: str, value: str, event: Event) -> None:
    key = f"job.{job}"
    state.beliefs[key] = Belief(key, value, event=event.ref, tick=event.tick)


@folds(ev.JobEnded)
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


@folds(ev.ChangesOffered)
def _offered(state: AgentState, said: ev.ChangesOffered, event: Event) -> None:
    state.returned = None
    state.handover = Handover(said.action, said.offers, said.session, event.ref)


@folds(ev.ChangesSettled)
def _settled(state: AgentState, said: ev.ChangesSettled, event: Event) -> None:
    state.handover = None
    meta_fold.turned_to(state)
    state.perceived = False
    if said.session is not None:
        state.sandbox = said.session


# ------------------------------------------------------------------ failures, recovery, the operator's turn


@folds(ev.FailureRecorded)
def _failure_recorded(state: AgentState, said: ev.FailureRecorded, event: Event) -> None:
    state.failures.append(
        Failure(said.failure, said.message, said.goal, said.step, said.action, said.subject, event=event.ref)
    )
    del state.failures[:-FAILURES_KEPT]
    state.consecutive_errors += not said.escalated_from
    if not said.escalated_from:
        meta_fold.failed(state)
    state.needs_replan = True
    state.successes_since_reflection = 0.0


@folds(ev.ModelCalled)
def _model_called(state: AgentState, said: ev.ModelCalled, event: Event) -> None:
    state.model_calls += 1
    state.unpriced_calls += said.cost_usd is None
    state.tokens += said.tokens
    state.output_tokens += ((said.answer or {}).get("usage") or {}).get("output_tokens") or 0
    state.cost_usd += said.cost_usd or 0.0
    took = Spent(1, said.tokens, said.cost_usd or 0.0, unpriced=int(said.cost_usd is None))
    agent_fold.charge(state, said.goal, took)
    if not said.purpose.startswith(BACKGROUND):
        state.model = said.model
        state.context, state.context_window = said.shares, said.window


@folds(ev.RecoveryChosen)
def _recovery_chosen(state: AgentState, said: ev.RecoveryChosen, event: Event) -> None:
    if state.failures:
        chosen = fields_of(said, "strategy", "attempt", "of", "delay_s")
        state.failures[-1] = replace(state.failures[-1], **chosen)
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
            change_step(state, step.id, event, status=StepStatus.ABANDONED, summary=f"needs {step_id}")
    change_step(state, step_id, event, status=StepStatus.ABANDONED)


@folds(ev.RecoveryEnded)
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


@folds(ev.RecoveryHastened)
def _hastened(state: AgentState, said: ev.RecoveryHastened, event: Event) -> None:
    if state.retry is not None and (state.retry.step, state.retry.goal) == ("", said.goal):
        state.retry = None


@folds(ev.InterventionOpened)
def _intervention_opened(state: AgentState, said: ev.InterventionOpened, event: Event) -> None:
    state.grants = 0
    state.intervention = Intervention(
        said.goal, said.step, said.reason, said.failure.value if said.failure else "", said.tried, event.ref
    )


@folds(ev.InterventionClosed)
def _intervention_closed(state: AgentState, said: ev.InterventionClosed, event: Event) -> None:
    state.intervention = None
    meta_fold.turned_to(state)
    state.consecutive_errors = 0
    state.needs_replan = False
    state.perceived = False


@folds(ev.ThoughtRecorded)
def _thought_recorded(state: AgentState, said: ev.ThoughtRecorded, event: Event) -> None:
    state.successes_since_reflection += 0.5
    state.successes_since_consolidation += 0.5
    state.consecutive_errors = 0
    state.musings += 1
    meta_fold.turned(state)


@folds(ev.DecisionAsked)
def _decision_asked(state: AgentState, said: ev.DecisionAsked, event: Event) -> None:
    if state.retry is not None and state.retry.step == said.step:
        state.retry = None
    meta_fold.asked(state, event)


@folds(ev.DecisionMade)
def _decision_made(state: AgentState, said: ev.DecisionMade, event: Event) -> None:
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
    if state.run is RunState.PAUSED and state.grants and not agent_fold.stride_lasts(state.stride):
        end_stride(state)
