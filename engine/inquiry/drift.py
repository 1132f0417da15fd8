"""Whether an agent keeps to its plan: actions beside the accepted plan, revisions as differences.

A goal's accepted plan is the one that the operator accepted, else the one that was adopted for it; what is
decided for an open (abstract) step of it is part of it. Everything else that is put in later leaves it, and
the answer says by whom.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

from engine.core import events as ev
from engine.core.journal import Event
from engine.core.plan import PlanDifference, PlanStep, plan_difference
from engine.core.rewind import GoalCourse as Standing
from engine.core.thinking import DecisionKind
from engine.value import dataclass, field


class DeviationKind(StrEnum):
    """How an action stands to the plan."""

    ON_PLAN = "on plan"
    OFF_PLAN = "off plan"
    NO_LIVE_GOAL = "no live goal"
    """It serves a goal that is over, or none."""


@dataclass(frozen=True, slots=True)
class PlanDeviation:
    """One action beside the plan."""

    action: str
    kind: DeviationKind
    why: str
    call: str
    """Tool and command."""
    step: str
    goal: str
    ref: str
    """The event that requested it."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A plan as it was adopted, or changed later."""

    plan: str
    goal: str
    number: int
    """From 1; counts on over all plans of the goal."""
    change: str
    """What was done, in words; empty for the first."""
    by: str
    """Who: `agent`, `operator:NAME`."""
    ref: str
    steps: tuple[PlanStep, ...]
    difference: PlanDifference
    """From the revision before; everything is added in the first."""


@dataclass(slots=True)
class _Seen:
    """What is known while events go by."""

    live: set[str] = field(default_factory=set)
    accepted: dict[str, dict[str, PlanStep]] = field(default_factory=dict)
    """Goal to the steps of the plan that was accepted for it, and to what was decided for its open steps."""
    now: dict[str, PlanStep] = field(default_factory=dict)
    """Steps as they are, by id."""
    put_in: dict[str, str] = field(default_factory=dict)
    """Step that was not accepted to who put it in and why."""
    decided: set[str] = field(default_factory=set)
    """Events by which one call or goal was decided for an open step."""
    withdrawn: set[str] = field(default_factory=set)


def revisions(events: Iterable[Event], goal: str = "") -> tuple[Revision, ...]:
    """The revisions of an agent's plans, oldest first.

    Args:
        events: the agent's events in their order.
        goal: only those for this goal; all where it is empty.
    """
    revisions_: list[Revision] = []
    newest: dict[str, Revision] = {}
    for event in events:
        if event.kind not in (ev.PlanAdopted.kind, ev.PlanRevised.kind):
            continue
        payload = ev.payload_of(event)
        if not isinstance(payload, ev.PlanAdopted | ev.PlanRevised) or goal not in ("", payload.goal):
            continue
        before = newest.get(payload.goal)
        change = payload.change if isinstance(payload, ev.PlanRevised) else ("planned anew" if before else "")
        old = before.steps if before else ()
        kept = old[: payload.kept] if isinstance(payload, ev.PlanRevised) else ()
        steps = (*kept, *payload.steps)
        changed = plan_difference(old, steps)
        number, by = before.number + 1 if before else 1, (event.actor, event.ref)
        revision = Revision(payload.plan, payload.goal, number, change, *by, steps, changed)
        newest[payload.goal] = revision
        revisions_.append(revision)
    return tuple(revisions_)


def plan_deviations(events: Iterable[Event]) -> tuple[PlanDeviation, ...]:
    """Every action of an agent beside the plan of its goal, in the order requested; not those withdrawn.

    Args:
        events: the agent's events in their order.
    """
    seen = _Seen()
    deviations = [course for event in events if event.kind in _KINDS for course in _go(seen, event)]
    return tuple(course for course in deviations if course.action not in seen.withdrawn)


_KINDS = frozenset(
    kind.kind
    for kind in (
        *(ev.GoalAdopted, ev.GoalChanged, ev.GoalEnded, ev.PlanAdopted, ev.PlanRevised, ev.PlanAccepted),
        *(ev.DecisionMade, ev.ActionRequested, ev.ActionWithdrawn, ev.Rewound, ev.AgentForked),
    )
)


