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
from engine.core.recovery import ActiveAction
from engine.core.state import AgentState, count_id, folds
from engine.core.text import clean_line

WHAT_LIMIT = 200
"""Characters of what is said to have come."""
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


def state_before(state: AgentState, said: ev.Payload) -> StateBefore | None:
    """What counts of the state before the event; None when no breakpoint waits for it."""
    waiting = state.watched.get(said.kind, ())
    if not waiting:
        return None
    kind = type(said)  # asking a payload whether it is of another class is slow
    if kind in _STEP_BEGUN:
        return StateBefore(
            waiting, passed=tuple(point.id for point, _ in _before(state, step_begun(state, said)))
        )
    if kind in _ENDS:
        return StateBefore(waiting, action=state.action)
    if kind in _BELIEFS:
        return StateBefore(waiting, beliefs={key: _believed(state, key) for key in _keys(said)})
    note = _NOTES.get(kind)
    return note(state, said, waiting) if note is not None else StateBefore(waiting)


_NOTES: dict[type[ev.Payload], Callable[[AgentState, Any, tuple[str, ...]], StateBefore]] = {
    ev.GoalEnded: lambda state, said, waiting: StateBefore(waiting, goal=state.goals.get(said.goal)),
    ev.ModelCalled: lambda state, said, waiting: StateBefore(waiting, spent=dict(state.spent)),
    ev.ReasonerAdvanced: lambda state, said, waiting: StateBefore(waiting, suspended=_suspended(state, said)),
}


def _suspended(state: AgentState, said: ev.ReasonerAdvanced) -> frozenset[int]:
    known = (state.intentions.get(view.id) for view in said.intentions)
    return frozenset(view.id for view in known if view is not None and view.state == SUSPENDED)


def step_begun(state: AgentState, said: ev.Payload) -> str:
    """The step that passes the gate with an event; empty for none, and for what the operator does."""
    begun = _STEP_BEGUN.get(type(said))
    return begun(state, said) if begun is not None else ""


_STEP_BEGUN: dict[type[ev.Payload], Callable[[AgentState, Any], str]] = {
    ev.ActionStarted: lambda state, said: state.action.step if state.action is not None else "",
    ev.DecisionAsked: lambda state, said: said.step,
    ev.GoalAdopted: lambda state, said: said.parent_step or "",
}


def match(state: AgentState, before: StateBefore, said: ev.Payload, event: Event) -> None:
    """Count what the event came to, and leave in the state what the agent is to be held for."""
    for ident in before.waiting:
        point = state.points[ident]
        kind = point.spec.kind
        if kind is _TOOL or kind is _STEP:
            _count_passed(state, point, ident in before.passed)
            continue
        words = _CHANGE_TEXTS[kind](point.spec, before, state, said, event)
        if not words or not _condition_holds(point.spec, state):
            continue
        state.came[ident] += 1
        if not fires(point.spec, state.came[ident]):
            continue
        if len(state.reached) < REACHED_KEPT and all(known.breakpoint != ident for known in state.reached):
            what = clean_line(words, limit=WHAT_LIMIT)
            state.reached = (*state.reached, Reached(ident, what, event.ref))
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
        Reached(point.id, clean_line(words, limit=WHAT_LIMIT), cause)
        for point, words in _before(state, step)
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


def _before(state: AgentState, step: str) -> Iterable[tuple[Breakpoint, str]]:
    """Breakpoints that fit a step that stands at the gate, with words about it."""
    if not step:
        return
    action = state.action if state.action is not None and state.action.step == step else None
    named = f"{action.tool}.{action.command}" if action is not None else ""
    plan_step: PlanStep | None = None
    for ident in state.watched.get(ev.ActionStarted.kind, ()):
        point = state.points[ident]
        if point.spec.kind is _TOOL:
            words = _fits_call(point.spec, action, named) if action is not None else ""
        elif _STEP_ID.fullmatch(point.spec.subject) and point.spec.subject != step:
            continue
        else:
            plan_step = plan_step or (place[1] if (place := state.find_step(step)) is not None else None)
            words = _fits_step(point.spec, plan_step)
        if words and _condition_holds(point.spec, state):
            yield point, words


def _count_passed(state: AgentState, point: Breakpoint, has_passed: bool) -> None:
    """Where it held before this the hold has been counted; whatever begins ends the leave to pass."""
    if point.at:
        state.points[point.id] = replace(point, at="")
    elif has_passed:
        state.came[point.id] += 1


