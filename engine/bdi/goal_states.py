"""Meta-events: a plan for `^!g[state(finished)]` is told what happens to goals.

Each is an external event, so its plan runs as an intention of its own. They are raised only for goals that
some plan asks about.

How far plans get, for the trace: which steps are through or failed, which bodies came to their end.

What happens when a step, goal or event fails.
"""

from __future__ import annotations

from enum import StrEnum

from engine.bdi import trace as record
from engine.bdi.errors import ErrorId, EvaluationError
from engine.bdi.intentions import Event, Failure, Frame, Intention, RunningAgent
from engine.bdi.plans import Instruction
from engine.bdi.printer import headline, shown_text
from engine.bdi.rewriting import canonical, instantiated, rewrite
from engine.bdi.syntax import Step
from engine.bdi.term_compiler import UNWRITTEN
from engine.bdi.terms import Cell, Struct, Term, Var, atom
from engine.bdi.trace import Change
from engine.bdi.unification import Trail, undo


class GoalState(StrEnum):
    """What has happened to a goal."""

    STARTED = "started"
    """It was adopted; its event waits for a plan."""
    EXECUTING = "executing"
    """A plan for it was put on an intention."""
    SUSPENDED = "suspended"
    """Its intention is held back, or waits for a plan that is being generated; with the reason."""
    RESUMED = "resumed"
    FINISHED = "finished"
    """Its plan came to its end."""
    FAILED = "failed"
    """With the error's id as reason, whether or not a plan handles it."""


def announce_state(agent: RunningAgent, sign: str, goal: Struct, state: GoalState, reason: str = "") -> None:
    """Raise the event of a goal's new state, if a plan asks for such.

    Args:
        agent: whose goal it is.
        sign: `+!` or `+?`.
        goal: as it stands now.
        state: the new one.
        reason: why; empty where there is none to give.
    """
    meta = f"^{sign[1:]}"
    if sign[0] != "+" or not agent.plans.knows(meta, goal.indicator):
        return
    notes = (Struct("reason", (reason,)),) if reason else ()
    term = goal.with_annotations((*goal.annotations, Struct("state", (atom(state),), notes)))
    copy = instantiated(canonical(term))
    assert isinstance(copy, Struct)
    event = Event(meta, copy)
    try:
        agent.post(event)
    except EvaluationError as error:
        agent.trace(record.EventDropped, event.text, str(error))


def announce_state_of_all(
    agent: RunningAgent, intention: Intention, state: GoalState, reason: str = ""
) -> None:
    """Raise such events for every goal of an intention, the outermost first."""
    for frame in intention.frames:
        if frame.is_goal:
            announce_state(agent, frame.sign, frame.literal, state, reason)
    pending = intention.pending
    if pending is not None and pending.event is not None:
        announce_state(agent, pending.event.sign, pending.event.literal, state, reason)


def step_succeeded(agent: RunningAgent, intention: Intention, frame: Frame, step: Instruction) -> None:
    """A step is through, where there is a tracer."""
    plan = frame.plan.name
    agent.trace(record.StepSucceeded, intention.id, plan, step.at, step.text)


def step_failed(agent: RunningAgent, intention: Intention, failure: Failure) -> None:
    """The step at which an intention stands failed of itself."""
    if agent.tracer is not None and intention.frames and intention.frames[-1].code:
        frame = intention.frames[-1]
        at = min(frame.pc, len(frame.code) - 1)
        agent.trace(
            record.StepFailed, intention.id, frame.plan.name, at, failure.code, failure.id, failure.message
        )


def frame_done(agent: RunningAgent, intention: Intention, frame: Frame, *, cut_short: bool) -> None:
    """A frame that came to its end, or was cut short, was taken off the stack, where there is a tracer."""
    goal = shown_text(frame.literal)
    if not cut_short:
        event, depth = f"{frame.sign}{goal}", len(intention.frames)
        agent.trace(record.PlanFinished, intention.id, frame.plan.name, event, depth)
    if frame.is_goal:
        agent.trace(record.GoalAchieved, goal, intention.id)


def fail_step(agent: RunningAgent, intention: Intention, error: EvaluationError) -> None:
    """The step at which an intention stands fails."""
    failure = _failure(intention, str(error.error_id), str(error), error.details)
    step_failed(agent, intention, failure)
    unwind(agent, intention, failure)


