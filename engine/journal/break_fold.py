"""Breakpoints in the fold: which of them an event comes to, by the state before it, the event, and the state.

Pure, and the same for what happens now, for a state made again from the journal, and for a dry run over what
has happened. A state keeps for which kinds of events its breakpoints wait, so an event that none waits for
costs one look into a dictionary. Source: spec steering §3 idea 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

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
SUSPENDED = "suspended"
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


class Noted(NamedTuple):
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


def noted(state: AgentState, said: ev.Payload) -> Noted | None:
    """What counts of the state before the event; None when no breakpoint waits for it."""
    waiting = state.watched.get(said.kind, ())
    if not waiting:
        return None
    kind = type(said)  # asking a payload whether it is of another class is slow
    if kind in _STEP_BEGUN:
        return Noted(waiting, passed=tuple(one.id for one, _ in _before(state, step_begun(state, said))))
    if kind in _ENDS:
        return Noted(waiting, action=state.action)
    if kind in _BELIEFS:
        return Noted(waiting, beliefs={key: _believed(state, key) for key in _keys(said)})
    note = _NOTES.get(kind)
    return note(state, said, waiting) if note is not None else Noted(waiting)


_NOTES: dict[type[ev.Payload], Callable[[AgentState, Any, tuple[str, ...]], Noted]] = {
    ev.GoalEnded: lambda state, said, waiting: Noted(waiting, goal=state.goals.get(said.goal)),
    ev.ModelCalled: lambda state, said, waiting: Noted(waiting, spent=dict(state.spent)),
    ev.ReasonerAdvanced: lambda state, said, waiting: Noted(waiting, suspended=_suspended(state, said)),
}


def _suspended(state: AgentState, said: ev.ReasonerAdvanced) -> frozenset[int]:
    known = (state.intentions.get(one.id) for one in said.intentions)
    return frozenset(one.id for one in known if one is not None and one.state == SUSPENDED)


def step_begun(state: AgentState, said: ev.Payload) -> str:
    """The step that passes the gate with an event; empty for none, and for what the operator does."""
    begun = _STEP_BEGUN.get(type(said))
    return begun(state, said) if begun is not None else ""


_STEP_BEGUN: dict[type[ev.Payload], Callable[[AgentState, Any], str]] = {
    ev.ActionStarted: lambda state, said: state.action.step if state.action is not None else "",
    ev.DecisionAsked: lambda state, said: said.step,
    ev.GoalAdopted: lambda state, said: said.parent_step or "",
}


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
        state.came[ident] += 1
        if not fires(one.spec, state.came[ident]):
            continue
        if len(state.reached) < REACHED_KEPT and all(known.breakpoint != ident for known in state.reached):
            what = clean_line(words, limit=WHAT_LIMIT)
            state.reached = (*state.reached, Reached(ident, what, event.ref))
        if one.spec.once:
            put(state, replace(one, enabled=False))


def fires(spec: BreakSpec, came: int) -> bool:
    """Whether a breakpoint holds when it comes for the n-th time."""
    return came % spec.after == 0 if spec.kind is BreakKind.EVERY else came >= spec.after


def due(state: AgentState, step: str) -> tuple[Reached, ...]:
    """The breakpoints right before a step of the agent's that would run now."""
    if not step or ev.ActionStarted.kind not in state.watched:
        return ()
    key, cause = _place(state, step)
    return tuple(
        Reached(one.id, clean_line(words, limit=WHAT_LIMIT), cause)
        for one, words in _before(state, step)
        if one.at != key and fires(one.spec, state.came[one.id] + 1)
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
    named = f"{action.tool}.{action.command}" if action is not None else ""
    found: PlanStep | None = None
    for ident in state.watched.get(ev.ActionStarted.kind, ()):
        one = state.points[ident]
        if one.spec.kind is BreakKind.TOOL:
            words = _fits_call(one.spec, action, named) if action is not None else ""
        elif _STEP_ID.fullmatch(one.spec.subject) and one.spec.subject != step:
            continue
        else:
            found = found or _step_of(state, step)
            words = _fits_step(one.spec, found)
        if words and _condition_holds(one.spec, state):
            yield one, words


def _step_of(state: AgentState, step: str) -> PlanStep | None:
    found = state.find_step(step)
    return found[1] if found is not None else None


def _count_passed(state: AgentState, one: Breakpoint, has_passed: bool) -> None:
    """Where it held before this the hold has been counted; whatever begins ends the leave to pass."""
    if one.at:
        state.points[one.id] = replace(one, at="")
    elif has_passed:
        state.came[one.id] += 1


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
        del state.points[one.id], state.came[one.id]
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
        state.came[one.id] += 1
        held = replace(held, at=said.at, enabled=one.enabled and not one.spec.once)
    put(state, held)


def _set(state: AgentState, said: ev.BreakpointSet, event: Event) -> None:
    state.breakpoints[said.step] = event.ref


def _cleared(state: AgentState, said: ev.BreakpointCleared, event: Event) -> None:
    state.breakpoints.pop(said.step, None)


def put(state: AgentState, one: Breakpoint) -> None:
    """Keep a breakpoint as it is now."""
    known = state.points.get(one.id)
    state.points[one.id] = one
    state.came.setdefault(one.id, 0)
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


def _fits_call(spec: BreakSpec, action: ActiveAction, named: str) -> str:
    if not _is_call(spec.subject, action.command, named):
        return ""
    for name, pattern in spec.args:
        if name not in action.args or not fits(pattern, _text(action.args[name])):
            return ""
    shown = ", ".join(f"{name} {_text(action.args[name])}" for name, _ in spec.args)
    return f"before {action.id} {named}" + (f": {shown}" if shown else "")


def _is_call(subject: str, command: str, named: str) -> bool:
    if "*" not in subject and "?" not in subject:
        return subject in (command, named)
    return fits(subject, named) or fits(subject, command)


def _fits_step(spec: BreakSpec, step: PlanStep | None) -> str:
    if step is None:
        return ""
    if spec.subject != step.id and (
        _STEP_ID.fullmatch(spec.subject) or not holds(spec.subject, step.description)
    ):
        return ""
    return f"before {step.id} {step.description}"


def _goal_fits(subject: str, goal: Goal | None, ident: str) -> bool:
    if not subject or subject == ident:
        return True
    return goal is not None and not _GOAL_ID.fullmatch(subject) and holds(subject, goal.text)


def _goal(spec: BreakSpec, before: Noted, state: AgentState, said: Any, event: Event) -> str:
    ident: str = said.goal
    goal = state.goals.get(ident)
    change = "adopted"
    if type(said) is ev.GoalEnded:
        if before.goal is None or before.goal.status.terminal:
            return ""
        change = GoalStatus(said.status).value
    wanted = spec.change in ("", change) or (spec.change == "ended" and change != "adopted")
    if not wanted or not _goal_fits(spec.subject, goal, ident):
        return ""
    return f"goal {ident} {change}" + (f": {goal.text}" if goal is not None else "")


def _plan(spec: BreakSpec, before: Noted, state: AgentState, said: Any, event: Event) -> str:
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


def _belief(spec: BreakSpec, before: Noted, state: AgentState, said: Any, event: Event) -> str:
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


def _error(spec: BreakSpec, before: Noted, state: AgentState, said: Any, event: Event) -> str:
    if said.escalated_from or not fits(spec.subject or "*", said.failure.value):
        return ""
    return f"{said.failure.value}: {said.message}"


def _result(spec: BreakSpec, before: Noted, state: AgentState, said: Any, event: Event) -> str:
    action = before.action
    if action is None or not action.step:
        return ""
    if spec.subject and not _is_call(spec.subject, action.command, f"{action.tool}.{action.command}"):
        return ""
    if spec.exit is not None and said.result.get("return_code") != spec.exit:
        return ""
    if spec.text and not holds(spec.text, said.summary):
        texts = (value for value in said.result.values() if isinstance(value, str))
        if not any(holds(spec.text, text) for text in texts):
            return ""
    return f"{action.id} {action.command} shows {spec.text or f'exit {spec.exit}'}: {said.summary}"


def _spend(spec: BreakSpec, before: Noted, state: AgentState, said: Any, event: Event) -> str:
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


def _every(spec: BreakSpec, before: Noted, state: AgentState, said: Any, event: Event) -> str:
    action = before.action
    if action is None or not action.step or not action.started:
        return ""
    return f"{spec.after} actions since the last look"


def _intention(spec: BreakSpec, before: Noted, state: AgentState, said: Any, event: Event) -> str:
    changes = [(one.intention, one.change, one.reason) for one in said.ended]
    changes += [
        (one.id, SUSPENDED, one.reason)
        for one in said.intentions
        if one.state == SUSPENDED and one.id not in before.suspended
    ]
    for number, change, reason in changes:
        if spec.change in ("", change) and spec.subject in ("", "*", str(number)):
            return f"intention {number} {change}" + (f": {reason}" if reason else "")
    return ""


_Told = Callable[[BreakSpec, Noted, AgentState, Any, Event], str]
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
