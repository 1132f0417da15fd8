"""Breakpoints in the fold: which of them an event comes to, by the state before it, the event, and the state.

Pure, and the same for what happens now, for a state made again from the journal, and for a dry run over what
has happened. A state keeps for which kinds of events its breakpoints wait, so an event that none waits for
costs one look into a dictionary. Source: spec steering §3 idea 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from engine.domain.breakpoints import BEFORE_ACTING, BreakKind, Breakpoint, BreakSpec, Reached
from engine.domain.budgets import Spent
from engine.domain.conditions import BELIEF, is_met, read_condition
from engine.domain.globs import fits, holds
from engine.domain.goal import Goal, GoalStatus
from engine.domain.plan import PlanStep
from engine.domain.state import ActiveAction, AgentState
from engine.domain.text import clean_line
from engine.journal import events as ev
from engine.journal.event import Event, canonical

WHAT_LIMIT = 200
"""Characters of what is said to have come."""
REACHED_KEPT = 20
"""Breakpoints that are told of at one hold."""
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


@dataclass(frozen=True, slots=True)
class Noted:
    """What counts of the state before an event."""

    waiting: tuple[str, ...]
    """The breakpoints that wait for such an event."""
    action: ActiveAction | None = None
    passed: tuple[str, ...] = ()
    """Breakpoints on the step that has just passed the gate."""
    beliefs: Mapping[str, str | None] = field(default_factory=dict)
    """Values of the beliefs that the event is about, as text."""
    goal: Goal | None = None
    spent: Mapping[str, Spent] = field(default_factory=dict)
    suspended: frozenset[int] = frozenset()


# ------------------------------------------------------------------ with each event


def noted(state: AgentState, said: ev.Payload) -> Noted | None:
    """What counts of the state before the event; None when no breakpoint waits for it."""
    waiting = state.watched.get(said.kind, ())
    if not waiting:
        return None
    match said:
        case ev.ActionStarted() | ev.DecisionAsked() | ev.GoalAdopted():
            passed = tuple(one.id for one, _ in _before(state, step_begun(state, said)))
            return Noted(waiting, passed=passed)
        case ev.GoalEnded():
            return Noted(waiting, goal=state.goals.get(said.goal))
        case ev.ActionFinished() | ev.ActionCancelled() | ev.ActionOutcomeUnknown():
            return Noted(waiting, action=state.action)
        case ev.ModelCalled():
            return Noted(waiting, spent=dict(state.spent))
        case ev.ReasonerAdvanced():
            known = (state.intentions.get(one.id) for one in said.intentions)
            return Noted(waiting, suspended=frozenset(one.id for one in known if one and _is_suspended(one)))
    return Noted(waiting, beliefs={key: _believed(state, key) for key in _keys(said)})


def step_begun(state: AgentState, said: ev.Payload) -> str:
    """The step that passes the gate with an event; empty for none, and for what the operator does."""
    match said:
        case ev.ActionStarted():
            return state.action.step if state.action is not None else ""
        case ev.DecisionAsked():
            return said.step
        case ev.GoalAdopted():
            return said.parent_step or ""
    return ""


def match(state: AgentState, before: Noted, said: ev.Payload, event: Event) -> None:
    """Count what the event came to, and leave in the state what the agent is to be held for."""
    for ident in before.waiting:
        one = state.points[ident]
        if one.spec.kind in BEFORE_ACTING:
            _count_passed(state, one, ident in before.passed)
            continue
        words = _TOLD[one.spec.kind](one.spec, before, state, said, event)
        if not words or not _condition_holds(one.spec, state):
            continue
        one = replace(one, matched=one.matched + 1)
        state.points[ident] = one
        if not fires(one.spec, one.matched):
            continue
        if len(state.reached) < REACHED_KEPT and all(known.breakpoint != ident for known in state.reached):
            what = clean_line(words, limit=WHAT_LIMIT)
            state.reached = (*state.reached, Reached(ident, what, event.ref))
        if one.spec.once:
            put(state, replace(one, enabled=False))


def fires(spec: BreakSpec, matched: int) -> bool:
    """Whether a breakpoint holds when it comes for the n-th time."""
    return matched % spec.after == 0 if spec.kind is BreakKind.EVERY else matched >= spec.after


def due(state: AgentState, step: str) -> tuple[Reached, ...]:
    """The breakpoints right before a step of the agent's that would run now."""
    key, cause = _place(state, step)
    return tuple(
        Reached(one.id, clean_line(words, limit=WHAT_LIMIT), cause)
        for one, words in _before(state, step)
        if one.at != key and fires(one.spec, one.matched + 1)
    )