def _failure(
    intention: Intention | None, error_id: str, message: str, details: tuple[Term, ...] = ()
) -> Failure:
    if intention is None or not intention.frames:
        return Failure(error_id, message, details=details)
    frame = intention.frames[-1]
    item = frame.code[min(frame.pc, len(frame.code) - 1)].item
    term = _step_term(frame, item.term) if isinstance(item, Step) else None
    source = frame.plan.plan.source
    return Failure(error_id, message, headline(item), source, item.position.line, details, term)


def _step_term(frame: Frame, term: Term) -> Term:
    """A step with the values that its variables have."""
    slots, env = frame.plan.slots, frame.env

    def value(variable: Term) -> Term:
        slot = slots.get(variable.name) if isinstance(variable, Var) else None
        return Cell() if slot is None or env[slot] is UNWRITTEN else env[slot]

    return rewrite(term, value)


def fail_event(agent: RunningAgent, event: Event, error_id: str, message: str) -> None:
    """No plan handles an event: its goal fails, and what waits for it."""
    failure = event.failure or _failure(event.intention, str(error_id), message)
    if event.deadline is not None:
        event.deadline.over = True
    if event.sign in ("+!", "+?"):
        handled = catch(agent, event.sign, event.literal, event.cells, failure, event.intention, event.tag)
        _tell(agent, event.sign, event.literal, event.intention, failure, handled)
        if handled:
            return
    if event.intention is not None:
        if event.failure is None:
            step_failed(agent, event.intention, failure)
        unwind(agent, event.intention, failure)
        return
    agent.warn(_complaint(shown_text(event.literal), failure))
    agent.trace(record.EventDropped, event.text, failure.message)


def unwind(agent: RunningAgent, intention: Intention, failure: Failure) -> None:
    """Look down the stack for a goal whose failure a plan handles; without one the intention goes."""
    outermost = intention.frames[0] if intention.frames else None
    while intention.frames:
        frame = intention.pop()
        if frame.is_goal:
            handled = catch(agent, frame.sign, frame.literal, frame.cells, failure, intention)
            _tell(agent, frame.sign, frame.literal, intention, failure, handled)
            if handled:
                agent.interleave(intention)
                return
    if outermost is not None:
        agent.warn(_complaint(shown_text(outermost.literal), failure))
    agent.end(intention, Change.DROPPED, f"{failure.id}: {failure.message}")


def _complaint(goal: str, failure: Failure) -> str:
    place = f" at {failure.source}:{failure.line}, {failure.code}" if failure.code else ""
    return f"{goal} failed{place}: {failure.message}"


def catch(
    agent: RunningAgent,
    sign: str,
    literal: Struct,
    cells: tuple[Cell, ...],
    failure: Failure,
    intention: Intention | None,
    tag: str = "",
) -> bool:
    """Post the event of a goal's failure where a plan is relevant for it; False where none is."""
    for cell in cells:
        cell.ref = None
    failed = literal.with_annotations((*literal.annotations, *failure.annotations))
    trail: Trail = []
    for plan in agent.plans.candidates(f"-{sign[1:]}", failed):
        try:
            relevant = plan.enter(failed, trail) is not None
        except EvaluationError:  # arithmetic in its trigger
            relevant = False
        undo(trail, 0)
        if relevant and (intention is not None or len(agent.events) < agent.limits.events):
            agent.post(Event(f"-{sign[1:]}", failed, intention, cells, failure, tag))
            return True
    return False


def _tell(
    agent: RunningAgent, sign: str, goal: Struct, intention: Intention | None, failure: Failure, handled: bool
) -> None:
    if agent.plans.meta:
        announce_state(agent, sign, goal, GoalState.FAILED, failure.id)
    if agent.tracer is not None:
        number = intention.id if intention is not None else 0
        what = (agent.name, agent.cycles, shown_text(goal), number)
        agent.tracer(record.GoalFailed(*what, failure.id, failure.message, handled, sign[1:]))


def fail_goal(agent: RunningAgent, intention: Intention, place: int, error_id: ErrorId, message: str) -> None:
    """Let the goal of one frame of an intention fail, with everything above it."""
    failure = _failure(intention, str(error_id), message)
    while len(intention.frames) > place + 1:
        intention.pop()
    unwind(agent, intention, failure)
