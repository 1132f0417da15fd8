"""Intentions that wait: for feedback, time, a condition, an event, an answer or a plan.

What happens at a time: a goal fails (`hard_deadline`), an event is raised (`.at`).

A goal's deadline runs from the moment the goal is posted until it is achieved, fails or is dropped; the plan
that handles its failure is no longer under it.
"""

from __future__ import annotations

import heapq

from engine.bdi import goal_states as failures
from engine.bdi import trace as record
from engine.bdi.arithmetic import normalized, number
from engine.bdi.errors import ErrorId, EvaluationError
from engine.bdi.intentions import (
    ActionRequest,
    Alarm,
    Alarms,
    Appointment,
    Deadline,
    Event,
    Intention,
    Pending,
    RunningAgent,
    Waiting,
)
from engine.bdi.internal_actions import nearest
from engine.bdi.printer import number_text, shown_text
from engine.bdi.rewriting import canonical, instantiated
from engine.bdi.terms import Struct, Term
from engine.bdi.trace import ActionFeedback, ActionRequested, Change
from engine.bdi.unification import Trail, undo, unify

_SPARE_TIMERS = 64


def begin(
    agent: RunningAgent,
    intention: Intention,
    kind: Waiting,
    what: Term,
    *,
    limit: Term | None = None,
    reason: str = "",
    event: Event | None = None,
    elapsed: Term | None = None,
) -> Pending:
    """Let an intention wait, at most `limit` milliseconds where one is given."""
    until = None
    if limit is not None:
        until = agent.now + max(0.0, float(number(limit)))
    pending = Pending(kind, agent.number(), what, reason, until, agent.now, event, elapsed)
    intention.pending = pending
    agent.pending[pending.number] = intention
    if until is not None:
        heapq.heappush(agent.timers, (until, pending.number))
        if len(agent.timers) > 2 * len(agent.pending) + _SPARE_TIMERS:
            # Waits that ended before their time leave their timers behind.
            agent.timers[:] = sorted(timer for timer in agent.timers if timer[1] in agent.pending)
    if kind is Waiting.CONDITION:
        agent.conditions.add(pending.number)
    elif kind is Waiting.EVENT:
        agent.watchers.add(pending.number)
    return pending


def over(agent: RunningAgent, intention: Intention) -> None:
    """The wait has ended, one way or the other."""
    if intention.pending is not None:
        if intention.pending.elapsed is not None:
            unify(intention.pending.elapsed, normalized(agent.now - intention.pending.since), [])
        gone = intention.pending.number
        intention.pending = None
        agent.pending.pop(gone, None)
        agent.conditions.discard(gone)
        agent.watchers.discard(gone)


def call_off(agent: RunningAgent, intention: Intention) -> None:
    """Take an intention out of whatever it waits for: an event, its turn, or something pending."""
    event = intention.event or (intention.pending.event if intention.pending is not None else None)
    if event is not None and event.deadline is not None:
        event.deadline.over = True
    number = intention.pending.number if intention.pending is not None else 0
    forked = intention.pending is not None and intention.pending.kind is Waiting.BRANCHES
    over(agent, intention)
    if forked:
        drop_branches(agent, number)
    if intention.event is not None:
        agent.events.remove(intention.event)
        intention.event = None
    if intention in agent.ready:
        agent.ready.remove(intention)
    intention.parked = False


# ------------------------------------------------------------------ external actions


def for_action(agent: RunningAgent, action: Struct, intention: Intention) -> None:
    """Request an action and wait for its feedback.

    Raises:
        EvaluationError: there is no such action, or it takes another number of arguments.
    """
    declared = agent.actions
    if declared is not None:
        counts = declared.get(action.functor)
        if counts is None:
            raise EvaluationError(
                ErrorId.ACTION_FAILED,
                f"there is no action {action.functor}{nearest(action.functor, declared)}",
            )
        if len(action.args) not in counts:
            many = " or ".join(map(str, sorted(counts)))
            raise EvaluationError(
                ErrorId.ACTION_FAILED, f"{action.functor} takes {many} arguments, not {len(action.args)}"
            )
    pending = begin(agent, intention, Waiting.ACTION, action)
    asked = canonical(action)
    assert isinstance(asked, Struct)
    if agent.tracer is not None:
        agent.trace(ActionRequested, pending.number, shown_text(asked), intention.id)
    frame = intention.frames[-1]
    position = frame.code[frame.pc].item.position
    agent.requests.append(ActionRequest(pending.number, asked, intention.id, position))


