"""Commands on goals and on the steps of their plans."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from engine.domain.command import Command, GoalText


class AdoptGoal(Command):
    """Give the agent a goal."""

    do: Literal["adopt_goal"] = "adopt_goal"
    text: GoalText
    priority: int = Field(default=1, ge=-1_000_000, le=1_000_000)
    criteria: tuple[Annotated[str, Field(min_length=1, max_length=2_000)], ...] = Field((), max_length=20)
    """What must be shown to hold before it counts as achieved."""


class ChangeGoal(Command):
    """Reword a goal or change its priority."""

    do: Literal["change_goal"] = "change_goal"
    goal: str
    text: GoalText | None = None
    priority: int | None = None


class PushGoal(Command):
    """Put a goal below another one: it is pursued first, then the other goes on."""

    do: Literal["push_goal"] = "push_goal"
    goal: str
    """The goal that it is to serve."""
    text: GoalText


class MoveGoal(Command):
    """Let a goal serve another one, or none."""

    do: Literal["move_goal"] = "move_goal"
    goal: str
    parent: str = ""
    """The goal that it is to serve; empty for none."""


class DropGoal(Command):
    """Give a goal up."""

    do: Literal["drop_goal"] = "drop_goal"
    goal: str
    reason: str = "dropped by the operator"


class EditStep(Command):
    """Change what a step does; it is validated again before it may run."""

    do: Literal["edit_step"] = "edit_step"
    step: str
    tool: str | None = None
    command: str | None = None
    args: dict[str, Any] | None = None
    description: str | None = None


class InsertStep(Command):
    """Put a new step before another, or at the end."""

    do: Literal["insert_step"] = "insert_step"
    before: str | None = None
    tool: str = "simple_coder"
    command: str
    args: dict[str, Any] = Field(default_factory=dict)
    description: str = ""


class DeleteStep(Command):
    """Take a step that has not run out of the plan."""

    do: Literal["delete_step"] = "delete_step"
    step: str


class MoveStep(Command):
    """Move a step that has not run up (-1) or down (+1)."""

    do: Literal["move_step"] = "move_step"
    step: str
    by: Literal[-1, 1]


class SkipStep(Command):
    """Go on without a step."""

    do: Literal["skip_step"] = "skip_step"
    step: str
    reason: str = "skipped by the operator"


class RetryStep(Command):
    """Run a failed step again now, or ask for a goal's plan again now."""

    do: Literal["retry_step"] = "retry_step"
    step: str = ""
    goal: str = ""
    """The goal, where no step is named."""


class GiveResult(Command):
    """Settle a step with a result that the operator vouches for."""

    do: Literal["give_result"] = "give_result"
    step: str
    result: str = Field(max_length=100_000)


class ReplacePlan(Command):
    """Replace what has not run of the current plan, by steps in JSON or by clauses in English."""

    do: Literal["replace_plan"] = "replace_plan"
    goal: str
    plan: str = Field(min_length=1, max_length=1_000_000)


class AbortGoal(Command):
    """Fail a goal by the operator's decision."""

    do: Literal["abort_goal"] = "abort_goal"
    goal: str
    reason: str = "aborted by the operator"


class WaiveSnapshot(Command):
    """Let a step run although the workspace could not be saved before it."""

    do: Literal["waive_snapshot"] = "waive_snapshot"
    step: str


GoalCommand = (
    AdoptGoal
    | ChangeGoal
    | PushGoal
    | MoveGoal
    | DropGoal
    | AbortGoal
    | EditStep
    | InsertStep
    | DeleteStep
    | MoveStep
    | SkipStep
    | RetryStep
    | GiveResult
    | ReplacePlan
    | WaiveSnapshot
)
