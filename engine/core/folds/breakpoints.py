"""Breakpoints in the fold: which of them an event comes to, by the state before it, the event, and the state.

Pure, and the same for what happens now, for a state made again from the journal, and for a dry run over what
has happened. A state keeps for which kinds of events its breakpoints wait, so an event that none waits for
costs one look into a dictionary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from engine.core import events as ev
from engine.core.breakpoints import BreakKind, Breakpoint, BreakSpec, Reached
from engine.core.budgets import Spent
from engine.core.conditions import BELIEF, glob_found_in, glob_matches, is_met, read_condition
from engine.core.goals import Goal, GoalStatus
from engine.core.journal import Event, canonical
from engine.core.plan import PlanStep
from engine.core.reasons import NONE, Reason
from engine.core.recovery import ActiveAction
from engine.core.state import AgentState, count_id, folds
from engine.core.text import clean_line

WHAT_LIMIT = 200
"""Characters of each text in what is said to have come."""
REACHED_KEPT = 20
"""Breakpoints that are told of at one hold."""
SUSPENDED = "suspended"
_STEP, _TOOL = BreakKind.STEP, BreakKind.TOOL
_STEP_ID, _GOAL_ID = re.compile(r"s\d+"), re.compile(r"g\d+")
_BELIEFS = (ev.BeliefAdded, ev.BeliefRemoved, ev.WorldPerceived, ev.JobStarted, ev.JobEnded)
_ENDS = (ev.ActionFinished, ev.ActionCancelled, ev.ActionOutcomeUnknown)
BEGINNINGS = (ev.ActionStarted, ev.DecisionAsked, ev.GoalAdopted)
"""What follows where a step has passed the gate."""
WAITED_FOR: dict[BreakKind, tuple[type[ev.Payload], ...]] = {
    BreakKind.STEP: BEGINNINGS,
    BreakKind.TOOL: (ev.ActionStarted,),
    BreakKind.GOAL: (ev.GoalAdopted, ev.GoalEnded),
    BreakKind.PLAN: (ev.PlanAdopted, ev.PlanRevised),
    BreakKind.BELIEF: _BELIEFS,
    BreakKind.ERROR: (ev.FailureRecorded,),
    BreakKind.RESULT: (ev.ActionFinished,),
    BreakKind.SPEND: (ev.ModelCalled,),
    BreakKind.EVERY: _ENDS,
    BreakKind.INTENTION: (ev.ReasonerAdvanced,),
}
"""The events that can come to a breakpoint of each kind."""


class StateBefore(NamedTuple):
    """What counts of the state before an event; a named tuple, because they are made by the thousand."""

    waiting: tuple[str, ...]
    """The breakpoints that wait for such an event."""
    action: ActiveAction | None = None
    passed: tuple[str, ...] = ()
    """Breakpoints on the step that has just passed the gate."""
    beliefs: Mapping[str, str | None] = MappingProxyType({})
    """Values of the beliefs that the event is about, as text."""
    goal: Goal | None = None
    spent: Mapping[str, Spent] = MappingProxyType({})
    suspended: frozenset[int] = frozenset()


# ------------------------------------------------------------------ with each event


def state_before(state: AgentState, event: ev.Payload) -> StateBefore | None:
    """What counts of the state before the event; None when no breakpoint waits for it."""
    waiting = state.watched.get(event.kind, ())
    if not waiting:
        return None
    kind = type(event)  # asking a payload whether it is of another class is slow
    if kind in _STEP_BEGUN:
        return StateBefore(
            waiting, passed=tuple(point.id for point, _ in _before(state, step_begun(state, event)))
        )
    if kind in _ENDS:
        return StateBefore(waiting, action=state.action)
    if kind in _BELIEFS:
        return StateBefore(waiting, beliefs={key: _believed(state, key) for key in _keys(event)})
    note = _NOTES.get(kind)
    return note(state, event, waiting) if note is not None else StateBefore(waiting)


_NOTES: dict[type[ev.Payload], Callable[[AgentState, Any, tuple[str, ...]], StateBefore]] = {
    ev.GoalEnded: lambda state, said, waiting: StateBefore(waiting, goal=state.goals.get(said.goal)),
    ev.ModelCalled: lambda state, said, waiting: StateBefore(waiting, spent=dict(state.spent)),
    ev.ReasonerAdvanced: lambda state, said, waiting: StateBefore(waiting, suspended=_suspended(state, said)),
}


def _suspended(state: AgentState, event: ev.ReasonerAdvanced) -> frozenset[int]:
    known = (state.intentions.get(view.id) for view in event.intentions)
    return frozenset(view.id for view in known if view is not None and view.state == SUSPENDED)


def step_begun(state: AgentState, event: ev.Payload) -> str:
    """The step that passes the gate with an event; empty for none, and for what the operator does."""
    begun = _STEP_BEGUN.get(type(event))
    return begun(state, event) if begun is not None else ""


_STEP_BEGUN: dict[type[ev.Payload], Callable[[AgentState, Any], str]] = {
    ev.ActionStarted: lambda state, said: state.action.step if state.action is not None else "",
    ev.DecisionAsked: lambda state, said: said.step,
    ev.GoalAdopted: lambda state, said: said.parent_step or "",
}


def match(state: AgentState, before: StateBefore, payload: ev.Payload, event: Event) -> None:
    """Count what the event came to, and leave in the state what the agent is to be held for."""
    for ident in before.waiting:
        point = state.points[ident]
        kind = point.spec.kind
        if kind is _TOOL or kind is _STEP:
            _count_passed(state, point, ident in before.passed)
            continue
        what = _CHANGES[kind](point.spec, before, state, payload, event)
        if not what or not _condition_holds(point.spec, state):
            continue
        state.came[ident] += 1
        if not fires(point.spec, state.came[ident]):
            continue
        if len(state.reached) < REACHED_KEPT and all(known.breakpoint != ident for known in state.reached):
            state.reached = (*state.reached, Reached(ident, what.cut(WHAT_LIMIT), event.ref))
        if point.spec.once:
            put_breakpoint(state, replace(point, enabled=False))


def fires(spec: BreakSpec, came: int) -> bool:
    """Whether a breakpoint holds when it comes for the n-th time."""
    return came % spec.after == 0 if spec.kind is BreakKind.EVERY else came >= spec.after


def due(state: AgentState, step: str) -> tuple[Reached, ...]:
    """The breakpoints right before a step of the agent's that would run now."""
    if not step or ev.ActionStarted.kind not in state.watched:
        return ()
    key, cause = _place(state, step)
    return tuple(
        Reached(point.id, what.cut(WHAT_LIMIT), cause)
        for point, what in _before(state, step)
        if point.at != key and fires(point.spec, state.came[point.id] + 1)
    )


