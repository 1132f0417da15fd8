"""Rewinding: what of an agent is brought back and what continues as it is; commands and events.

Brought back is what the agent wants, plans and believes, and how it stands with that: `Course`. Everything
else of an `AgentState` continues: ids (none is given twice), what was spent, counts of what was really done,
jobs, breakpoints, what it learned about its tools and its thinking, and the sandbox's safety switch, which is
the operator's.

All events but one come from outside the agent's cycle: whoever rewinds has read the journal and the
snapshots, and the events carry the result, so that the fold and a replay need neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from engine.core.actions import SandboxSession, Settled
from engine.core.beliefs import Belief, first_end
from engine.core.budgets import SpendingLimits
from engine.core.command import AgentId, Command
from engine.core.goals import Goal
from engine.core.journal import Payload
from engine.core.late_values import LateValues
from engine.core.plan import Plan, PlanStep
from engine.core.reasons import Reason
from engine.core.recovery import Failure, Intervention, OpenWorkflow, Retry, Strategy
from engine.core.sandbox import Handover
from engine.core.state import AgentState
from engine.core.thinking import RecentAction
from engine.value import dataclass, fields_of

V = TypeVar("V")

OF_JOBS = "job."
"""How keys of beliefs begin that follow the background jobs, which no rewind brings back."""


class RewindScope(StrEnum):
    """What a rewind is about."""

    BOTH = "both"
    STATE = "state"
    FILES = "files"


@dataclass(frozen=True, slots=True)
class GoalCourse:
    """How an agent stood with its goals at an event, told against how it stands now.

    Of goals, plans and beliefs only those are here that are another now, so that an event that says this
    stays small; `order` has all their keys.
    """

    order: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """`goals`, `plans` and `beliefs` to all keys in order."""
    goals: dict[str, Goal] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    beliefs: dict[str, Belief] = field(default_factory=dict)
    current_goal: str = ""
    needs_replan: bool = False
    replans: dict[str, str] = field(default_factory=dict)
    settled: dict[str, Settled] = field(default_factory=dict)
    tried: dict[str, tuple[Strategy, ...]] = field(default_factory=dict)
    retry: Retry | None = None
    intervention: Intervention | None = None
    handover: Handover | None = None
    failures: tuple[Failure, ...] = ()
    consecutive_errors: int = 0
    workflows: tuple[OpenWorkflow, ...] = ()
    recent: tuple[RecentAction, ...] = ()
    deferred: tuple[str, ...] = ()
    musings: int = 0
    last_summary: str = ""
    sandbox: SandboxSession = field(default_factory=SandboxSession)
    world: dict[str, Any] = field(default_factory=dict)


_AS_THEY_ARE = (
    *("current_goal", "needs_replan", "retry", "intervention", "handover", "consecutive_errors"),
    *("workflows", "recent", "deferred", "musings", "last_summary", "sandbox"),
)


def course_at(then: AgentState, now: AgentState) -> GoalCourse:
    """The course of a past state, told against the present one.

    Args:
        then: the state to come back to.
        now: the state that the course will be brought back into; an empty one for a new agent.
    """
    beliefs = {key: belief for key, belief in then.beliefs.items() if not key.startswith(OF_JOBS)}
    return GoalCourse(
        order={"goals": tuple(then.goals), "plans": tuple(then.plans), "beliefs": tuple(beliefs)},
        goals=_other(then.goals, now.goals),
        plans=_other(then.plans, now.plans),
        beliefs=_other(beliefs, now.beliefs),
        replans=dict(then.replans),
        settled=dict(then.settled),
        tried={key: tuple(strategies) for key, strategies in then.tried.items()},
        failures=tuple(then.failures),
        world=dict(then.world),
        **fields_of(then, *_AS_THEY_ARE),
    )


def bring_back(state: AgentState, course: GoalCourse) -> None:
    """Change a state so that it stands with its goals as the course says; only the fold calls this."""
    jobs = {key: belief for key, belief in state.beliefs.items() if key.startswith(OF_JOBS)}
    state.goals = _whole(course.order.get("goals", ()), course.goals, state.goals)
    state.plans = LateValues(_whole(course.order.get("plans", ()), course.plans, state.plans))
    state.beliefs = _whole(course.order.get("beliefs", ()), course.beliefs, state.beliefs) | jobs
    state.beliefs_end = first_end(state.beliefs)
    safety, ended = state.sandbox.autonomous, state.workflows
    for name in _AS_THEY_ARE:
        setattr(state, name, getattr(course, name))
    state.sandbox = SandboxSession(course.sandbox.cwd, course.sandbox.venv, safety)
    # Memory is not rewound, so a workflow that has ended there stays ended.
    state.workflows = tuple(workflow for workflow in course.workflows if workflow in ended)
    state.replans, state.settled = dict(course.replans), dict(course.settled)
    state.tried = {key: list(strategies) for key, strategies in course.tried.items()}
    state.failures, state.world = list(course.failures), dict(course.world)
    steps = {step.id for plan in state.plans.values() for step in plan.steps if not step.status.terminal}
    state.breakpoints = {step: event for step, event in state.breakpoints.items() if step in steps}
    state.breakpoint_hit = state.unsaved_step = ""
    state.returned, state.until, state.max_loops = None, None, None
    state.requests.clear()


def _other(then: Mapping[str, V], now: Mapping[str, V]) -> dict[str, V]:
    return {key: value for key, value in then.items() if key not in now or now[key] != value}


def _whole(order: tuple[str, ...], changed: Mapping[str, V], now: Mapping[str, V]) -> dict[str, V]:
    """The values of all keys; one that is neither changed nor there now is left out."""
    return {key: changed.get(key, now.get(key)) for key in order if key in changed or key in now}  # type: ignore[misc]


class Rewind(Command, do="rewind"):
    """Take the agent and its files back to an event of its stream; the journal continues."""

    to: int = Field(ge=1)
    """A version of the agent's stream."""
    scope: Literal["both", "state", "files"] = "both"
    paths: tuple[Annotated[str, Field(min_length=1, max_length=4_096)], ...] = Field((), max_length=1_000)
    """Of the files only these; none for all."""


