"""Goals: what an agent wants; commands and events."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from engine.core.command import Command, GoalText, made_from
from engine.core.journal import Payload
from engine.core.reasons import NONE, Reason, read_reason
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


GoalMark = Literal["active", "pending", "achieved", "partly", "failed", "dropped"]
"""How a goal is shown: its status, or that it was achieved without all that it asked for."""
HANDOFF_IS = "its handoff is "
"""How the last decision of a run begins; the state of its handoff follows."""
_OF_HANDOFFS: dict[str, GoalMark] = {"completed": "achieved", "failed": "failed", "timed_out": "failed"}
"""The same in journals in which the goal of a run was achieved whatever its handoff came to."""
_OTHER_ENDS = {"end.achieved": GoalStatus.ACHIEVED, "end.cut": GoalStatus.DROPPED}


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

    @property
    def ending(self) -> tuple[GoalMark, str]:
        """How it stands; see `ending_of`."""
        return ending_of(self.status, self.reason)

    @property
    def lacking(self) -> str:
        """What it was achieved without; see `lacking_in`."""
        return lacking_in(self.reason)


def lacking_in(reason: Reason) -> str:
    """What a goal was achieved without, as `1 clause skipped, 1 step forced`; empty where that is nothing."""
    return ", ".join(reason.values["lacking"]) if reason.is_a("goal.partly") else ""


def end_of_run(returned: object) -> tuple[GoalStatus, Reason] | None:
    """How the goal of a run ends, by the end that its handoff had (`HandoffResult.end`); None without one."""
    if not isinstance(returned, Mapping):
        return None
    reason = read_reason(returned)
    return _OTHER_ENDS.get(reason.code, GoalStatus.FAILED), reason


def ending_of(status: GoalStatus, reason: Reason) -> tuple[GoalMark, str]:
    """How a goal stands, for its mark and in words, such as `achieved, 1 clause skipped`."""
    if status is GoalStatus.ACHIEVED and (lacking := lacking_in(reason)):
        return "partly", f"{status}, {lacking}"
    if status is GoalStatus.ACHIEVED and reason.startswith(HANDOFF_IS):
        mark = _OF_HANDOFFS.get(reason.removeprefix(HANDOFF_IS), "dropped")
        return mark, "achieved" if mark == "achieved" else str(reason)
    return status.value, status.value


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
