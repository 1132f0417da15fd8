"""What of an agent's events memory is to keep: events in, notes out; pure.

A stream says of an action only what is new (that it started, how it ended), so a little is carried from one
event to the next: which goal is pursued, what was requested, what the plan's steps are for.
Source: spec master-loop-and-memory §1.4, §3.9 (recording), §3.11.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from engine.domain.action import ResultStatus
from engine.domain.goal import GoalStatus
from engine.domain.plan import PlanStep
from engine.domain.state import AgentState, OpenWorkflow
from engine.journal import events as ev

TOOL = "memory"
"""Calls of memory itself are no deeds: their events are in its own stream."""
WRITES = frozenset({"write", "append", "replace"})
"""Commands of the sandbox tool that write the file they name."""
SMALL = 4_000
"""Characters up to which what was written is kept, and not only where."""


@dataclass(frozen=True, slots=True)
class GoalAdopted:
    """A root goal begins a workflow; a sub-goal is a thought of its root's."""

    goal: str
    text: str
    parent: str = ""


@dataclass(frozen=True, slots=True)
class GoalEnded:
    """A root goal's end is its workflow's."""

    goal: str
    status: GoalStatus
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Thought:
    """Something that the agent thinks, plans or is told."""

    goal: str
    text: str
    kind: str = "inference"
    """A `ThoughtType`."""
    workflow: str = ""
    """Where it belongs, when not to the workflow of the goal's root."""


@dataclass(frozen=True, slots=True)
class Deed:
    """An action that starts."""

    action: str
    goal: str = ""
    """Empty for one of the operator's outside of any goal."""
    tool: str = ""
    command: str = ""
    args: dict[str, Any] = field(default_factory=dict)
    reasoning: str = ""
    workflow: str = ""
    """Where it belongs, when not to the workflow of the goal's root."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that an action wrote."""

    path: str
    """From the sandbox's root."""
    content: str = ""
    """The whole of it where that is known and small."""


@dataclass(frozen=True, slots=True)
class DeedEnded:
    """An action is over, or its end is not known."""

    deed: Deed
    status: str
    """An `ActionStatus`."""
    summary: str = ""
    result: dict[str, Any] | None = None
    blob: str = ""
    """Where the whole result is, when `result` is cut."""
    file: WrittenFile | None = None


@dataclass(frozen=True, slots=True)
class Deleted:
    """The agent is gone; what it had begun stays undone."""


Note = GoalAdopted | GoalEnded | Thought | Deed | DeedEnded | Deleted

KINDS = frozenset(
    kind.kind
    for kind in (
        *(ev.AgentDeleted, ev.GoalAdopted, ev.GoalSelected, ev.GoalChanged, ev.GoalEnded),
        *(ev.PlanAdopted, ev.PlanRevised, ev.ThoughtRecorded, ev.WorldPerceived, ev.ChangesSettled),
        *(ev.ActionRequested, ev.ParametersProcessed, ev.ActionWithdrawn, ev.ActionStarted),
        *(ev.ActionFinished, ev.ActionCancelled, ev.ActionOutcomeUnknown),
        *(ev.WorkflowEntered, ev.WorkflowLeft),
    )
)
"""Events that matter here; all others need not even be read."""


