"""Intentions that wait: for feedback, time, a condition, an event, an answer or a plan (spec §1.6)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.bdi import failures
from engine.bdi.actions import nearest
from engine.bdi.arithmetic import number
from engine.bdi.instructions import WaitFor
from engine.bdi.intentions import Event, Intention, Pending, Waiting
from engine.bdi.printing import text_of
from engine.bdi.problems import ErrorId, EvaluationError
from engine.bdi.syntax import Position
from engine.bdi.terms import Struct, Term, canonical, instantiated
from engine.bdi.trace import ActionFeedback, ActionRequested, Change
from engine.bdi.unification import Trail, undo, unify

if TYPE_CHECKING:
    from engine.bdi.agent import BdiAgent


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """An external action that the agent wants done; `feedback` with its number ends the wait."""

    number: int
    action: Struct
    """Variables without a value are those of `canonical`; an answer may give them one."""
    intention: int
    position: Position


_SPARE_TIMERS = 64


def begin(
    agent: BdiAgent,
    intention: Intention,
    kind: Waiting,
    what: Term,
    *,
    limit: Term | None = None,
    reason: str = "",
    event: Event | None = None,
) -> Pending:
    """Let an intention wait, at most `limit` milliseconds where one is given."""
    until = None
    if limit is not None:
        until = agent.now + max(0.0, float(number(limit)))
    pending = Pending(kind, agent.number(), what, reason, until, agent.now, event)
    intention.pending = pending
    agent.pending[pending.number] = intention
    if until is not None:
        heapq.heappush(agent.timers, (until, pending.number))
        if len(agent.timers) > 2 * len(agent.pending) + _SPARE_TIMERS:
            # Waits that ended before their time leave their timers behind.
            agent.timers[:] = sorted(one for one in agent.timers if one[1] in agent.pending)
    if kind is Waiting.CONDITION:
        agent.conditions.add(pending.number)
    elif kind is Waiting.EVENT:
        agent.watchers.add(pending.number)
    return pending


def over(agent: BdiAgent, intention: Intention) -> None:
    """The wait has ended, one way or the other."""
    if intention.pending is not None:
        gone = intention.pending.number
        intention.pending = None
        agent.pending.pop(gone, None)
        agent.conditions.discard(gone)
        agent.watchers.discard(gone)


def call_off(agent: BdiAgent, intention: Intention) -> None:
    """Take an intention out of whatever it waits for: an event, its turn, or something pending."""
    event = intention.event or (intention.pending.event if intention.pending is not None else None)
    if event is not None and event.deadline is not None:
        event.deadline.over = True
    over(agent, intention)
    if intention.event is not None:
        agent.events.remove(intention.event)
        intention.event = None
    if intention in agent.ready:
        agent.ready.remove(intention)
    intention.parked = False


# ------------------------------------------------------------------ external actions


def for_action(agent: BdiAgent, action: Struct, intention: Intention, position: Position) -> ActionRequest:
    """Wait for an action's feedback.

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
        agent.tracer(ActionRequested(agent.name, agent.cycles, pending.number, text_of(asked), intention.id))
    return ActionRequest(pending.number, asked, intention.id, position)


def action_done(agent: BdiAgent, request: int, success: bool, reason: str, answer: Struct | None) -> None:
    """Take an action's feedback."""
    intention = agent.pending.get(request)
    if intention is None or intention.pending is None or intention.pending.kind is not Waiting.ACTION:
        return
    if agent.tracer is not None:
        agent.tracer(ActionFeedback(agent.name, agent.cycles, request, success, reason))
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


def fire_timers(agent: BdiAgent) -> bool:
    """End the waits whose time has come; True when there was one."""
    fired = False
    while agent.timers and agent.timers[0][0] <= agent.now:
        _, due = heapq.heappop(agent.timers)
        intention = agent.pending.get(due)
        if intention is not None and intention.pending is not None:
            fired = True
            _time_is_up(agent, intention, intention.pending)
    return fired


def _time_is_up(agent: BdiAgent, intention: Intention, pending: Pending) -> None:
    over(agent, intention)
    if pending.kind is Waiting.TIME or (
        pending.kind is Waiting.ANSWER and unify(pending.what, Struct("timeout"), [])
    ):
        agent.step_done(intention)
    else:
        failures.fail_step(
            agent,
            intention,
            EvaluationError(ErrorId.WAIT_TIMEOUT, "what it waited for did not happen in time"),
        )


def check_conditions(agent: BdiAgent) -> bool:
    """Look at the formulas that intentions wait for; True when one held."""
    held = False
    for waiting in sorted(agent.conditions):
        intention = agent.pending.get(waiting)
        if intention is None:
            continue
        frame = intention.frames[-1]
        step = frame.code[frame.pc]
        assert isinstance(step, WaitFor)
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


def happened(agent: BdiAgent, sign: str, literal: Struct) -> None:
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


def ask_failed(agent: BdiAgent, intention: Intention, message: str) -> None:
    """The answer to a question does not fit what was expected."""
    failures.fail_step(agent, intention, EvaluationError(ErrorId.ASK_FAILED, message))


# ------------------------------------------------------------------ plans being made


def for_generation(agent: BdiAgent, event: Event) -> None:
    """Let the intention of a goal without a plan wait until one was made (§2.3)."""
    from engine.bdi.deliberation import new_intention

    intention = event.intention or new_intention(agent, event.tag)
    event.intention = intention
    begin(agent, intention, Waiting.GENERATION, event.literal, event=event)
    agent.changed_intention(intention, Change.SUSPENDED, "a plan is being generated")


def generation_done(agent: BdiAgent, intention: Intention) -> None:
    """A plan was made: try the goal again, or go on behind `generate_plan`."""
    pending = intention.pending
    agent.changed_intention(intention, Change.RESUMED)
    over(agent, intention)
    if pending is not None and pending.event is not None:
        agent.post(pending.event, again=True)
    else:
        agent.step_done(intention)


def fail(agent: BdiAgent, intention: Intention, error_id: str, message: str) -> None:
    """What an intention waits for has failed, or else the step at which it stands."""
    pending = intention.pending
    call_off(agent, intention)
    if pending is not None and pending.event is not None:
        failures.fail_event(agent, pending.event, error_id, message)
    else:
        failures.fail_step(agent, intention, EvaluationError(ErrorId(error_id), message))
