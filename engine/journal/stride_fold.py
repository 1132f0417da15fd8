"""How far a step of the operator's has gone, for agents with plans; a reasoner says it itself.

A stride over a step or out of a goal ends where that has ended, however it did, and with the first failure:
the operator sees it before anything is done about it. Source: spec steering §3 idea 2.
"""

from __future__ import annotations

from engine.domain.reasoning import Stride
from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.journal.reasoner_fold import end_stride


def lasts(stride: Stride | None) -> bool:
    """Whether a stride of an agent with plans goes beyond one action."""
    return stride is not None and bool(stride.goal) and stride.scope != "step"


def went_on(state: AgentState, said: ev.Payload) -> None:
    """End the stride where this event brought the agent to where it was to go; the state is that after it."""
    stride = state.stride
    if stride is None or not stride.goal:
        return
    if stride.scope == "step":
        arrived = isinstance(said, ev.GoalAdopted) and bool(said.parent_step)
    else:
        arrived = isinstance(said, ev.FailureRecorded) or _through(state, stride, said)
    if arrived:
        end_stride(state)


def _through(state: AgentState, stride: Stride, said: ev.Payload) -> bool:
    """Whether what was to be stepped over or out of is over, or no longer there."""
    match said:
        case ev.GoalEnded():
            return said.goal == stride.goal
        case ev.StepEnded():
            return stride.scope == "over" and said.step == stride.step
        case ev.PlanRevised() | ev.PlanAdopted() | ev.GoalChanged():
            if stride.scope != "over" or said.goal != stride.goal:
                return False
            plan = state.plans.get(stride.goal)
            return plan is None or plan.step(stride.step) is None
    return False
