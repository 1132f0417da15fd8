"""What actions, background jobs and the operator at the shell do to a state; see `engine.journal.fold`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.domain.action import ResultStatus
from engine.domain.belief import Belief
from engine.domain.budgets import Spent
from engine.domain.parameters import Settled
from engine.domain.plan import StepStatus
from engine.domain.session import WRITE_COMMAND, WRITE_TOOL, Handover, Job, ReturnedShell, place_of
from engine.domain.state import ActiveAction, AgentState, OperatorRequest, RunState
from engine.domain.thinking import RecentAction
from engine.journal import approval_fold, budget_fold, meta_fold
from engine.journal import events as ev
from engine.journal.event import Event, canonical
from engine.journal.goal_fold import SUMMARY_LIMIT, change_step, number
from engine.journal.payload import Payload
from engine.journal.reasoner_fold import answered, end_stride, roused

JOBS_KEPT = 20
"""Background jobs that a state remembers after their end."""
RECENT_KEPT = 10
"""Actions that a thinker is told of with what came of them (spec master-loop §3.4, fetch)."""
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


def _queued(state: AgentState, said: ev.OperatorActionQueued, event: Event) -> None:
    asked = OperatorRequest(
        said.tool, said.command, said.args, event.actor, event.ref, said.client, said.wait_s
    )
    state.requests.append(asked)


def _dropped(state: AgentState, said: ev.CallDropped, event: Event) -> None:
    state.requests = [one for one in state.requests if one.event != said.queued]
    action = state.action
    if action is not None and action.queued == said.queued:
        state.action = replace(action, dropped=True)


def _requested(state: AgentState, said: ev.ActionRequested, event: Event) -> None:
    number(state, said.action)
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
        asked = state.requests.pop(0)
        state.action = replace(
            state.action, client=asked.client, attended=asked.wait_s > 0, queued=asked.event
        )


def _processed(state: AgentState, said: ev.ParametersProcessed, event: Event) -> None:
    action = state.action
    if action is None:
        return
    state.action = replace(action, args=said.args)
    if action.step:
        before = state.settled[action.step].corrections if action.step in state.settled else ()
        state.settled[action.step] = Settled(said.args, (*before, *said.corrections))


def _needs(state: AgentState, said: ev.OperatorNeeded, event: Event) -> None:
    if state.action is not None and state.action.id == said.action:
        state.action = replace(state.action, needs=said.why, request=said.request)


def _withdrawn(state: AgentState, said: ev.ActionWithdrawn, event: Event) -> None:
    if state.action is not None and state.reasons:
        state.settled.pop(state.action.step, None)
    approval_fold.withdrawn(state, said.action, event)
    if state.action is not None and state.action.client:
        approval_fold.client_over(state)
    state.action = None


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
        change_step(state, found[1].id, event, status=StepStatus.RUNNING, attempts=attempts)


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


def _cancelled(state: AgentState, said: ev.ActionCancelled, event: Event) -> None:
    _end_action(state, event, {})


def _unknown(state: AgentState, said: ev.ActionOutcomeUnknown, event: Event) -> None:
    if state.action is not None and state.action.step:
        state.failed_actions += 1
        answered(state, state.action.step)
    _end_action(state, event, {})


def _saved(state: AgentState, said: ev.SnapshotTaken, event: Event) -> None:
    if state.action is not None:
        state.action = replace(state.action, snapshot=said.snapshot)


def _waived(state: AgentState, said: ev.SnapshotWaived, event: Event) -> None:
    state.unsaved_step = said.step


def _job_started(state: AgentState, said: ev.JobStarted, event: Event) -> None:
    state.jobs[said.job] = Job(said.job, said.command, at=event.at, event=event.ref)
    _believe_of_job(state, said.job, f"running: {said.command}", event)


def _believe_of_job(state: AgentState, job: str, value: str, event: Event) -> None:
    key = f"job.{job}"
    state.beliefs[key] = Belief(key, value, event=event.ref, tick=event.tick)


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


def _offered(state: AgentState, said: ev.ChangesOffered, event: Event) -> None:
    state.returned = None
    state.handover = Handover(said.action, said.offers, said.session, event.ref)


def _settled(state: AgentState, said: ev.ChangesSettled, event: Event) -> None:
    state.handover = None
    meta_fold.turned_to(state)
    state.perceived = False
    if said.session is not None:
        state.sandbox = said.session


HANDLERS: dict[type[Payload], Callable[[AgentState, Any, Event], None]] = {
    ev.OperatorActionQueued: _queued,
    ev.CallDropped: _dropped,
    ev.ActionRequested: _requested,
    ev.ParametersProcessed: _processed,
    ev.OperatorNeeded: _needs,
    ev.ActionWithdrawn: _withdrawn,
    ev.ActionStarted: _started,
    ev.ActionFinished: _finished,
    ev.ActionCancelled: _cancelled,
    ev.ActionOutcomeUnknown: _unknown,
    ev.SnapshotTaken: _saved,
    ev.SnapshotWaived: _waived,
    ev.JobStarted: _job_started,
    ev.JobEnded: _job_ended,
    ev.ChangesOffered: _offered,
    ev.ChangesSettled: _settled,
}
