"""Goals: what an agent wants."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
    reason: str = ""
    """Why it ended as it did."""
    event: str = ""
    """Reference of the event that adopted or last changed it."""
