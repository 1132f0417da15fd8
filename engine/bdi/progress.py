"""How far plans get, for the trace: which steps are through or failed, which bodies came to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.bdi import trace as record
from engine.bdi.intentions import Failure, Frame, Intention
from engine.bdi.printing import text_of

if TYPE_CHECKING:
    from engine.bdi.agent import BdiAgent
    from engine.bdi.instructions import Instruction


def step_succeeded(agent: BdiAgent, intention: Intention, frame: Frame, step: Instruction) -> None:
    """A step is through, where there is a tracer."""
    assert agent.tracer is not None
    plan = frame.plan.name
    agent.tracer(record.StepSucceeded(agent.name, agent.cycles, intention.id, plan, step.at, step.text))


def step_failed(agent: BdiAgent, intention: Intention, failure: Failure) -> None:
    """The step at which an intention stands failed of itself."""
    if agent.tracer is not None and intention.frames and intention.frames[-1].code:
        frame = intention.frames[-1]
        at = min(frame.pc, len(frame.code) - 1)
        agent.tracer(
            record.StepFailed(
                agent.name,
                agent.cycles,
                intention.id,
                frame.plan.name,
                at,
                failure.code,
                failure.id,
                failure.message,
            )
        )


def frame_done(agent: BdiAgent, intention: Intention, frame: Frame, *, cut_short: bool) -> None:
    """A frame that came to its end, or was cut short, was taken off the stack, where there is a tracer."""
    assert agent.tracer is not None
    goal = text_of(frame.literal)
    if not cut_short:
        event, depth = f"{frame.sign}{goal}", len(intention.frames)
        agent.tracer(
            record.PlanFinished(agent.name, agent.cycles, intention.id, frame.plan.name, event, depth)
        )
    if frame.is_goal:
        agent.tracer(record.GoalAchieved(agent.name, agent.cycles, goal, intention.id))


def tail_call(agent: BdiAgent, intention: Intention, caller: Frame) -> None:
    """A frame was taken off the stack to make room for the plan of its last step's goal."""
    if agent.tracer is not None:
        event, depth = f"{caller.sign}{text_of(caller.literal)}", len(intention.frames)
        agent.tracer(
            record.TailCall(agent.name, agent.cycles, intention.id, caller.plan.name, caller.pc, event, depth)
        )
