"""The kinds of events of goals, beliefs, plans and workflows."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.domain.action import SandboxSession
from engine.domain.belief import BeliefSource
from engine.domain.failure import FailureKind
from engine.domain.goal import GoalStatus
from engine.domain.plan import PlanStep, StepStatus
from engine.domain.thinking import Uncovered
from engine.journal.payload import Payload


class GoalAdopted(Payload):
    """A new desire."""

    kind: ClassVar[str] = "goal.adopted"
    goal: str
    text: str
    priority: int = 1
    parent: str | None = None
    parent_step: str | None = None
    criteria: tuple[str, ...] = ()


class GoalSelected(Payload):
    """Deliberation chose the goal to pursue."""

    kind: ClassVar[str] = "goal.selected"
    goal: str


class GoalMoved(Payload):
    """A goal serves another one than before, or none."""

    kind: ClassVar[str] = "goal.moved"
    goal: str
    parent: str | None = None


class GoalChanged(Payload):
    """The text or the priority of a goal was changed; its plan no longer holds when the text did."""

    kind: ClassVar[str] = "goal.changed"
    goal: str
    text: str
    priority: int


class GoalEnded(Payload):
    """A goal was achieved, failed or dropped."""

    kind: ClassVar[str] = "goal.ended"
    goal: str
    status: GoalStatus
    reason: str = ""


class BeliefAdded(Payload):
    """Something is now held true; an older value of the key is replaced."""

    kind: ClassVar[str] = "belief.added"
    key: str
    value: Any
    confidence: float = 0.9
    source: BeliefSource = BeliefSource.PERCEPTION
    ttl_s: float | None = None
    """Seconds from this event for which it is held; None for no end."""
    until: str = ""
    """For one that is put back: when it ends, as it was said then."""


class BeliefOutweighed(Payload):
    """A value that was not taken: what is held under the key is surer and from a stronger source."""

    kind: ClassVar[str] = "belief.outweighed"
    key: str
    value: Any
    confidence: float
    source: BeliefSource
    ttl_s: float | None = None


class BeliefRemoved(Payload):
    """Something is no longer held true."""

    kind: ClassVar[str] = "belief.removed"
    key: str
    reason: str = ""


class WorldPerceived(Payload):
    """The agent looked at its workspace; the facts are beliefs from then on, None removes one."""

    kind: ClassVar[str] = "world.perceived"
    external: ClassVar[bool] = True
    facts: dict[str, Any]
    session: SandboxSession
    world: dict[str, Any] | None = None
    """The agent's small world, where it lives in one."""


class PlanAsked(Payload):
    """A thinker is asked for a plan; its answer comes later."""

    kind: ClassVar[str] = "plan.asked"
    goal: str
    thinker: str


class PlanGenerated(Payload):
    """A thinker answered with a plan."""

    kind: ClassVar[str] = "plan.generated"
    goal: str
    thinker: str
    steps: tuple[PlanStep, ...] = ()
    uncovered: tuple[Uncovered, ...] = ()


class PlanRejected(Payload):
    """A plan was not adopted, with every reason."""

    kind: ClassVar[str] = "plan.rejected"
    goal: str
    problems: tuple[str, ...]
    failure: FailureKind = FailureKind.PLANNING_ERROR


class PlanAdopted(Payload):
    """A plan is now followed for a goal."""

    kind: ClassVar[str] = "plan.adopted"
    plan: str
    goal: str
    steps: tuple[PlanStep, ...]


class PlanRevised(Payload):
    """The operator, or recovery in the agent's name, changed the steps of a plan."""

    kind: ClassVar[str] = "plan.revised"
    plan: str
    goal: str
    change: str
    """What was done, in words."""
    steps: tuple[PlanStep, ...]


class StepEnded(Payload):
    """A step was completed, failed, skipped, or put back to be run again."""

    kind: ClassVar[str] = "step.ended"
    goal: str
    step: str
    status: StepStatus
    summary: str = ""


class WorkflowEntered(Payload):
    """The agent began a workflow of its own for a goal; what it does next belongs there."""

    kind: ClassVar[str] = "workflow.entered"
    workflow: str
    goal: str


class WorkflowLeft(Payload):
    """A workflow that the agent began is over; what it does next belongs to the one around it."""

    kind: ClassVar[str] = "workflow.left"
    workflow: str
    status: str
    """A terminal `engine.domain.memory.WorkflowStatus`."""
