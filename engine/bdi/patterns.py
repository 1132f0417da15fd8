"""Patterns of declarative goals: `{ begin bdg(g) } plans { end }` stands for these plans and some more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine.bdi.printer import text_of
from engine.bdi.rewriting import instantiated
from engine.bdi.syntax import Operation, Plan, Step, StepKind, TriggerKind, conjunction
from engine.bdi.terms import Struct
from engine.bdi.unification import unify

_PLANS: dict[str, tuple[str, str]] = {
    "dg": ("+!{0} : {0}. +!{0} : .intend({0}).", "+{0} <- .succeed_goal({0})."),
    "bdg": ("dg({0})", "-!{0} <- !{0}."),
    "ebdg": (
        "+!{0} : {0}.",
        "-!{0} <- !{0}. +{0} <- .abolish(p__f(_,{0})); .succeed_goal({0}). -{0} <- .abolish(p__f(_,{0})).",
    ),
    "bc": ("bdg({0})", "+!{0} <- !{0}."),
    "smc": ("bc({0})", "+{1} <- .fail_goal({0})."),
    "rc": ("bc({0})", "-{1} <- .succeed_goal({0})."),
    "omc": ("bc({0})", "+{1} <- .drop_intention({0}). -{2} <- .succeed_goal({0})."),
    "mg": ("bc({0})", "-{0} <- !{0}."),
    "sga": (
        "{0} : not f__l(_) & ({1}) <- !f__g({2}). {0} : f__l(_) & ({1}) <- +f__l({2}). "
        "+!f__g({2}) <- +f__l({2}); !{2}; -f__l({2}). -!f__g({2}) <- -f__l({2}). "
        "-f__l({2}) : f__l({2}) <- !f__g({2}).",
        "",
    ),
}
"""By name: the plans before, or the pattern inside, and the plans behind; `{0}` is the first argument."""
PATTERNS = frozenset(_PLANS)


def expanded(pattern: Struct, plans: list[Plan], read: Callable[[str], tuple[Plan, ...]]) -> list[Plan]:
    """The plans that a pattern makes of some.

    Args:
        pattern: its name and arguments.
        plans: those between `begin` and `end`.
        read: reads the text of plans.

    Raises:
        ValueError: it has too few arguments, or there is none of this name.
    """
    if pattern.functor not in PATTERNS:
        raise ValueError(f"one of the patterns {', '.join(sorted(PATTERNS))}")
    before, behind = _PLANS[pattern.functor]
    words = [arg if isinstance(arg, str) else text_of(arg) for arg in pattern.args]
    try:
        first, last = before.format(*words), behind.format(*words)
    except IndexError:
        raise ValueError(f"more arguments of '{pattern.functor}'") from None
    goal = pattern.args[0]
    made = list(read(last))
    if first[:1].isalpha():
        given = pattern.args[1] if pattern.functor in ("bc", "mg") and len(pattern.args) > 1 else None
        inner = given if isinstance(given, Struct) else Struct(before.partition("(")[0], (goal,))
        return expanded(inner, plans, read) + made
    if pattern.functor == "sga":
        return list(read(first)) + plans
    tried = 0
    inside = []
    for plan in plans:
        if plan.trigger.kind is TriggerKind.ACHIEVE and plan.trigger.operation is Operation.ADDED:
            literal = plan.trigger.literal
            if unify(instantiated(literal), instantiated(goal), []):
                tried += 1
                plan = _tried(plan, Struct("p__f", (tried, goal)), pattern.functor == "ebdg")
        inside.append(plan)
    return [*read(first), *inside, *made]


def _tried(plan: Plan, mark: Struct, once: bool) -> Plan:
    """The plan with a test of its goal at its end; with a mark that it was tried, and then not again."""
    position = plan.position
    body = (*plan.body, Step(StepKind.TEST, plan.trigger.literal, position))
    if not once:
        return replace(plan, body=body)
    context = conjunction([Struct("not", (mark,)), plan.context])
    return replace(plan, context=context, body=(Step(StepKind.ADD, mark, position), *body))