def place_of(state: AgentState, step: str) -> str:
    """What names the standing before a step: its requested action, or the step itself."""
    return _place(state, step)[0]


def _place(state: AgentState, step: str) -> tuple[str, str]:
    action = state.action
    if action is not None and action.step == step:
        return action.id, action.event
    found = state.find_step(step)
    return step, found[1].event if found is not None else ""


def _before(state: AgentState, step: str) -> Iterable[tuple[Breakpoint, str]]:
    """Breakpoints that fit a step that stands at the gate, with words about it."""
    if not step:
        return
    action = state.action if state.action is not None and state.action.step == step else None
    found = state.find_step(step)
    for ident in state.watched.get(ev.ActionStarted.kind, ()):
        one = state.points[ident]
        words = _fits_call(one.spec, action) or _fits_step(one.spec, found[1] if found else None)
        if words and _condition_holds(one.spec, state):
            yield one, words


def _count_passed(state: AgentState, one: Breakpoint, has_passed: bool) -> None:
    """Where it held before this the hold has been counted; whatever begins ends the leave to pass."""
    counted = has_passed and not one.at
    if counted or one.at:
        state.points[one.id] = replace(one, matched=one.matched + counted, at="")


# ------------------------------------------------------------------ what changes breakpoints


def _added(state: AgentState, said: ev.BreakpointAdded, event: Event) -> None:
    number = said.breakpoint[1:]
    if number.isdigit():
        state.next_id["b"] = max(state.next_id.get("b", 0), int(number))
    put(state, Breakpoint(said.breakpoint, said.spec, event=event.ref))


def _changed(state: AgentState, said: ev.BreakpointChanged, event: Event) -> None:
    one = state.points.get(said.breakpoint)
    if one is None:
        return
    state.reached = tuple(known for known in state.reached if known.breakpoint != one.id)
    if said.cleared:
        del state.points[one.id]
        _arrange(state)
    else:
        put(state, replace(one, enabled=said.enabled, event=event.ref))


def _hit(state: AgentState, said: ev.BreakpointHit, event: Event) -> None:
    if not said.breakpoint:
        state.breakpoint_hit = said.step
        return
    state.reached = tuple(one for one in state.reached if one.breakpoint != said.breakpoint)
    one = state.points.get(said.breakpoint)
    if one is None:
        return
    held = replace(one, stopped=one.stopped + 1, last=said.came or event.ref)
    if said.at:
        held = replace(held, at=said.at, matched=one.matched + 1, enabled=one.enabled and not one.spec.once)
    put(state, held)


def _set(state: AgentState, said: ev.BreakpointSet, event: Event) -> None:
    state.breakpoints[said.step] = event.ref


def _cleared(state: AgentState, said: ev.BreakpointCleared, event: Event) -> None:
    state.breakpoints.pop(said.step, None)


def put(state: AgentState, one: Breakpoint) -> None:
    """Keep a breakpoint as it is now."""
    known = state.points.get(one.id)
    state.points[one.id] = one
    if known is None or known.enabled != one.enabled:
        _arrange(state)


