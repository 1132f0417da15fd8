"""Workflows that an agent begins and ends by itself, and what that does to its goals.

The goal that a workflow was begun for is kept with it, so its end is never taken for that of the goal that
happens to be pursued then (spec master-loop §3.11, W30).
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.domain.action import ToolResult
from engine.domain.goal import GoalStatus
from engine.domain.plan import PlanStep
from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.loop.decide_goals import end_goal

BEGINS = frozenset({"begin_workflow", "create_workflow"})
ENDS = frozenset({"set_workflow", "update_workflow_status"})
"""Commands of the tool `memory`, by our names and the seed's."""
_ENDINGS: Mapping[str, GoalStatus] = {
    "completed": GoalStatus.ACHIEVED,
    "failed": GoalStatus.FAILED,
    "abandoned": GoalStatus.DROPPED,
}


def turned_over(state: AgentState, goal: str, step: PlanStep, answer: ToolResult) -> tuple[ev.Payload, ...]:
    """What follows from a step that began or ended a workflow; nothing from any other.

    Args:
        state: the agent, with the step settled.
        goal: the goal that the step serves.
        step: what was done.
        answer: what memory answered: the workflow as it is now.
    """
    ident = str(answer.data.get("id", ""))
    if step.tool != "memory" or not ident:
        return ()
    if step.command in BEGINS:
        return (ev.WorkflowEntered(workflow=ident, goal=goal),)
    status = str(answer.data.get("status", ""))
    begun = next((one for one in state.workflows if one.id == ident), None)
    if step.command not in ENDS or status not in _ENDINGS or begun is None:
        return ()
    left = ev.WorkflowLeft(workflow=ident, status=status)
    owner = state.goals.get(begun.goal)
    # What must be shown is not shown by saying that a workflow is over.
    unshown = status == "completed" and owner is not None and owner.criteria
    if owner is None or owner.status.terminal or unshown:
        return (left,)
    return (left, *end_goal(state, owner, _ENDINGS[status], f"its workflow {ident} is {status}"))
