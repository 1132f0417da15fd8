"""The phases of a cycle, and what the agent reports of them (spec §1.6); the second is in `deliberation`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from engine.bdi import alarms, believing, failures, messages, progress, waiting
from engine.bdi.deliberation import select_intention
from engine.bdi.intentions import Frame, Intention
from engine.bdi.messages import Message
from engine.bdi.problems import EvaluationError
from engine.bdi.trace import StepRun
from engine.bdi.waiting import ActionRequest

if TYPE_CHECKING:
    from engine.bdi.agent import BdiAgent


class Phase(StrEnum):
    """A part of the cycle."""

    SENSE = "sense"
    """Waits that are over, percepts, one message."""
    DELIBERATE = "deliberate"
    """One event, and a plan for it."""
    ACT = "act"
    """One step of one intention."""


SENSE = Phase.SENSE
"""The same: asking an enumeration for a member costs more than a cycle can spare."""


class CycleReport(NamedTuple):
    """What one cycle or phase did."""

    worked: bool
    """False when there was nothing to handle and nothing to run."""
    requests: tuple[ActionRequest, ...] = ()
    messages: tuple[Message, ...] = ()


WORKED, RESTED = CycleReport(True), CycleReport(False)


def sense(agent: BdiAgent) -> bool:
    """Take in what has come from outside; False when nothing has."""
    worked = bool(agent.timers) and waiting.fire_timers(agent)
    if agent.alarms:
        worked = alarms.fire(agent) or worked
    if agent.percepts is not None:
        worked = believing.perceive(agent, agent.percepts) or worked
        agent.percepts = None
    if agent.mail:
        messages.handle(agent, agent.mail.popleft())
        worked = True
    if agent.conditions and agent.checked_version != agent.belief_version:
        worked = waiting.check_conditions(agent) or worked
    agent.checked_version = agent.belief_version
    return worked


def act(agent: BdiAgent) -> bool:
    """Run one step of one intention; False when none can go on."""
    intention = select_intention(agent)
    if intention is None:
        return False
    frame = intention.frames[-1]
    if agent.tracer is not None:
        _trace_step(agent, intention, frame)
    step = frame.code[frame.pc]
    try:
        goes_on = step.execute(agent, intention, frame)
    except EvaluationError as error:
        failures.fail_step(agent, intention, error)
        return True
    if goes_on:
        if agent.tracer is not None:
            progress.step_succeeded(agent, intention, frame, step)
        if intention.suspended:
            intention.parked = True
        elif frame.pc == len(frame.code):
            agent.settle(intention)
        else:
            agent.ready.append(intention)
    return True


def _trace_step(agent: BdiAgent, intention: Intention, frame: Frame) -> None:
    assert agent.tracer is not None
    step = frame.code[frame.pc]
    position = step.item.position
    agent.tracer(StepRun(agent.name, agent.cycles, intention.id, frame.plan.name, step.text, position))