def _arrange(state: AgentState) -> None:
    """Sort the breakpoints that count by the events that they wait for."""
    state.watched = {}
    for one in state.points.values():
        for kind in WAITED_FOR[one.spec.kind] if one.enabled else ():
            state.watched[kind.kind] = (*state.watched.get(kind.kind, ()), one.id)


HANDLERS: dict[type[ev.Payload], Callable[[AgentState, Any, Event], None]] = {
    ev.BreakpointAdded: _added,
    ev.BreakpointChanged: _changed,
    ev.BreakpointHit: _hit,
    ev.BreakpointSet: _set,
    ev.BreakpointCleared: _cleared,
}


# ------------------------------------------------------------------ what fits


def _condition_holds(spec: BreakSpec, state: AgentState) -> bool:
    return not spec.when or is_met(read_condition(spec.when), lambda name: value_of(state, name))


def value_of(state: AgentState, name: str) -> Any:
    """The value of a name in a condition; None where there is none."""
    if name.startswith(BELIEF):
        key = name.removeprefix(BELIEF)
        held = state.beliefs.get(key)
        return held.value if held is not None else (True if key in state.held_beliefs else None)
    match name:
        case "errors":
            return state.consecutive_errors
        case "failures":
            return sum(not failure.resolved for failure in state.failures)
        case "goals":
            return len(state.open_goals)
        case "usd":
            return state.cost_usd
        case "calls":
            return state.model_calls
        case "jobs":
            return len(state.running_jobs)
        case "goal":
            return state.current_goal
        case "step":
            return state.step.id if state.step else ""
    return getattr(state, name)  # actions, failed_actions, loops, tokens


def _fits_call(spec: BreakSpec, action: ActiveAction | None) -> str:
    if spec.kind is not BreakKind.TOOL or action is None or not _is_call(spec.subject, action):
        return ""
    for name, pattern in spec.args:
        if name not in action.args or not fits(pattern, _text(action.args[name])):
            return ""
    shown = ", ".join(f"{name} {_text(action.args[name])}" for name, _ in spec.args)
    return f"before {action.id} {action.tool}.{action.command}" + (f": {shown}" if shown else "")


def _is_call(subject: str, action: ActiveAction) -> bool:
    return fits(subject, f"{action.tool}.{action.command}") or fits(subject, action.command)


def _fits_step(spec: BreakSpec, step: PlanStep | None) -> str:
    if spec.kind is not BreakKind.STEP or step is None:
        return ""
    named = re.fullmatch(r"s\d+", spec.subject)
    if not (spec.subject == step.id if named else holds(spec.subject, step.description)):
        return ""
    return f"before {step.id} {step.description}"


def _goal_fits(subject: str, goal: Goal | None, ident: str) -> bool:
    if not subject or subject == ident:
        return True
    named = re.fullmatch(r"g\d+", subject)
    return not named and goal is not None and holds(subject, goal.text)


def _goal(spec: BreakSpec, before: Noted, state: AgentState, said: ev.Payload, event: Event) -> str:
    assert isinstance(said, ev.GoalAdopted | ev.GoalEnded)
    goal = state.goals.get(said.goal)
    change = "adopted"
    if isinstance(said, ev.GoalEnded):
        if before.goal is None or before.goal.status.terminal:
            return ""
        change = GoalStatus(said.status).value
    wanted = spec.change in ("", change) or (spec.change == "ended" and change != "adopted")
    if not wanted or not _goal_fits(spec.subject, goal, said.goal):
        return ""
    return f"goal {said.goal} {change}" + (f": {goal.text}" if goal is not None else "")


def _plan(spec: BreakSpec, before: Noted, state: AgentState, said: ev.Payload, event: Event) -> str:
    assert isinstance(said, ev.PlanAdopted | ev.PlanRevised)
    revised = isinstance(said, ev.PlanRevised)
    if revised and event.actor != "agent":
        return ""
    change = "revised" if revised else "adopted"
    if spec.change not in ("", change) or not _goal_fits(spec.subject, state.goals.get(said.goal), said.goal):
        return ""
    about = f": {said.change}" if isinstance(said, ev.PlanRevised) else f": {len(said.steps)} steps"
    return f"plan {said.plan} of {said.goal} {change}{about}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical(value)


