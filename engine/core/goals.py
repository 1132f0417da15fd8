"""Goals: what an agent wants; commands and events."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from engine.core.command import Command, GoalText, made_from
from engine.core.journal import Payload
from engine.core.reasons import NONE, Reason
from engine.value import dataclass


class GoalStatus(StrEnum):
    """Where a goal stands; the last three are terminal."""

    PENDING = "pending"
    ACTIVE = "active"
    ACHIEVED = "achieved"
    FAILED = "failed"
    DROPPED = "dropped"

    @property
    def terminal(self) -> bool:
        """True when nothing more will be done for the goal."""
        return self in (GoalStatus.ACHIEVED, GoalStatus.FAILED, GoalStatus.DROPPED)


@dataclass(frozen=True, slots=True)
class Goal:
    """One desire of an agent, as the operator or a parent goal stated it."""

    id: str
    text: str
    priority: int = 1
    """Larger is more urgent (mindX); equal priorities go oldest first."""
    status: GoalStatus = GoalStatus.PENDING
    parent: str | None = None
    """The goal this one serves, when a plan step asked for it."""
    parent_step: str | None = None
    """The plan step of the parent that waits for this goal."""
    order: int = 0
    """Adoption order within the agent."""
    criteria: tuple[str, ...] = ()
    """What must be shown to hold before the goal counts as achieved."""
    reason: Reason = NONE
    """Why it ended as it did."""
    event: str = ""
    """Reference of the event that adopted or last changed it."""


class AdoptGoal(Command, do="adopt_goal"):
    """Give the agent a goal."""

    text: GoalText
    priority: int = Field(default=1, ge=-1_000_000, le=1_000_000)
    criteria: tuple[Annotated[str, Field(min_length=1, max_length=2_000)], ...] = Field((), max_length=20)
    """What must be shown to hold before it counts as achieved."""


class ChangeGoal(Command, do="change_goal"):
    """Reword a goal or change its priority."""

    goal: str
    text: GoalText | None = None
    priority: int | None = None
    was: tuple[str, ...] = made_from()
    """Its text."""


class PushGoal(Command, do="push_goal"):
    """Put a goal below another one: it is pursued first, then the other continues."""

    goal: str
    """The goal that it is to serve."""
    text: GoalText


class MoveGoal(Command, do="move_goal"):
    """Let a goal serve another one, or none."""

    goal: str
    parent: str = ""
    """The goal that it is to serve; empty for none."""


class DropGoal(Command, do="drop_goal"):
    """Give a goal up."""

    goal: str
    reason: Reason = Reason("goal.dropped")


class AbortGoal(Command, do="abort_goal"):
    """Fail a goal by the operator's decision."""

    goal: str
    reason: Reason = Reason("goal.aborted")


class WaiveSnapshot(Command, do="waive_snapshot"):
    """Let a step run although the workspace could not be saved before it."""

    step: str


class GoalAdopted(Payload, kind="goal.adopted"):
    """A new desire."""

    goal: str
    text: str
    priority: int = 1
    parent: str | None = None
    parent_step: str | None = None
    criteria: tuple[str, ...] = ()


class GoalSelected(Payload, kind="goal.selected"):
    """Deliberation chose the goal to pursue."""

    goal: str


class GoalMoved(Payload, kind="goal.moved"):
    """A goal serves another one than before, or none."""

    goal: str
    parent: str | None = None


class GoalChanged(Payload, kind="goal.changed"):
    """The text or the priority of a goal was changed; its plan no longer holds when the text did."""

    goal: str
    text: str
    priority: int


class GoalEnded(Payload, kind="goal.ended"):
    """A goal was achieved, failed or dropped."""

    goal: str
    status: GoalStatus
    reason: Reason = NONE


class WorkflowEntered(Payload, kind="workflow.entered"):
    """The agent began a workflow of its own for a goal; what it does next belongs there."""

    workflow: str
    goal: str


class WorkflowLeft(Payload, kind="workflow.left"):
    """A workflow that the agent began is over; what it does next belongs to the one around it."""

    workflow: str
    status: str
    """A terminal `engine.core.memory.WorkflowStatus`."""
