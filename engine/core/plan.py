"""Plans: an ordered list of steps for one goal; commands on steps, and events."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from engine.core.actions import SandboxSession
from engine.core.command import Command, made_from
from engine.core.journal import Payload, canonical
from engine.core.reasons import NONE, Reason
from engine.core.recovery import FailureKind
from engine.value import dataclass


@dataclass(frozen=True, slots=True)
class Uncovered:
    """A clause of a goal for which the thinker knows no plan."""

    clause: str
    """The clause, verbatim."""
    index: int
    """Its place in the goal's text, from 1."""
    why: str
    """What is missing, in the thinker's words."""
    nearest: tuple[str, ...] = ()
    """Examples of what the thinker does understand, nearest first."""


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
    summary: Reason = NONE
    """Its result, at most 150 characters."""
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


class WorldPerceived(Payload, kind="world.perceived", external=True):
    """The agent looked at its workspace; the facts are beliefs from then on, None removes one."""

    facts: dict[str, Any]
    session: SandboxSession
    world: dict[str, Any] | None = None
    """The agent's small world, where it lives in one."""


class PlanAsked(Payload, kind="plan.asked"):
    """A thinker is asked for a plan; its answer comes later."""

    goal: str
    thinker: str


class PlanGenerated(Payload, kind="plan.generated"):
    """A thinker answered with a plan."""

    goal: str
    thinker: str
    steps: tuple[PlanStep, ...] = ()
    uncovered: tuple[Uncovered, ...] = ()


class PlanRejected(Payload, kind="plan.rejected"):
    """A plan was not adopted, with every reason."""

    goal: str
    problems: tuple[Reason, ...]
    failure: FailureKind = FailureKind.PLANNING_ERROR


class PlanAdopted(Payload, kind="plan.adopted"):
    """A plan is now followed for a goal."""

    plan: str
    goal: str
    steps: tuple[PlanStep, ...]


class PlanRevised(Payload, kind="plan.revised"):
    """The operator, or recovery in the agent's name, changed the steps of a plan."""

    plan: str
    goal: str
    change: Reason
    """What was done."""
    steps: tuple[PlanStep, ...]
    """The steps behind those that are kept; they stand in the place of all others."""
    kept: int = 0
    """How many steps at the plan's beginning stay as they are."""


class StepEnded(Payload, kind="step.ended"):
    """A step was completed, failed, skipped, or put back to be run again."""

    goal: str
    step: str
    status: StepStatus
    summary: Reason = NONE


class EditStep(Command, do="edit_step"):
    """Change what a step does; it is validated again before it may run."""

    step: str
    tool: str | None = None
    command: str | None = None
    args: dict[str, Any] | None = None
    description: str | None = None
    was: tuple[str, ...] = made_from()
    """What it does, as `step_line` has it."""


class InsertStep(Command, do="insert_step"):
    """Put a new step before another, or at the end."""

    before: str | None = None
    tool: str = "simple_coder"
    command: str
    args: dict[str, Any] = Field(default_factory=dict)
    description: str = ""


class DeleteStep(Command, do="delete_step"):
    """Take a step that has not run out of the plan."""

    step: str


class MoveStep(Command, do="move_step"):
    """Move a step that has not run up (-1) or down (+1)."""

    step: str
    by: Literal[-1, 1]


class SkipStep(Command, do="skip_step"):
    """Go on without a step."""

    step: str
    reason: Reason = Reason("step.skipped")


class RetryStep(Command, do="retry_step"):
    """Run a failed step again now, or ask for a goal's plan again now."""

    step: str = ""
    goal: str = ""
    """The goal, where no step is named."""


class GiveResult(Command, do="give_result"):
    """Settle a step with a result that the operator vouches for."""

    step: str
    result: str = Field(max_length=100_000)


class ReplacePlan(Command, do="replace_plan"):
    """Replace what has not run of the current plan, by steps in JSON or by clauses in English."""

    goal: str
    plan: str = Field(min_length=1, max_length=1_000_000)
    was: tuple[str, ...] = made_from()
    """What its steps do, as `step_line` has them."""


def step_line(step: PlanStep) -> str:
    """What a step does, on a line that is the same for as long as that is."""
    does = f"{step.tool}.{step.command}" if step.op is Op.ACT else step.op.value
    return f"{step.id} {does} {canonical(step.args)} {step.description}".strip()


