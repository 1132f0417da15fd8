"""Which notes memory keeps of an agent's events: events in, notes out; pure.

A stream says of an action only what is new (that it started, how it ended), so a little state is carried from
one event to the next: the goal that is pursued, what was requested, what the plan's steps are for.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any, Self

from engine.core import events as ev
from engine.core.actions import ResultStatus
from engine.core.journal import Event
from engine.core.memory import Content
from engine.core.plan import PlanStep
from engine.core.recovery import OpenWorkflow
from engine.core.state import AgentState
from engine.value import dataclass, field, replace

TOOL = "memory"
"""Calls of memory itself are not recorded: their events are in its own stream."""
WRITES = frozenset({"write", "append", "replace"})
"""Commands of the sandbox tool that write the file they name."""
SMALL = 4_000
"""Characters up to which what was written is kept, and not only where."""


@dataclass(frozen=True, slots=True)
class ThoughtNote:
    """Something that the agent thinks, plans or hears."""

    goal: str
    text: str
    kind: str = "inference"
    """A `ThoughtType`."""
    workflow: str = ""
    """Where it belongs, when not to the workflow of the goal's root."""


@dataclass(frozen=True, slots=True)
class ActionStartNote:
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
class ActionEndNote:
    """An action is over, or its end is not known."""

    start: ActionStartNote
    status: str
    """An `ActionStatus`."""
    summary: str = ""
    result: dict[str, Any] | None = None
    blob: str = ""
    """Where the whole result is, when `result` is cut."""
    file: WrittenFile | None = None


Note = ev.GoalAdopted | ev.GoalEnded | ThoughtNote | ActionStartNote | ActionEndNote | ev.AgentDeleted
"""Of a goal and of a deleted agent, the event itself: a root goal has a workflow, a sub-goal is a thought."""

Noted = tuple[Event, Note, dict[str, Content]]
"""An event, what is to be kept of it, and its big texts as they are kept."""

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