def action_done(agent: RunningAgent, request: int, success: bool, reason: str, answer: Struct | None) -> None:
    """Take an action's feedback."""
    intention = agent.pending.get(request)
    if intention is None or intention.pending is None or intention.pending.kind is not Waiting.ACTION:
        return
    agent.trace(ActionFeedback, request, success, reason)
    if success and answer is not None and not unify(intention.pending.what, instantiated(answer), []):
        success, reason = False, "the answer does not fit the action"
    over(agent, intention)
    if success:
        agent.step_done(intention)
    else:
        failures.fail_step(
            agent, intention, EvaluationError(ErrorId.ACTION_FAILED, reason or "the action failed")
        )


# ------------------------------------------------------------------ time, conditions, events


def fire_timers(agent: RunningAgent) -> bool:
    """End the waits whose time has come; True when there was one."""
    fired = False
    while agent.timers and agent.timers[0][0] <= agent.now:
        _, due = heapq.heappop(agent.timers)
        intention = agent.pending.get(due)
        if intention is not None and intention.pending is not None:
            fired = True
            _time_is_up(agent, intention, intention.pending)
    return fired


def _time_is_up(agent: RunningAgent, intention: Intention, pending: Pending) -> None:
    over(agent, intention)
    if (
        pending.kind is Waiting.TIME
        or pending.elapsed is not None
        or (pending.kind is Waiting.ANSWER and unify(pending.what, Struct("timeout"), []))
    ):
        agent.step_done(intention)
    else:
        failures.fail_step(
            agent,
            intention,
            EvaluationError(ErrorId.WAIT_TIMEOUT, "what it waited for did not happen in time"),
        )


def check_conditions(agent: RunningAgent) -> bool:
    """Look at the formulas that intentions wait for; True when one held."""
    held = False
    for waiting in sorted(agent.conditions):
        intention = agent.pending.get(waiting)
        if intention is None:
            continue
        frame = intention.frames[-1]
        step = frame.code[frame.pc]
        assert step.formula is not None
        try:
            if not step.formula.holds(frame.env, agent):
                continue
        except EvaluationError as error:
            over(agent, intention)
            failures.fail_step(agent, intention, error)
        else:
            over(agent, intention)
            agent.step_done(intention)
        held = True
    return held


def happened(agent: RunningAgent, sign: str, literal: Struct) -> None:
    """Wake the intentions that wait for such an event."""
    for waiting in sorted(agent.watchers):
        intention = agent.pending[waiting]
        pending = intention.pending
        trail: Trail = []
        if pending is not None and pending.reason == sign and unify(pending.what, literal, trail):
            over(agent, intention)
            agent.step_done(intention)
        else:
            undo(trail, 0)


# ------------------------------------------------------------------ branches


def branch_done(agent: RunningAgent, branch: Intention, change: Change, reason: str) -> None:
    """A branch of a fork has ended: its intention continues where that was awaited, or fails with it."""
    number, branch.joins = branch.joins, None
    parent = agent.pending.get(number or 0)
    if parent is None or parent.pending is None:
        return
    agent.intentions.pop(branch.id, None)
    others = [item for item in agent.intentions.values() if item.joins == number]
    if change is Change.FINISHED and others and parent.pending.reason == "all":
        return
    over(agent, parent)
    if change is Change.FINISHED:
        agent.step_done(parent)
    else:
        error_id, _, message = reason.partition(": ")
        known = error_id if error_id in set(ErrorId) else ErrorId.INTERNAL_ACTION_FAILED
        failures.fail_step(agent, parent, EvaluationError(ErrorId(known), message or reason))
    for other in others:
        other.joins = None
        agent.end(other, Change.DROPPED, "another branch has ended")


def drop_branches(agent: RunningAgent, number: int) -> None:
    """End the branches of an intention that does not wait for them any more."""
    for branch in [item for item in agent.intentions.values() if item.joins == number]:
        branch.joins = None
        agent.end(branch, Change.DROPPED, "its intention has ended")


# ------------------------------------------------------------------ plans being made


def for_generation(agent: RunningAgent, event: Event) -> None:
    """Let the intention of a goal without a plan wait until one was made."""
    intention = event.intention or new_intention(agent, event.tag)
    event.intention = intention
    begin(agent, intention, Waiting.GENERATION, event.literal, event=event)
    agent.changed_intention(intention, Change.SUSPENDED, "a plan is being generated")