class Noter:
    """Goes along with one agent's stream."""

    def __init__(self) -> None:
        self._goal = ""
        self._cwd = "."
        self._deed: Deed | None = None
        self._parents: dict[str, str] = {}
        self._workflows: tuple[OpenWorkflow, ...] = ()
        self._steps: dict[str, dict[str, str]] = {}
        """What each step of a goal's plan is for."""

    @classmethod
    def after(cls, state: AgentState) -> Self:
        """One that has gone along up to this state."""
        noter = cls()
        noter._goal = state.goal_at_hand
        noter._cwd = state.sandbox.cwd
        noter._parents = {goal.id: goal.parent or "" for goal in state.goals.values()}
        noter._workflows = state.workflows
        for plan in state.plans.values():
            noter._know(plan.goal, plan.steps)
        action = state.action
        if action is not None:
            noter._deed = Deed(
                action.id,
                action.goal or ("" if action.step else noter._goal),
                action.tool,
                action.command,
                action.args,
                noter._words_of(action.goal, action.step),
                noter._workflow(action.goal),
            )
        return noter

    def note(self, said: ev.Payload) -> Note | None:
        """What is to be kept of the stream's next event that is of `KINDS`; None for nothing."""
        match said:
            case ev.GoalAdopted():
                self._parents[said.goal] = said.parent or ""
                return GoalAdopted(said.goal, said.text, said.parent or "")
            case ev.GoalSelected():
                self._goal = said.goal
            case ev.GoalChanged():
                words = f"The goal is now: {said.text} (priority {said.priority})"
                return self._thought(said.goal, words, "goal")
            case ev.GoalEnded():
                self._goal = "" if self._goal == said.goal else self._goal
                self._steps.pop(said.goal, None)
                self._workflows = tuple(one for one in self._workflows if one.goal != said.goal)
                return GoalEnded(said.goal, said.status, said.reason)
            case ev.PlanAdopted() | ev.PlanRevised():
                words = _plan_words(said, self._steps.get(said.goal, {}))
                self._know(said.goal, said.steps)
                return self._thought(said.goal, words, "plan")
            case ev.ThoughtRecorded():
                return self._thought(said.goal or self._goal, said.text, said.type)
            case ev.WorkflowEntered():
                self._workflows = (*self._workflows, OpenWorkflow(said.workflow, said.goal))
            case ev.WorkflowLeft():
                self._workflows = tuple(one for one in self._workflows if one.id != said.workflow)
            case ev.AgentDeleted():
                return Deleted()
            case ev.WorldPerceived():
                self._cwd = said.session.cwd
            case ev.ChangesSettled():
                self._cwd = said.session.cwd if said.session is not None else self._cwd
            case _:
                return self._note_action(said)
        return None

    def _note_action(self, said: ev.Payload) -> Note | None:
        deed = self._deed
        match said:
            case ev.ActionRequested():
                goal = said.goal or ("" if said.step else self._goal)
                words = self._words_of(said.goal, said.step)
                args, workflow = said.args, self._workflow(goal)
                self._deed = Deed(said.action, goal, said.tool, said.command, args, words, workflow)
                return None
            case ev.ParametersProcessed():
                self._deed = replace(deed, args=said.args) if deed is not None else None
                return None
            case ev.ActionWithdrawn():
                self._deed = None
                return None
        if deed is None or deed.tool == TOOL:
            return None
        match said:
            case ev.ActionStarted():
                return deed
            case ev.ActionFinished():
                ended = self._finished(deed, said)
            case ev.ActionCancelled():
                ended = DeedEnded(deed, "skipped", f"cut off: {said.reason}")
            case ev.ActionOutcomeUnknown():
                ended = DeedEnded(deed, "failed", "the program ended meanwhile; what came of it is not known")
            case _:
                return None
        self._deed = None
        return ended

    def _finished(self, deed: Deed, said: ev.ActionFinished) -> DeedEnded:
        done = said.status is ResultStatus.SUCCESS
        file = self._written(deed) if done else None
        if said.session is not None:
            self._cwd = said.session.cwd
        status = "completed" if done else "failed"
        return DeedEnded(deed, status, said.summary, said.result, said.blob or "", file)

    def _written(self, deed: Deed) -> WrittenFile | None:
        path = deed.args.get("path")
        if deed.tool != "simple_coder" or deed.command not in WRITES or not isinstance(path, str):
            return None
        content = str(deed.args.get("content", "")) if deed.command == "write" else ""
        whole = posixpath.normpath(posixpath.join(self._cwd, path))
        return WrittenFile(whole, content if len(content) <= SMALL else "")

    def _thought(self, goal: str, text: str, kind: str) -> Thought:
        return Thought(goal, text, kind, self._workflow(goal))

    def _workflow(self, goal: str) -> str:
        """The innermost workflow begun for a goal or one above it; empty where that is its root's own."""
        line = set()
        while goal and goal not in line:
            line.add(goal)
            goal = self._parents.get(goal, "")
        return next((one.id for one in reversed(self._workflows) if one.goal in line), "")

    def _know(self, goal: str, steps: tuple[PlanStep, ...]) -> None:
        self._steps[goal] = {step.id: step.description for step in steps}

    def _words_of(self, goal: str, step: str) -> str:
        return self._steps.get(goal, {}).get(step, "")


def _plan_words(said: ev.PlanAdopted | ev.PlanRevised, known: Mapping[str, str]) -> str:
    """A plan, or what of it is new."""
    new = isinstance(said, ev.PlanAdopted)
    head = "Plan" if new else f"The plan was changed ({said.change})"  # type: ignore[union-attr]
    lines = [
        f"{number}. {_step_words(step)}"
        for number, step in enumerate(said.steps, 1)
        if new or known.get(step.id) != step.description
    ]
    return "\n".join([f"{head}:", *lines]) if lines else f"{head}."


def _step_words(step: PlanStep) -> str:
    return step.description or f"{step.tool}.{step.command}".strip(".") or str(step.op)