def place_of(state: AgentState, step: str) -> str:
    """What names the standing before a step: its requested action, or the step itself."""
    return _place(state, step)[0]


def _place(state: AgentState, step: str) -> tuple[str, str]:
    action = state.action
    if action is not None and action.step == step:
        return action.id, action.event
    place = state.find_step(step)
    return step, place[1].event if place is not None else ""


def _before(state: AgentState, step: str) -> Iterable[tuple[Breakpoint, Reason]]:
    """Breakpoints that fit a step that stands at the gate, with what came."""
    if not step:
        return
    action = state.action if state.action is not None and state.action.step == step else None
    named = f"{action.tool}.{action.command}" if action is not None else ""
    plan_step: PlanStep | None = None
    for ident in state.watched.get(ev.ActionStarted.kind, ()):
        point = state.points[ident]
        if point.spec.kind is _TOOL:
            what = _fits_call(point.spec, action, named) if action is not None else NONE
        elif _STEP_ID.fullmatch(point.spec.subject) and point.spec.subject != step:
            continue
        else:
            plan_step = plan_step or (place[1] if (place := state.find_step(step)) is not None else None)
            what = _fits_step(point.spec, plan_step)
        if what and _condition_holds(point.spec, state):
            yield point, what


def _count_passed(state: AgentState, point: Breakpoint, has_passed: bool) -> None:
    """Where it held before this the hold has been counted; whatever begins ends the leave to pass."""
    if point.at:
        state.points[point.id] = replace(point, at="")
    elif has_passed:
        state.came[point.id] += 1


# ------------------------------------------------------------------ what changes breakpoints


@folds(ev.BreakpointAdded)
def _added(state: AgentState, payload: ev.BreakpointAdded, event: Event) -> None:
    count_id(state, payload.breakpoint)
    put_breakpoint(state, Breakpoint(payload.breakpoint, payload.spec, event=event.ref))


@folds(ev.BreakpointChanged)
def _changed(state: AgentState, payload: ev.BreakpointChanged, event: Event) -> None:
    point = state.points.get(payload.breakpoint)
    if point is None:
        return
    state.reached = tuple(known for known in state.reached if known.breakpoint != point.id)
    if payload.cleared:
        del state.points[point.id], state.came[point.id]
        _arrange(state)
    else:
        put_breakpoint(state, replace(point, enabled=payload.enabled, event=event.ref))