class NoteCollector:
    """Follows one agent's stream."""

    def __init__(self) -> None:
        self._goal = ""
        self._cwd = "."
        self._start: ActionStartNote | None = None
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
            noter._steps[plan.goal] = _described(plan.steps)
        action = state.action
        if action is not None:
            goal = action.goal or ("" if action.step else noter._goal)
            words, workflow = noter._words_of(action.goal, action.step), noter._workflow(action.goal)
            call = (action.tool, action.command, action.args)
            noter._start = ActionStartNote(action.id, goal, *call, words, workflow)
        return noter

    def note(self, payload: ev.Payload) -> Note | None:
        """What is to be kept of the stream's next event that is of `KINDS`; None for nothing."""
        match payload:
            case ev.GoalAdopted() | ev.GoalSelected() | ev.GoalChanged() | ev.GoalEnded():
                return self._note_goal(payload)
            case ev.PlanAdopted() | ev.PlanRevised():
                known, kept = self._steps.get(payload.goal, {}), getattr(payload, "kept", 0)
                words = _plan_words(payload, known, kept)
                self._steps[payload.goal] = (known if kept else {}) | _described(payload.steps)
                return self._thought(payload.goal, words, "plan")
            case ev.ThoughtRecorded():
                return self._thought(payload.goal or self._goal, payload.text, payload.type)
            case ev.WorkflowEntered():
                self._workflows = (*self._workflows, OpenWorkflow(payload.workflow, payload.goal))
            case ev.WorkflowLeft():
                self._workflows = tuple(
                    workflow for workflow in self._workflows if workflow.id != payload.workflow
                )
            case ev.AgentDeleted():
                return payload
            case ev.WorldPerceived() | ev.ChangesSettled():
                self._cwd = payload.session.cwd if payload.session is not None else self._cwd
            case _:
                return self._note_action(payload)
        return None

    def _note_goal(
        self, payload: ev.GoalAdopted | ev.GoalSelected | ev.GoalChanged | ev.GoalEnded
    ) -> Note | None:
        goal = payload.goal
        match payload:
            case ev.GoalAdopted():
                self._parents[goal] = payload.parent or ""
                return payload
            case ev.GoalSelected():
                self._goal = goal
                return None
            case ev.GoalChanged():
                words = f"The goal is now: {payload.text} (priority {payload.priority})"
                return self._thought(goal, words, "goal")
            case ev.GoalEnded():
                self._goal = "" if self._goal == goal else self._goal
                self._steps.pop(goal, None)
                self._workflows = tuple(workflow for workflow in self._workflows if workflow.goal != goal)
                return payload

    def _note_action(self, payload: ev.Payload) -> Note | None:
        start = self._start
        match payload:
            case ev.ActionRequested():
                goal = payload.goal or ("" if payload.step else self._goal)
                words = self._words_of(payload.goal, payload.step)
                args, workflow = payload.args, self._workflow(goal)
                self._start = ActionStartNote(
                    payload.action, goal, payload.tool, payload.command, args, words, workflow
                )
                return None
            case ev.ParametersProcessed():
                self._start = replace(start, args=payload.args) if start is not None else None
                return None
            case ev.ActionWithdrawn():
                self._start = None
                return None
        if start is None or start.tool == TOOL:
            return None
        match payload:
            case ev.ActionStarted():
                return start
            case ev.ActionFinished():
                ended = self._finished(start, payload)
            case ev.ActionCancelled():
                ended = ActionEndNote(start, "skipped", f"cut off: {payload.reason}")
            case ev.ActionOutcomeUnknown():
                ended = ActionEndNote(start, "failed", "the program ended meanwhile; its result is not known")
            case _:
                return None
        self._start = None
        return ended

    def _finished(self, start: ActionStartNote, payload: ev.ActionFinished) -> ActionEndNote:
        done = payload.status is ResultStatus.SUCCESS
        file = self._written(start) if done else None
        if payload.session is not None:
            self._cwd = payload.session.cwd
        status = "completed" if done else "failed"
        return ActionEndNote(start, status, payload.summary, payload.result, payload.blob or "", file)

    def _written(self, start: ActionStartNote) -> WrittenFile | None:
        path = start.args.get("path")
        if start.tool != "simple_coder" or start.command not in WRITES or not isinstance(path, str):
            return None
        content = str(start.args.get("content", "")) if start.command == "write" else ""
        whole = posixpath.normpath(posixpath.join(self._cwd, path))
        return WrittenFile(whole, content if len(content) <= SMALL else "")

    def _thought(self, goal: str, text: str, kind: str) -> ThoughtNote:
        return ThoughtNote(goal, text, kind, self._workflow(goal))

    def _workflow(self, goal: str) -> str:
        """The innermost workflow begun for a goal or one above it; empty where that is its root's own."""
        line = set()
        while goal and goal not in line:
            line.add(goal)
            goal = self._parents.get(goal, "")
        return next((workflow.id for workflow in reversed(self._workflows) if workflow.goal in line), "")

    def _words_of(self, goal: str, step: str) -> str:
        return self._steps.get(goal, {}).get(step, "")


def _described(steps: tuple[PlanStep, ...]) -> dict[str, str]:
    return {step.id: step.description for step in steps}


def _plan_words(payload: ev.PlanAdopted | ev.PlanRevised, known: Mapping[str, str], kept: int) -> str:
    """A plan, or what of it is new."""
    new = isinstance(payload, ev.PlanAdopted)
    head = "Plan" if new else f"The plan was changed ({payload.change})"  # type: ignore[union-attr]
    lines = [
        f"{number}. {_step_words(step)}"
        for number, step in enumerate(payload.steps, kept + 1)
        if new or known.get(step.id) != step.description
    ]
    return "\n".join([f"{head}:", *lines]) if lines else f"{head}."


def _step_words(step: PlanStep) -> str:
    return step.description or f"{step.tool}.{step.command}".strip(".") or str(step.op)
