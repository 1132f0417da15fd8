"""Generated plans after they were installed: where they came from, what of them has worked, when they go.

A partial plan is a plan with its provenance and the steps of it that succeeded at least once. Tracking
is metadata: the whole body always runs. A failing step removes its plan, never a plan written by hand
(spec BDI §2.5; §7 42-45).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.bdi.printing import plan_text, trigger_text
from engine.bdi.syntax import Plan
from engine.bdi.terms import atom
from engine.generation.pgp.renaming import event_name, same_guard
from engine.generation.pgp.validation import DEFAULT_LIMITS, GenerationLimits

LABEL = "generated_"
"""Generated plans are labelled with this and a number."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """How a plan came to be."""

    goal: str
    model: str
    prompt_id: str
    time: str
    """When the answer came, ISO 8601."""
    config: Mapping[str, str | float] = field(default_factory=dict)
    """The parameters without the token."""
    depth: int = 0
    """Generated plans above it whose new goals led to it."""

    def to_json(self) -> dict[str, object]:
        """A mapping ready for JSON, as `Plan.provenance` keeps it."""
        return {
            "goal": self.goal,
            "model": self.model,
            "prompt_id": self.prompt_id,
            "time": self.time,
            "config": dict(self.config),
            "depth": self.depth,
        }


@dataclass(frozen=True, slots=True)
class PartialPlan:
    """A generated plan and how far it has proved itself."""

    plan: Plan
    provenance: Provenance
    succeeded: frozenset[int] = frozenset()
    """Places in the body of the steps that succeeded at least once."""
    verified: bool = False
    """Whether the whole body succeeded once; that the goal was reached it does not say."""

    @property
    def label(self) -> str:
        """The label's name, by which the plan is known."""
        return self.plan.name

    def text(self) -> str:
        """The plan as `.asl`, its provenance in comments before it."""
        facts = self.provenance
        state = (
            "verified" if self.verified else f"{len(self.succeeded)} of {len(self.plan.body)} steps worked"
        )
        heads = (
            f"// generated for {facts.goal} by {facts.model}, {facts.time}",
            f"// {facts.prompt_id}; {state}",
        )
        return "\n".join([*(" ".join(head.split()) for head in heads), plan_text(self.plan)])


@dataclass(frozen=True, slots=True)
class Refusal:
    """A plan that was not installed, and why."""

    plan: Plan
    reason: str


@dataclass(frozen=True, slots=True)
class GeneratedPlans:
    """The generated plans of one agent, the newest first."""

    plans: tuple[PartialPlan, ...] = ()
    count: int = 0
    """The highest number that a label has had."""

    def of(self, plan: Plan) -> PartialPlan | None:
        """What is known of a generated plan; None for a plan written by hand."""
        return next((one for one in self.plans if one.plan == plan), None)

    def labelled(self, label: str) -> PartialPlan | None:
        """The generated plan with this label."""
        return next((one for one in self.plans if one.label == label), None)

    def with_step_succeeded(self, plan: Plan, place: int) -> GeneratedPlans:
        """After a step of a plan succeeded; places count from 0."""
        return self._changed(plan, lambda one: replace(one, succeeded=one.succeeded | {place}))

    def with_run_finished(self, plan: Plan) -> GeneratedPlans:
        """After the whole body of a plan succeeded."""
        everything = frozenset(range(len(plan.body)))
        return self._changed(plan, lambda one: replace(one, succeeded=everything, verified=True))

    def without(self, plan: Plan) -> GeneratedPlans:
        """After a plan was removed; a step of it failed, or the operator took it away."""
        return replace(self, plans=tuple(one for one in self.plans if one.plan != plan))

    def to_remove(self, failed: Plan) -> tuple[Plan, ...]:
        """What a failing step of this plan removes from the library: itself, if it was generated."""
        known = self.of(failed)
        return (known.plan,) if known else ()

    def _changed(self, plan: Plan, change: Callable[[PartialPlan], PartialPlan]) -> GeneratedPlans:
        known = self.of(plan)
        return replace(self, plans=tuple(change(one) if one is known else one for one in self.plans))


@dataclass(frozen=True, slots=True)
class Installation:
    """What installing generated plans does to a plan library."""

    generated: GeneratedPlans
    added: tuple[Plan, ...]
    """In their order; all go before the plans that are there."""
    removed: tuple[Plan, ...]
    refused: tuple[Refusal, ...]


def install(
    plans: Sequence[Plan],
    library: Sequence[Plan],
    generated: GeneratedPlans,
    provenance: Provenance,
    limits: GenerationLimits = DEFAULT_LIMITS,
    *,
    approved: bool = False,
) -> Installation:
    """What changes when accepted plans are put into a library.

    Args:
        plans: the accepted plans, in the order of the answer.
        library: all plans of the agent, in order.
        generated: those of them that were generated.
        provenance: where the new plans come from.
        limits: how many there may be.
        approved: whether the operator allowed plans written by hand to be replaced.
    """
    added: list[PartialPlan] = []
    removed: list[Plan] = []
    refused: list[Refusal] = []
    taken = {one.name for one in library}
    count = generated.count
    for plan in plans:
        twin = next((one for one in library if same_guard(one, plan)), None)
        gone = [*removed, twin]
        kept = [one for one in library if one not in gone]
        reason = ""
        if twin is not None and generated.of(twin) is None and not approved:
            reason = f"a plan written by hand has its event and conditions{_named(twin)}"
        elif len(added) + sum(generated.of(one) is not None for one in kept) >= limits.plans_per_agent:
            reason = f"the agent has {limits.plans_per_agent} generated plans already"
        elif _rivals(plan, [*kept, *(one.plan for one in added)]) >= limits.plans_per_trigger:
            reason = f"there are {limits.plans_per_trigger} plans for {trigger_text(plan.trigger)} already"
        if reason:
            refused.append(Refusal(plan, reason))
            continue
        if twin is not None:
            removed.append(twin)
        count = next(number for number in itertools.count(count + 1) if f"{LABEL}{number}" not in taken)
        label = atom(f"{LABEL}{count}")
        mine = replace(plan, label=label, source=provenance.model, provenance=provenance.to_json())
        added.append(PartialPlan(mine, provenance))
    old = tuple(one for one in generated.plans if one.plan not in removed)
    after = GeneratedPlans((*added, *old), count)
    return Installation(after, tuple(one.plan for one in added), tuple(removed), tuple(refused))


def _rivals(plan: Plan, others: Iterable[Plan]) -> int:
    """How many plans are for events of the same name."""
    return sum(event_name(one.trigger) == event_name(plan.trigger) for one in others)


def _named(plan: Plan) -> str:
    return f": @{plan.name}" if plan.name else ""
