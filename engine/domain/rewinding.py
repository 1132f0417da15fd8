"""What of an agent a rewind brings back, and what goes on as it is.

Brought back is what the agent wants, plans and believes, and how it stands with that: `Course`. Everything
else of an `AgentState` goes on: ids (none is given twice), what was spent, counts of what was really done,
jobs, breakpoints, what it learned about its tools and its thinking, and the sandbox's safety switch, which is
the operator's. Source: steering §3 idea 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from engine.domain.action import SandboxSession
from engine.domain.belief import Belief, first_end
from engine.domain.failure import Failure, Strategy
from engine.domain.goal import Goal
from engine.domain.parameters import Settled
from engine.domain.plan import Plan
from engine.domain.session import Handover
from engine.domain.state import AgentState, Intervention, OpenWorkflow, Retry
from engine.domain.thinking import RecentAction

V = TypeVar("V")

OF_JOBS = "job."
"""How keys of beliefs begin that follow the background jobs, which no rewind brings back."""


class RewindScope(StrEnum):
    """What a rewind is about."""

    BOTH = "both"
    STATE = "state"
    FILES = "files"


@dataclass(frozen=True, slots=True)
class Course:
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


def course_at(then: AgentState, now: AgentState) -> Course:
    """The course of a past state, told against the present one.

    Args:
        then: the state to come back to.
        now: the state that the course will be brought back into; an empty one for a new agent.
    """
    beliefs = {key: belief for key, belief in then.beliefs.items() if not key.startswith(OF_JOBS)}
    return Course(
        order={"goals": tuple(then.goals), "plans": tuple(then.plans), "beliefs": tuple(beliefs)},
        goals=_other(then.goals, now.goals),
        plans=_other(then.plans, now.plans),
        beliefs=_other(beliefs, now.beliefs),
        replans=dict(then.replans),
        settled=dict(then.settled),
        tried={key: tuple(strategies) for key, strategies in then.tried.items()},
        failures=tuple(then.failures),
        world=dict(then.world),
        **{name: getattr(then, name) for name in _AS_THEY_ARE},
    )


def bring_back(state: AgentState, course: Course) -> None:
    """Change a state so that it stands with its goals as the course says; only the fold calls this."""
    jobs = {key: belief for key, belief in state.beliefs.items() if key.startswith(OF_JOBS)}
    state.goals = _whole(course.order.get("goals", ()), course.goals, state.goals)
    state.plans = _whole(course.order.get("plans", ()), course.plans, state.plans)
    state.beliefs = _whole(course.order.get("beliefs", ()), course.beliefs, state.beliefs) | jobs
    state.beliefs_end = first_end(state.beliefs)
    safety, ended = state.sandbox.autonomous, state.workflows
    for name in _AS_THEY_ARE:
        setattr(state, name, getattr(course, name))
    state.sandbox = SandboxSession(course.sandbox.cwd, course.sandbox.venv, safety)
    # Memory is not rewound, so a workflow that has ended there stays ended.
    state.workflows = tuple(one for one in course.workflows if one in ended)
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
