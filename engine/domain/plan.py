"""Plans: an ordered list of steps for one goal."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Op(StrEnum):
    """What a step does; the names are those of AgentSpeak(L) body operations."""

    ACT = "act"
    """Call a tool."""
    ACHIEVE = "achieve"
    """Adopt a sub-goal and wait for it."""
    TEST = "test"
    """Ask the belief base."""
    ADD = "add"
    """Add a belief."""
    REMOVE = "remove"
    """Remove a belief."""
    UPDATE = "update"
    """Replace a belief."""
    THINK = "think"
    """Ask the thinker; it has no concrete tool."""


class StepStatus(StrEnum):
    """Where a step stands; the last three are terminal."""

    PLANNED = "planned"
    RUNNING = "running"
    FAILED = "failed"
    """It failed and recovery has not settled it; it may be retried."""
    COMPLETED = "completed"
    SKIPPED = "skipped"
    ABANDONED = "abandoned"

    @property
    def terminal(self) -> bool:
        """True when the step will not run any more."""
        return self in (StepStatus.COMPLETED, StepStatus.SKIPPED, StepStatus.ABANDONED)


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a step came from, in words an operator can check."""

    by: str = "operator"
    """`operator`, or the thinker's name."""
    recipe: str = ""
    """Recipe that gave it, as `file:recipe`."""
    clause: str = ""
    """The clause of the goal's text it serves, verbatim."""
    clause_index: int = 0


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan, concrete enough to run or abstract enough to think about."""

    id: str
    description: str
    op: Op = Op.ACT
    tool: str = ""
    command: str = ""
    """The tool's sub-command (`mkdir`, `run`, …), kept apart from its arguments."""
    args: dict[str, Any] = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    group: str = ""
    """Steps of one parallel group share a name."""
    status: StepStatus = StepStatus.PLANNED
    summary: str = ""
    """What came of it, at most 150 characters."""
    attempts: int = 0
    provenance: Provenance = field(default_factory=Provenance)
    event: str = ""
    """Reference of the event that last changed it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps chosen for one goal; an edit makes a new revision of the same plan."""

    id: str
    goal: str
    revision: int = 1
    steps: tuple[PlanStep, ...] = ()
    event: str = ""
    """Reference of the event that adopted or last revised it."""

    def step(self, step_id: str) -> PlanStep | None:
        """The step with this id, or None."""
        return next((step for step in self.steps if step.id == step_id), None)

    @property
    def current(self) -> PlanStep | None:
        """The first step that can still run and whose prerequisites are settled.

        A prerequisite is settled when it is terminal or no longer in the plan.
        """
        unsettled = {step.id for step in self.steps if not step.status.terminal}
        for step in self.steps:
            if not step.status.terminal and unsettled.isdisjoint(step.depends_on):
                return step
        return None

    @property
    def shown(self) -> bool:
        """True when the plan ends with a decision that all is done."""
        last = self.steps[-1] if self.steps else None
        return last is not None and last.op is Op.THINK and last.status is StepStatus.COMPLETED

    @property
    def complete(self) -> bool:
        """True when every step is terminal."""
        return all(step.status.terminal for step in self.steps)