# ------------------------------------------------------------------ what changes breakpoints


@folds(ev.BreakpointAdded)
def _added(state: AgentState, said: ev.BreakpointAdded, event: Event) -> None:
    count_id(state, said.breakpoint)
    put_breakpoint(state, Breakpoint(said.breakpoint, said.spec, event=event.ref))


@folds(ev.BreakpointChanged)
def _changed(state: AgentState, said: ev.BreakpointChanged, event: Event) -> None:
    point = state.points.get(said.breakpoint)
    if point is None:
        return
    state.reached = tuple(known for known in state.reached if known.breakpoint != point.id)
    if said.cleared:
        del state.points[point.id], state.came[point.id]
        _arrange(state)
    else:
        put_breakpoint(state, replace(point, enabled=said.enabled, event=event.ref))


@folds(ev.BreakpointHit)
def _hit(state: AgentState, said: ev.BreakpointHit, event: Event) -> None:
    if not said.breakpoint:
        state.breakpoint_hit = said.step
        return
    state.reached = tuple(point for point in state.reached if point.breakpoint != said.breakpoint)
    point = state.points.get(said.breakpoint)
    if point is None:
        return
    held = replace(point, stopped=point.stopped + 1, last=said.came or event.ref)
    if said.at:
        state.came[point.id] += 1
        held = replace(held, at=said.at, enabled=point.enabled and not point.spec.once)
    put_breakpoint(state, held)


@folds(ev.BreakpointSet)
def _set(state: AgentState, said: ev.BreakpointSet, event: Event) -> None:
    state.breakpoints[said.step] = event.ref


@folds(ev.BreakpointCleared)
def _cleared(state: AgentState, said: ev.BreakpointCleared, event: Event) -> None:
    state.breakpoints.pop(said.step, None)


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


def _fits_call(spec: BreakSpec, action: ActiveAction, named: str) -> str:
    if not _is_call(spec.subject, action.command, named):
        return ""
    for name, pattern in spec.args:
        if name not in action.args or not glob_matches(pattern, _text(action.args[name])):
            return ""
    shown = ", ".join(f"{name} {_text(action.args[name])}" for name, _ in spec.args)
    return f"before {action.id} {named}" + (f": {shown}" if shown else "")


def _is_call(subject: str, command: str, named: str) -> bool:
    if "*" not in subject and "?" not in subject:
        return subject in (command, named)
    return glob_matches(subject, named) or glob_matches(subject, command)


def _fits_step(spec: BreakSpec, step: PlanStep | None) -> str:
    if step is None:
        return ""
    if spec.subject != step.id and (
        _STEP_ID.fullmatch(spec.subject) or not glob_found_in(spec.subject, step.description)
    ):
        return ""
    return f"before {step.id} {step.description}"


def _goal_fits(subject: str, goal: Goal | None, ident: str) -> bool:
    if not subject or subject == ident:
        return True
    return goal is not None and not _GOAL_ID.fullmatch(subject) and glob_found_in(subject, goal.text)


def _goal(spec: BreakSpec, before: StateBefore, state: AgentState, said: Any, event: Event) -> str:
    ident: str = said.goal
    goal = state.goals.get(ident)
    change = "adopted"
    if type(said) is ev.GoalEnded:
        if before.goal is None or before.goal.status.terminal:
            return ""
        change = GoalStatus(said.status).value
    fits = spec.change in ("", change) or (spec.change == "ended" and change != "adopted")
    if not fits or not _goal_fits(spec.subject, goal, ident):
        return ""
    return f"goal {ident} {change}" + (f": {goal.text}" if goal is not None else "")


def _plan(spec: BreakSpec, before: StateBefore, state: AgentState, said: Any, event: Event) -> str:
    revised = type(said) is ev.PlanRevised
    if revised and event.actor != "agent":
        return ""
    change = "revised" if revised else "adopted"
    if spec.change not in ("", change) or not _goal_fits(spec.subject, state.goals.get(said.goal), said.goal):
        return ""
    about = f": {said.change}" if revised else f": {len(said.steps)} steps"
    return f"plan {said.plan} of {said.goal} {change}{about}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical(value)


def _believed(state: AgentState, key: str) -> str | None:
    held = state.beliefs.get(key)
    return _text(held.value) if held is not None else None