def _go(seen: _Seen, event: Event) -> Iterator[PlanDeviation]:
    payload = ev.payload_of(event)
    match payload:
        case ev.GoalAdopted():
            seen.live.add(payload.goal)
        case ev.GoalEnded():
            seen.live.discard(payload.goal)
        case ev.GoalChanged():
            seen.accepted.pop(payload.goal, None)
        case ev.DecisionMade() if payload.decision.kind in (DecisionKind.CALL, DecisionKind.SUBGOAL):
            seen.decided.add(event.ref)
        case ev.PlanAdopted():
            seen.accepted[payload.goal] = {step.id: step for step in payload.steps}
            seen.now |= {step.id: step for step in payload.steps}
        case ev.PlanAccepted():
            seen.accepted[payload.goal] = {step.id: step for step in payload.steps}
            seen.now |= seen.accepted[payload.goal]
        case ev.PlanRevised():
            _revise(seen, payload, event)
        case ev.Rewound() | ev.AgentForked() if payload.course is not None:
            _bring_back(seen, payload.course)
        case ev.ActionWithdrawn():
            seen.withdrawn.add(payload.action)
        case ev.ActionRequested():
            kind, why = _course(seen, payload, event)
            call = f"{payload.tool}.{payload.command}"
            yield PlanDeviation(payload.action, kind, why, call, payload.step, payload.goal, event.ref)


def _bring_back(seen: _Seen, course: Standing) -> None:
    """What was open and accepted at the event that is come back to is so again."""
    goals, plans = course.order.get("goals", ()), course.order.get("plans", ())
    changed = course.goals
    over = {goal for goal, was in changed.items() if was.status.terminal}
    seen.live = {goal for goal in goals if goal not in over and (goal in changed or goal in seen.live)}
    for goal, plan in course.plans.items():
        steps = {step.id: step for step in plan.steps}
        seen.now |= steps
        seen.accepted.setdefault(goal, steps)
    seen.accepted = {goal: steps for goal, steps in seen.accepted.items() if goal in plans}


def _revise(seen: _Seen, payload: ev.PlanRevised, event: Event) -> None:
    accepted = seen.accepted.setdefault(payload.goal, {})
    elaborates = not seen.decided.isdisjoint(event.causes)
    for step in payload.steps:
        if step.id in seen.now and _call(seen.now[step.id]) == _call(step):
            continue
        seen.now[step.id] = step
        if elaborates:
            accepted[step.id] = step
        else:
            who = "the operator" if event.actor.startswith("operator") else "decided anew"
            seen.put_in[step.id] = f"{who}: {payload.change}"


def _course(seen: _Seen, payload: ev.ActionRequested, event: Event) -> tuple[DeviationKind, str]:
    if not payload.step:
        who = "the operator's own call" if event.actor.startswith("operator") else f"a call of {event.actor}"
        return DeviationKind.OFF_PLAN, who
    if payload.goal not in seen.live:
        return DeviationKind.NO_LIVE_GOAL, f"{payload.goal or 'no goal'} is not being pursued"
    step, accepted = seen.now.get(payload.step), seen.accepted.get(payload.goal, {}).get(payload.step)
    if step is None:
        return DeviationKind.OFF_PLAN, f"no plan has {payload.step}"
    if accepted is None or _call(accepted) != _call(step):
        return DeviationKind.OFF_PLAN, seen.put_in.get(payload.step, "the plan was accepted without it")
    tool, command = ("mind", step.op.value) if not step.tool else (step.tool, step.command)
    if (payload.tool, payload.command) != (tool, command):
        return DeviationKind.OFF_PLAN, f"{payload.step} was to call {tool}.{command}"
    return DeviationKind.ON_PLAN, f"as {payload.step} of the plan says"


def _call(step: PlanStep) -> tuple[Any, ...]:
    return step.op, step.tool, step.command, step.args
