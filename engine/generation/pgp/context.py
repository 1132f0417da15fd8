"""What a prompt may be made of, and the filters that decide what of it reaches the model (spec BDI §2.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from engine.bdi.syntax import Operation, Plan, Trigger
from engine.bdi.terms import Struct
from engine.generation.pgp.documentation import Documentation
from engine.generation.pgp.renaming import event_key

MISSING_PLAN = "missing_plan_for"
"""The belief that a goal has no plan; the reactive procedure's own, never shown to a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationContext:
    """The agent as a model may see it."""

    goal: Trigger
    """The event that plans are needed for, such as `+!reach(home)`."""
    beliefs: tuple[Struct, ...] = ()
    plans: tuple[Plan, ...] = ()
    known: Documentation = field(default_factory=Documentation)
    """Actions, what is admissible, meanings and remarks."""


@dataclass(frozen=True, slots=True)
class ContextFilter:
    """A named step that leaves something out of the context."""

    name: str
    apply: Callable[[GenerationContext], GenerationContext]


def filtered(context: GenerationContext, filters: Iterable[ContextFilter]) -> GenerationContext:
    """The context after all filters, the first one first."""
    for one in filters:
        context = one.apply(context)
    return context


def _without_meta_plans(context: GenerationContext) -> GenerationContext:
    """Failure plans mend what the model cannot see; of the plans for one event the first stands for all."""
    kept: dict[str, Plan] = {}
    for plan in context.plans:
        if not plan.trigger.is_goal or plan.trigger.operation is Operation.ADDED:
            kept.setdefault(event_key(plan.trigger), plan)
    beliefs = tuple(belief for belief in context.beliefs if belief.functor != MISSING_PLAN)
    return replace(context, plans=tuple(kept.values()), beliefs=beliefs)


META_PLANS = ContextFilter("meta plans", _without_meta_plans)
"""Leaves out failure plans (the meta plan is one), repeated events and `missing_plan_for`."""


def without_actions(*names: str) -> ContextFilter:
    """A filter that hides these actions, such as `print`."""

    def apply(context: GenerationContext) -> GenerationContext:
        kept = tuple(one for one in context.known.actions if one.name not in names)
        return replace(context, known=replace(context.known, actions=kept))

    return ContextFilter(f"without {', '.join(names)}", apply)