@folds(ev.BreakpointHit)
def _hit(state: AgentState, payload: ev.BreakpointHit, event: Event) -> None:
    if not payload.breakpoint:
        state.breakpoint_hit = payload.step
        return
    state.reached = tuple(point for point in state.reached if point.breakpoint != payload.breakpoint)
    point = state.points.get(payload.breakpoint)
    if point is None:
        return
    held = replace(point, stopped=point.stopped + 1, last=payload.came or event.ref)
    if payload.at:
        state.came[point.id] += 1
        held = replace(held, at=payload.at, enabled=point.enabled and not point.spec.once)
    put_breakpoint(state, held)


@folds(ev.BreakpointSet)
def _set(state: AgentState, payload: ev.BreakpointSet, event: Event) -> None:
    state.breakpoints[payload.step] = event.ref


@folds(ev.BreakpointCleared)
def _cleared(state: AgentState, payload: ev.BreakpointCleared, event: Event) -> None:
    state.breakpoints.pop(payload.step, None)


def put_breakpoint(state: AgentState, point: Breakpoint) -> None:
    """Keep a breakpoint as it is now."""
    known = state.points.get(point.id)
    state.points[point.id] = point
    state.came.setdefault(point.id, 0)
    if known is None or known.enabled != point.enabled:
        _arrange(state)


def _arrange(state: AgentState) -> None:
    """Sort the breakpoints that count by the events that they wait for."""
    state.watched = {}
    for point in state.points.values():
        for kind in WAITED_FOR[point.spec.kind] if point.enabled else ():
            state.watched[kind.kind] = (*state.watched.get(kind.kind, ()), point.id)


# ------------------------------------------------------------------ what fits


def _condition_holds(spec: BreakSpec, state: AgentState) -> bool:
    return not spec.when or is_met(read_condition(spec.when), lambda name: value_of(state, name))


def value_of(state: AgentState, name: str) -> Any:
    """The value of a name in a condition; None where there is none."""
    if name.startswith(BELIEF):
        key = name.removeprefix(BELIEF)
        held = state.beliefs.get(key)
        return held.value if held is not None else (True if key in state.held_beliefs else None)
    counter = _COUNTERS.get(name)
    return counter(state) if counter is not None else getattr(state, name)  # actions, loops, tokens, …


_COUNTERS: dict[str, Callable[[AgentState], Any]] = {
    "errors": lambda state: state.consecutive_errors,
    "failures": lambda state: sum(not failure.resolved for failure in state.failures),
    "goals": lambda state: len(state.open_goals),
    "usd": lambda state: state.cost_usd,
    "calls": lambda state: state.model_calls,
    "jobs": lambda state: len(state.running_jobs),
    "goal": lambda state: state.current_goal,
    "step": lambda state: state.step.id if state.step else "",
}


def _fits_call(spec: BreakSpec, action: ActiveAction, named: str) -> Reason:
    if not _is_call(spec.subject, action.command, named):
        return NONE
    for name, pattern in spec.args:
        if name not in action.args or not glob_matches(pattern, _text(action.args[name])):
            return NONE
    shown = ", ".join(f"{name} {_text(action.args[name])}" for name, _ in spec.args)
    return Reason("break.call", action=action.id, call=named, args=shown)


def _is_call(subject: str, command: str, named: str) -> bool:
    if "*" not in subject and "?" not in subject:
        return subject in (command, named)
    return glob_matches(subject, named) or glob_matches(subject, command)


def _fits_step(spec: BreakSpec, step: PlanStep | None) -> Reason:
    if step is None:
        return NONE
    if spec.subject != step.id and (
        _STEP_ID.fullmatch(spec.subject) or not glob_found_in(spec.subject, step.description)
    ):
        return NONE
    return Reason("break.step", step=step.id, description=step.description)


def _goal_fits(subject: str, goal: Goal | None, ident: str) -> bool:
    if not subject or subject == ident:
        return True
    return goal is not None and not _GOAL_ID.fullmatch(subject) and glob_found_in(subject, goal.text)


def _goal(spec: BreakSpec, before: StateBefore, state: AgentState, payload: Any, event: Event) -> Reason:
    ident: str = payload.goal
    goal = state.goals.get(ident)
    change = "adopted"
    if type(payload) is ev.GoalEnded:
        if before.goal is None or before.goal.status.terminal:
            return NONE
        change = GoalStatus(payload.status).value
    fits = spec.change in ("", change) or (spec.change == "ended" and change != "adopted")
    if not fits or not _goal_fits(spec.subject, goal, ident):
        return NONE
    return Reason("break.goal", goal=ident, change=change, text=goal.text if goal is not None else "")


def _plan(spec: BreakSpec, before: StateBefore, state: AgentState, payload: Any, event: Event) -> Reason:
    revised = type(payload) is ev.PlanRevised
    if revised and event.actor != "agent":
        return NONE
    change = "revised" if revised else "adopted"
    if spec.change not in ("", change) or not _goal_fits(
        spec.subject, state.goals.get(payload.goal), payload.goal
    ):
        return NONE
    about = payload.change if revised else Reason("break.steps", steps=len(payload.steps))
    return Reason("break.plan", plan=payload.plan, goal=payload.goal, change=change, about=about)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical(value)