class ForkAgent(Command, do="fork"):
    """Let a new agent begin where one stood after an event, with its own copy of the files as of then."""

    to: int = Field(ge=1)
    """A version of the agent's stream."""
    name: AgentId
    """The new agent's id."""


class AdoptFork(Command, do="adopt"):
    """Give an agent the files that a fork of it has now; its own history stays."""

    fork: AgentId


class Undo(Command, do="undo"):
    """Carry out what makes up for an earlier command; it was shown before."""

    of: str = Field(max_length=200)
    """Reference of the earlier command."""
    command: dict[str, Any]
    """What makes up for it, an ordinary command."""
    again: bool = False
    """Whether the earlier command is an undo itself."""


class PutBack(Command, do="put_back"):
    """Put steps of a plan, beliefs and the operator's turn back as they were; part of an undo."""

    goal: str = ""
    steps: tuple[PlanStep, ...] | None = None
    beliefs: tuple[Belief, ...] = ()
    forget: tuple[str, ...] = ()
    turn: Intervention | None = None


class RewindBegun(Payload, kind="rewind.begun", external=True):
    """A rewind is about to change files; this is durable before the first of them is touched."""

    to: int
    """The version of the stream that is come back to."""
    what: RewindScope
    snapshot: str
    """Whose files are brought back."""
    saved: str
    """Snapshot of the files as they were right before, by which the rewind is rewound."""
    paths: tuple[str, ...] = ()
    """The only paths that are brought back; empty for all."""
    adopted: str = ""
    """The fork whose files are taken over; empty where the agent's own earlier files are brought back."""


class RewindFailed(Payload, kind="rewind.failed", external=True):
    """A rewind was not carried out, or not to its end; it can be repeated."""

    reason: Reason
    partly: bool = False
    """Whether files may have been changed already."""


class RewindCutOff(Payload, kind="rewind.cut_off"):
    """The program ended while a rewind changed files; how far it came is not known."""

    to: int


class Rewound(Payload, kind="agent.rewound", external=True):
    """The agent stands again as it did after an earlier event; what happened since stays in the journal."""

    to: int
    what: RewindScope
    course: GoalCourse | None = None
    """How it stands with its goals from now on; None where only files were brought back."""
    snapshot: str = ""
    """Whose files it has; empty where none were to be changed."""
    changed: int = 0
    """Paths that were written, made, removed or given other permissions."""
    verified: bool | None = None
    """Whether a second look by content found nothing left to do; None where no files were brought back."""
    adopted: str = ""
    """The fork whose files were taken over; empty where the agent's own earlier files were brought back."""
    left: int = 0
    """Things that the snapshot does not hold and that were left as they are."""


class AgentForked(Payload, kind="agent.forked", external=True):
    """The agent begins where another one stood after one of its events, with its own copy of the files."""

    parent: str
    """Reference of that event, such as `pilot-1:31`."""
    course: GoalCourse
    snapshot: str = ""
    """Whose files it began with; empty where it began without any."""
    next_id: dict[str, int]
    """Last number of each kind of id that the other agent had given."""
    budget: SpendingLimits | None = None
    """What the operator had set for the other agent; the fork's own spending counts against it."""
