"""Plans that can never be carried out to their end, as their goals wait for each other in a circle.

What corresponds in rules to steps that wait for each other in a list of actions. Recursion is no circle
as long as there is a plan in which it can end, whatever its conditions: which one fits is known only later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from engine.bdi.printing import text_of, trigger_text
from engine.bdi.syntax import Operation, Plan, Step, StepKind, Trigger, TriggerKind
from engine.bdi.terms import Cell, Struct, Term, rewrite
from engine.bdi.unification import unify


def matches(trigger: Trigger, event: Trigger) -> bool:
    """Whether a plan with this trigger reacts to the event, whatever its context."""
    if (trigger.operation, trigger.kind) != (event.operation, event.kind):
        return False
    return unify(_with_cells(trigger.literal), _with_cells(event.literal), [])


def _with_cells(term: Term) -> Term:
    cells: dict[str, Term] = {}
    return rewrite(term, lambda one: cells.setdefault(text_of(one), Cell()))


def endless(plans: Sequence[Plan], known: Collection[Trigger]) -> Mapping[int, str]:
    """Why a plan can never come to its end, by its place among the plans; without those that can.

    A goal that no plan here is for may get one, so it is taken to end; so is one that the agent has a plan
    for, or a plan for its failure.

    Args:
        plans: those of one answer.
        known: triggers of the plans that the agent has.
    """
    waits = [_waits(plan, plans, known) for plan in plans]
    ending: set[int] = set()
    while more := {
        place
        for place, goals in enumerate(waits)
        if place not in ending and all(ending.intersection(able) for _, able in goals)
    }:
        ending |= more
    return {place: _circle(place, plans, waits, ending) for place in range(len(plans)) if place not in ending}


_Waits = list[tuple[Trigger, list[int]]]
"""The goals that a plan waits for, each with the places of the plans that are for it."""


def _waits(plan: Plan, plans: Sequence[Plan], known: Collection[Trigger]) -> _Waits:
    found: _Waits = []
    for item in plan.body:
        if (
            not isinstance(item, Step)
            or item.kind is not StepKind.ACHIEVE
            or not isinstance(item.term, Struct)
        ):
            continue
        goal = Trigger(Operation.ADDED, TriggerKind.ACHIEVE, item.term)
        failed = Trigger(Operation.REMOVED, TriggerKind.ACHIEVE, item.term)
        able = [place for place, one in enumerate(plans) if matches(one.trigger, goal)]
        if able and not any(matches(one, goal) or matches(one, failed) for one in known):
            found.append((goal, able))
    return found


def _circle(place: int, plans: Sequence[Plan], waits: Sequence[_Waits], ending: Collection[int]) -> str:
    """The goals that a plan waits for, up to where they begin again."""
    chain, seen = [trigger_text(plans[place].trigger)], set()
    while place not in seen:
        seen.add(place)
        goal, able = next(one for one in waits[place] if not set(one[1]) & set(ending))
        chain.append(trigger_text(goal))
        place = able[0]
    return f"it can never end, as its goals wait for each other in a circle: {' → '.join(chain)}"