def generation_done(agent: RunningAgent, intention: Intention) -> None:
    """A plan was made: try the goal again, or continue behind `generate_plan`."""
    pending = intention.pending
    agent.changed_intention(intention, Change.RESUMED)
    over(agent, intention)
    if pending is not None and pending.event is not None:
        agent.post(pending.event, again=True)
    else:
        agent.step_done(intention)


def fail(agent: RunningAgent, intention: Intention, error_id: str, message: str) -> None:
    """What an intention waits for has failed, or else the step at which it stands."""
    pending = intention.pending
    call_off(agent, intention)
    if pending is not None and pending.event is not None:
        failures.fail_event(agent, pending.event, error_id, message)
    else:
        failures.fail_step(agent, intention, EvaluationError(ErrorId(error_id), message))


def ring_alarm(agent: RunningAgent, alarm: Alarm) -> None:
    """Do what was to happen at this time."""
    if isinstance(alarm, Deadline):
        _goal_overdue(agent, alarm)
    elif isinstance(alarm, Appointment):
        try:
            agent.post(alarm.event)
        except EvaluationError as error:
            agent.trace(record.EventDropped, alarm.event.text, str(error))


def _goal_overdue(agent: RunningAgent, deadline: Deadline) -> None:
    """Let the goal fail, with everything that was begun for it."""
    intention, event = deadline.intention, deadline.event
    if intention is not None:
        frames = intention.frames
        place = next(at for at, frame in enumerate(frames) if frame.deadline is deadline)
        call_off(agent, intention)
        message = _overdue(frames[place].literal, deadline)
        failures.fail_goal(agent, intention, place, ErrorId.DEADLINE_REACHED, message)
    elif event is not None:
        if event.intention is not None:
            call_off(agent, event.intention)
        elif event in agent.events:
            agent.events.remove(event)
        else:
            return  # the host took the event away
        failures.fail_event(agent, event, ErrorId.DEADLINE_REACHED, _overdue(event.literal, deadline))


def _overdue(goal: Struct, deadline: Deadline) -> str:
    return f"{shown_text(goal.with_annotations(()))} was not achieved within {number_text(deadline.limit)} ms"


def deadline(agent: RunningAgent, event: Event) -> None:
    """Set the alarm that a goal's `hard_deadline(milliseconds)` asks for.

    Raises:
        EvaluationError: the annotation holds no number, or too many alarms are set.
    """
    for note in event.literal.annotations:
        if isinstance(note, Struct) and note.indicator == "hard_deadline/1":
            limit = float(number(note.args[0]))
            event.deadline = Deadline(limit, event, number=agent.number())
            set_alarm(agent, agent.now + limit, event.deadline)
            return


def set_alarm(agent: RunningAgent, due: float, alarm: Alarm) -> None:
    """Let something happen at a time.

    Raises:
        EvaluationError: too many alarms are set.
    """
    size = len(agent.alarms)
    if size >= _SPARE and not size & (size - 1):
        # Those that are over leave their places behind; at each power of two they are cleared away.
        agent.alarms[:] = sorted(row for row in agent.alarms if not row[2].over)
    if size >= agent.limits.events:
        raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"{size} deadlines and appointments are waiting")
    heapq.heappush(agent.alarms, (due, alarm.number, alarm))


_SPARE = 64


def soonest(alarms: Alarms) -> float | None:
    """The time of the next alarm that is not over, None when there is none."""
    while alarms and alarms[0][2].over:
        heapq.heappop(alarms)
    return alarms[0][0] if alarms else None


def fire(agent: RunningAgent) -> bool:
    """Let happen what is due; True when something was."""
    fired = False
    while (due := soonest(agent.alarms)) is not None and due <= agent.now:
        alarm = heapq.heappop(agent.alarms)[2]
        alarm.over = fired = True
        ring_alarm(agent, alarm)
    return fired


def appointments(agent: RunningAgent) -> list[Appointment]:
    """Events that are to be raised, soonest first."""
    return [
        appointment
        for _, _, appointment in sorted(agent.alarms)
        if isinstance(appointment, Appointment) and not appointment.over
    ]


def new_intention(agent: RunningAgent, tag: str = "") -> Intention:
    """An intention without a plan yet.

    Raises:
        EvaluationError: the agent has as many as it may have.
    """
    if len(agent.intentions) >= agent.limits.intentions:
        raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"the agent has {len(agent.intentions)} intentions")
    intention = Intention(agent.number(), tag)
    agent.intentions[intention.id] = intention
    agent.changed_intention(intention, Change.CREATED)
    return intention