# ------------------------------------------------------------------ what changed between two revisions

_FIELDS = ("op", "tool", "command", "args", "depends_on", "group", "description")


@dataclass(frozen=True, slots=True)
class ChangedStep:
    """A step that does something else than before."""

    old: PlanStep
    new: PlanStep
    fields: tuple[str, ...]
    """What of it changed: names of `PlanStep`'s fields."""


@dataclass(frozen=True, slots=True)
class MovedStep:
    """A step whose place among the steps that stayed is another one."""

    step: PlanStep
    """As it is now."""
    was: int
    """Its place before, from 1."""
    now: int
    """Its place now, from 1."""


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """How a revision differs from the one before."""

    added: tuple[PlanStep, ...] = ()
    removed: tuple[PlanStep, ...] = ()
    changed: tuple[ChangedStep, ...] = ()
    moved: tuple[MovedStep, ...] = ()
    kept: int = 0
    """Steps that do the same as before, moved ones among them."""

    @property
    def empty(self) -> bool:
        """True when both revisions do the same in the same order."""
        return not (self.added or self.removed or self.changed or self.moved)


def plan_difference(old: Sequence[PlanStep], new: Sequence[PlanStep]) -> PlanDifference:
    """What changed from one list of steps to another; how far a step has got is no change.

    Steps are paired by id, then by what they do: a plan made anew gives steps new ids.

    Args:
        old: the steps before.
        new: the steps after.
    """
    pairs = dict(sorted(_pairs(old, new).items()))
    taken = set(pairs.values())
    names = {old[before].id: new[after].id for after, before in pairs.items()}
    changes = {after: _changes(old[before], new[after], names) for after, before in pairs.items()}
    stay = _in_order([*pairs.values()])
    moved = [(after, before) for after, before in pairs.items() if before not in stay]
    return PlanDifference(
        added=tuple(step for at, step in enumerate(new) if at not in pairs),
        removed=tuple(step for at, step in enumerate(old) if at not in taken),
        changed=tuple(
            ChangedStep(old[before], new[after], changes[after])
            for after, before in pairs.items()
            if changes[after]
        ),
        moved=tuple(MovedStep(new[after], before + 1, after + 1) for after, before in moved),
        kept=sum(not changed for changed in changes.values()),
    )


def _pairs(old: Sequence[PlanStep], new: Sequence[PlanStep]) -> dict[int, int]:
    """Places of steps that are the same step, new to old."""
    pairs: dict[int, int] = {}
    by: tuple[Callable[[PlanStep], Hashable], ...] = (
        lambda step: step.id,
        lambda step: (step.op, step.tool, step.command, canonical(step.args), step.description),
        lambda step: (step.op, step.tool, step.command, canonical(step.args)),
        lambda step: (step.op, step.tool, step.command, _target(step)),
    )
    for key in by:
        free: dict[Hashable, list[int]] = {}
        taken = set(pairs.values())
        for at, step in enumerate(old):
            if at not in taken:
                free.setdefault(key(step), []).append(at)
        for at, step in enumerate(new):
            if at not in pairs and (places := free.get(key(step))):
                pairs[at] = places.pop(0)
    return pairs


def _target(step: PlanStep) -> Hashable:
    """What a call is about: its path or first argument; a step without arguments is like no other."""
    first = step.args.get("path", next(iter(sorted(step.args.items())), None))
    return step.id if first is None else str(first)


def _changes(old: PlanStep, new: PlanStep, names: dict[str, str]) -> tuple[str, ...]:
    """The fields that differ; dependencies count by the steps that they mean, not by their ids."""
    changed = []
    for name in _FIELDS:
        before, after = getattr(old, name), getattr(new, name)
        if name == "depends_on":
            before = {names[ident] for ident in before if ident in names}
            after = {ident for ident in after if ident in names.values()}
        if before != after:
            changed.append(name)
    return tuple(changed)


def _in_order(places: Sequence[int]) -> set[int]:
    """The most places that stand in their order already, those that come first where there is a choice."""

    def rank(run: list[int]) -> tuple[int, int]:
        return len(run), -run[-1]

    runs: list[list[int]] = []
    for place in places:
        before = max((run for run in runs if run[-1] < place), key=rank, default=[])
        runs.append([*before, place])
    longest: list[int] = max(runs, key=rank, default=[])
    return set(longest)
