"""What happens when a step, goal or event fails (spec §1.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.bdi import goal_states, progress
from engine.bdi import trace as record
from engine.bdi.goal_states import GoalState
from engine.bdi.intentions import Event, Failure, Intention
from engine.bdi.printing import text_of
from engine.bdi.problems import ErrorId, EvaluationError
from engine.bdi.terms import Cell, Struct, Term
from engine.bdi.trace import Change
from engine.bdi.unification import Trail, undo

if TYPE_CHECKING:
    from engine.bdi.agent import BdiAgent


def fail_step(agent: BdiAgent, intention: Intention, error: EvaluationError) -> None:
    """The step at which an intention stands fails."""
    failure = _failure(intention, str(error.error_id), str(error), error.details)
    progress.step_failed(agent, intention, failure)
    unwind(agent, intention, failure)


def _failure(
    intention: Intention | None, error_id: str, message: str, details: tuple[Term, ...] = ()
) -> Failure:
    if intention is None or not intention.frames:
        return Failure(error_id, message, details=details)
    frame = intention.frames[-1]
    step = frame.code[min(frame.pc, len(frame.code) - 1)]
    line = step.item.position.line
    return Failure(error_id, message, step.text, frame.plan.plan.source, line, details)


def fail_event(agent: BdiAgent, event: Event, error_id: str, message: str) -> None:
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
            progress.step_failed(agent, event.intention, failure)
        unwind(agent, event.intention, failure)
        return
    agent.warn(_complaint(text_of(event.literal), failure))
    if agent.tracer is not None:
        agent.tracer(record.EventDropped(agent.name, agent.cycles, event.text, failure.message))


def unwind(agent: BdiAgent, intention: Intention, failure: Failure) -> None:
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
        agent.warn(_complaint(text_of(outermost.literal), failure))
    agent.end(intention, Change.DROPPED, f"{failure.id}: {failure.message}")


def _complaint(goal: str, failure: Failure) -> str:
    place = f" at {failure.source}:{failure.line}, {failure.code}" if failure.code else ""
    return f"{goal} failed{place}: {failure.message}"


def catch(
    agent: BdiAgent,
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
        relevant = plan.enter(failed, trail) is not None
        undo(trail, 0)
        if relevant and (intention is not None or len(agent.events) < agent.limits.events):
            agent.post(Event(f"-{sign[1:]}", failed, intention, cells, failure, tag))
            return True
    return False


def _tell(
    agent: BdiAgent, sign: str, goal: Struct, intention: Intention | None, failure: Failure, handled: bool
) -> None:
    if agent.plans.meta:
        goal_states.tell(agent, sign, goal, GoalState.FAILED, failure.id)
    if agent.tracer is not None:
        number = intention.id if intention is not None else 0
        what = (agent.name, agent.cycles, text_of(goal), number)
        agent.tracer(record.GoalFailed(*what, failure.id, failure.message, handled, sign[1:]))


def fail_goal(agent: BdiAgent, intention: Intention, place: int, error_id: ErrorId, message: str) -> None:
    """Let the goal of one frame of an intention fail, with everything above it."""
    failure = _failure(intention, str(error_id), message)
    while len(intention.frames) > place + 1:
        intention.pop()
    unwind(agent, intention, failure)