def _believed(state: AgentState, key: str) -> str | None:
    held = state.beliefs.get(key)
    return _text(held.value) if held is not None else None


def _keys(said: ev.Payload) -> Iterable[str]:
    match said:
        case ev.BeliefAdded() | ev.BeliefRemoved():
            return (said.key,)
        case ev.WorldPerceived():
            return said.facts
        case ev.JobStarted() | ev.JobEnded():
            return (f"job.{said.job}",)
    return ()


def _belief(spec: BreakSpec, before: Noted, state: AgentState, said: ev.Payload, event: Event) -> str:
    for key, old in before.beliefs.items():
        if not fits(spec.subject, key) or (new := _believed(state, key)) == old:
            continue
        change = "added" if old is None else "removed" if new is None else "changed"
        if spec.change in ("", change) and _value_fits(spec.old, old) and _value_fits(spec.new, new):
            return f"belief {key} {_shown(old)} -> {_shown(new)}"
    return ""


def _value_fits(pattern: str, value: str | None) -> bool:
    if not pattern or (pattern == "none" and value is None):
        return True
    return value is not None and fits(pattern, value)


def _shown(value: str | None) -> str:
    return "none" if value is None else clean_line(value, limit=60)


def _error(spec: BreakSpec, before: Noted, state: AgentState, said: ev.Payload, event: Event) -> str:
    assert isinstance(said, ev.FailureRecorded)
    if said.escalated_from or not fits(spec.subject or "*", said.failure.value):
        return ""
    return f"{said.failure.value}: {said.message}"


def _result(spec: BreakSpec, before: Noted, state: AgentState, said: ev.Payload, event: Event) -> str:
    assert isinstance(said, ev.ActionFinished)
    action = before.action
    if action is None or not action.step or (spec.subject and not _is_call(spec.subject, action)):
        return ""
    if spec.exit is not None and said.result.get("return_code") != spec.exit:
        return ""
    texts = (said.summary, *(value for value in said.result.values() if isinstance(value, str)))
    if spec.text and not any(holds(spec.text, text) for text in texts):
        return ""
    return f"{action.id} {action.command} shows {spec.text or f'exit {spec.exit}'}: {said.summary}"


def _spend(spec: BreakSpec, before: Noted, state: AgentState, said: ev.Payload, event: Event) -> str:
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
        if not spec.subject or any(one.id == spec.subject for one in state.lineage(goal))
    )
    return sum(one.usd if spec.usd is not None else one.tokens for one in counted)


def _every(spec: BreakSpec, before: Noted, state: AgentState, said: ev.Payload, event: Event) -> str:
    action = before.action
    if action is None or not action.step or not action.started:
        return ""
    return f"{spec.after} actions since the last look"


def _is_suspended(view: Any) -> bool:
    return bool(view.state == "suspended")


def _intention(spec: BreakSpec, before: Noted, state: AgentState, said: ev.Payload, event: Event) -> str:
    assert isinstance(said, ev.ReasonerAdvanced)
    changes = [(one.intention, one.change, one.reason) for one in said.ended]
    changes += [
        (one.id, "suspended", one.reason)
        for one in said.intentions
        if _is_suspended(one) and one.id not in before.suspended
    ]
    for number, change, reason in changes:
        if spec.change in ("", change) and spec.subject in ("", "*", str(number)):
            return f"intention {number} {change}" + (f": {reason}" if reason else "")
    return ""


_Told = Callable[[BreakSpec, Noted, AgentState, ev.Payload, Event], str]
_TOLD: dict[BreakKind, _Told] = {
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