def _believed(state: AgentState, key: str) -> str | None:
    held = state.beliefs.get(key)
    return _text(held.value) if held is not None else None


def _keys(event: Any) -> Iterable[str]:
    """Keys of the beliefs that an event is about."""
    if type(event) is ev.WorldPerceived:
        return event.facts
    return (f"job.{event.job}",) if type(event) in (ev.JobStarted, ev.JobEnded) else (event.key,)


def _belief(spec: BreakSpec, before: StateBefore, state: AgentState, payload: Any, event: Event) -> Reason:
    for key, old in before.beliefs.items():
        if not glob_matches(spec.subject, key) or (new := _believed(state, key)) == old:
            continue
        change = "added" if old is None else "removed" if new is None else "changed"
        if spec.change in ("", change) and _value_fits(spec.old, old) and _value_fits(spec.new, new):
            return Reason("break.belief", key=key, before=_shown(old), after=_shown(new))
    return NONE


def _value_fits(pattern: str, value: str | None) -> bool:
    if not pattern or (pattern == "none" and value is None):
        return True
    return value is not None and glob_matches(pattern, value)


def _shown(value: str | None) -> str:
    return "none" if value is None else clean_line(value, limit=60)


def _error(spec: BreakSpec, before: StateBefore, state: AgentState, payload: Any, event: Event) -> Reason:
    if payload.escalated_from or not glob_matches(spec.subject or "*", payload.failure.value):
        return NONE
    return Reason("break.error", failure=payload.failure.value, message=payload.message)


def _result(spec: BreakSpec, before: StateBefore, state: AgentState, payload: Any, event: Event) -> Reason:
    action = before.action
    if action is None or not action.step:
        return NONE
    if spec.subject and not _is_call(spec.subject, action.command, f"{action.tool}.{action.command}"):
        return NONE
    if spec.exit is not None and payload.result.get("return_code") != spec.exit:
        return NONE
    if spec.text and not glob_found_in(spec.text, payload.summary):
        texts = (value for value in payload.result.values() if isinstance(value, str))
        if not any(glob_found_in(spec.text, text) for text in texts):
            return NONE
    about = {"action": action.id, "command": action.command, "summary": payload.summary}
    return Reason("break.result", **about, shown=spec.text or Reason("break.exit", status=spec.exit))


def _spend(spec: BreakSpec, before: StateBefore, state: AgentState, payload: Any, event: Event) -> Reason:
    then, now = (_taken(spec, state, spent) for spent in (before.spent, state.spent))
    limit = spec.usd if spec.usd is not None else (spec.tokens or 0)
    if not then < limit <= now:
        return NONE
    return Reason("break.usd" if spec.usd is not None else "break.tokens", amount=now, goal=spec.subject)


def _taken(spec: BreakSpec, state: AgentState, spent: Mapping[str, Spent]) -> float:
    """What models took for the goal and those below it, or in all."""
    counted = (
        taken
        for goal, taken in spent.items()
        if not spec.subject or any(entry.id == spec.subject for entry in state.lineage(goal))
    )
    return sum(entry.usd if spec.usd is not None else entry.tokens for entry in counted)


def _every(spec: BreakSpec, before: StateBefore, state: AgentState, payload: Any, event: Event) -> Reason:
    action = before.action
    if action is None or not action.step or not action.started:
        return NONE
    return Reason("break.every", actions=spec.after)


def _intention(spec: BreakSpec, before: StateBefore, state: AgentState, payload: Any, event: Event) -> Reason:
    changes = [(intention.intention, intention.change, intention.reason) for intention in payload.ended]
    changes += [
        (intention.id, SUSPENDED, intention.reason)
        for intention in payload.intentions
        if intention.state == SUSPENDED and intention.id not in before.suspended
    ]
    for number, change, reason in changes:
        if spec.change in ("", change) and spec.subject in ("", "*", str(number)):
            return Reason("break.intention", intention=number, change=change, why=reason)
    return NONE


_Change = Callable[[BreakSpec, StateBefore, AgentState, Any, Event], Reason]
_CHANGES: dict[BreakKind, _Change] = {
    BreakKind.GOAL: _goal,
    BreakKind.PLAN: _plan,
    BreakKind.BELIEF: _belief,
    BreakKind.ERROR: _error,
    BreakKind.RESULT: _result,
    BreakKind.SPEND: _spend,
    BreakKind.EVERY: _every,
    BreakKind.INTENTION: _intention,
}
"""What came when it fits, else no reason."""