def _keys(said: Any) -> Iterable[str]:
    """Keys of the beliefs that an event is about."""
    if type(said) is ev.WorldPerceived:
        return said.facts
    return (f"job.{said.job}",) if type(said) in (ev.JobStarted, ev.JobEnded) else (said.key,)


def _belief(spec: BreakSpec, before: StateBefore, state: AgentState, said: Any, event: Event) -> str:
    for key, old in before.beliefs.items():
        if not glob_matches(spec.subject, key) or (new := _believed(state, key)) == old:
            continue
        change = "added" if old is None else "removed" if new is None else "changed"
        if spec.change in ("", change) and _value_fits(spec.old, old) and _value_fits(spec.new, new):
            return f"belief {key} {_shown(old)} -> {_shown(new)}"
    return ""


def _value_fits(pattern: str, value: str | None) -> bool:
    if not pattern or (pattern == "none" and value is None):
        return True
    return value is not None and glob_matches(pattern, value)


def _shown(value: str | None) -> str:
    return "none" if value is None else clean_line(value, limit=60)


def _error(spec: BreakSpec, before: StateBefore, state: AgentState, said: Any, event: Event) -> str:
    if said.escalated_from or not glob_matches(spec.subject or "*", said.failure.value):
        return ""
    return f"{said.failure.value}: {said.message}"


def _result(spec: BreakSpec, before: StateBefore, state: AgentState, said: Any, event: Event) -> str:
    action = before.action
    if action is None or not action.step:
        return ""
    if spec.subject and not _is_call(spec.subject, action.command, f"{action.tool}.{action.command}"):
        return ""
    if spec.exit is not None and said.result.get("return_code") != spec.exit:
        return ""
    if spec.text and not glob_found_in(spec.text, said.summary):
        texts = (value for value in said.result.values() if isinstance(value, str))
        if not any(glob_found_in(spec.text, text) for text in texts):
            return ""
    return f"{action.id} {action.command} shows {spec.text or f'exit {spec.exit}'}: {said.summary}"


def _spend(spec: BreakSpec, before: StateBefore, state: AgentState, said: Any, event: Event) -> str:
    then, now = (_taken(spec, state, spent) for spent in (before.spent, state.spent))
    limit = spec.usd if spec.usd is not None else (spec.tokens or 0)
    if not then < limit <= now:
        return ""
    amount = f"${now:.4g}" if spec.usd is not None else f"{now:,.0f} tokens"
    return f"models have taken {amount}" + (f" for {spec.subject}" if spec.subject else "")


def _taken(spec: BreakSpec, state: AgentState, spent: Mapping[str, Spent]) -> float:
    """What models took for the goal and those below it, or in all."""
    counted = (
        taken
        for goal, taken in spent.items()
        if not spec.subject or any(entry.id == spec.subject for entry in state.lineage(goal))
    )
    return sum(entry.usd if spec.usd is not None else entry.tokens for entry in counted)


def _every(spec: BreakSpec, before: StateBefore, state: AgentState, said: Any, event: Event) -> str:
    action = before.action
    if action is None or not action.step or not action.started:
        return ""
    return f"{spec.after} actions since the last look"


def _intention(spec: BreakSpec, before: StateBefore, state: AgentState, said: Any, event: Event) -> str:
    changes = [(intention.intention, intention.change, intention.reason) for intention in said.ended]
    changes += [
        (intention.id, SUSPENDED, intention.reason)
        for intention in said.intentions
        if intention.state == SUSPENDED and intention.id not in before.suspended
    ]
    for number, change, reason in changes:
        if spec.change in ("", change) and spec.subject in ("", "*", str(number)):
            return f"intention {number} {change}" + (f": {reason}" if reason else "")
    return ""


_ChangeText = Callable[[BreakSpec, StateBefore, AgentState, Any, Event], str]
_CHANGE_TEXTS: dict[BreakKind, _ChangeText] = {
    BreakKind.GOAL: _goal,
    BreakKind.PLAN: _plan,
    BreakKind.BELIEF: _belief,
    BreakKind.ERROR: _error,
    BreakKind.RESULT: _result,
    BreakKind.SPEND: _spend,
    BreakKind.EVERY: _every,
    BreakKind.INTENTION: _intention,
}
"""Words about what came when it fits, else nothing."""
