"""Meta-events: a plan for `^!g[state(finished)]` is told what becomes of goals (spec §1.4).

Each is an external event, so its plan runs as an intention of its own. They are raised only for goals that
some plan asks about.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from engine.bdi import trace as record
from engine.bdi.intentions import Event, Intention
from engine.bdi.problems import EvaluationError
from engine.bdi.terms import Struct, atom, canonical, instantiated

if TYPE_CHECKING:
    from engine.bdi.agent import BdiAgent


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


def tell(agent: BdiAgent, sign: str, goal: Struct, state: GoalState, reason: str = "") -> None:
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
    told = goal.with_annotations((*goal.annotations, Struct("state", (atom(state),), notes)))
    copy = instantiated(canonical(told))
    assert isinstance(copy, Struct)
    event = Event(meta, copy)
    try:
        agent.post(event)
    except EvaluationError as error:
        if agent.tracer is not None:
            agent.tracer(record.EventDropped(agent.name, agent.cycles, event.text, str(error)))


def tell_of_all(agent: BdiAgent, intention: Intention, state: GoalState, reason: str = "") -> None:
    """Raise such events for every goal of an intention, the outermost first."""
    for frame in intention.frames:
        if frame.is_goal:
            tell(agent, frame.sign, frame.literal, state, reason)
    pending = intention.pending
    if pending is not None and pending.event is not None:
        tell(agent, pending.event.sign, pending.event.literal, state, reason)
