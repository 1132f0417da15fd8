"""Installed generated plans: their provenance, the steps that worked, and when they are removed.

A partial plan is a plan with its provenance and those of its steps that succeeded at least once. Tracking is
metadata: the whole body always runs. A failing step removes its plan, never a plan written by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from engine.bdi.printer import plan_text, trigger_text
from engine.bdi.syntax import Body, If, Plan, Step
from engine.bdi.terms import atom
from engine.bdi.trace import (
    Change,
    IntentionChanged,
    PlanFinished,
    PlanRemoved,
    StepFailed,
    StepSucceeded,
    TailCall,
    TraceEvent,
)
from engine.planning.pgp.plan_comparison import event_name, same_guard
from engine.planning.pgp.validation import DEFAULT_LIMITS, GenerationLimits
from engine.value import asdict, dataclass, field, replace

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
        return asdict(self)


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
        facts, worked = self.provenance, f"{len(self.succeeded)} of {len(self.plan.body)} steps worked"
        heads = (
            f"// generated for {facts.goal} by {facts.model}, {facts.time}",
            f"// {facts.prompt_id}; {'verified' if self.verified else worked}",
        )
        return "\n".join([*(" ".join(head.split()) for head in heads), plan_text(self.plan)])


@dataclass(frozen=True, slots=True)
class GeneratedPlans:
    """The generated plans of one agent, the newest first."""

    plans: tuple[PartialPlan, ...] = ()
    count: int = 0
    """The highest number that a label has had."""

    def of(self, plan: Plan) -> PartialPlan | None:
        """What is known of a generated plan; None for a plan written by hand."""
        return next((generated for generated in self.plans if generated.plan == plan), None)

    def labelled(self, label: str) -> PartialPlan | None:
        """The generated plan with this label."""
        return next((plan for plan in self.plans if plan.label == label), None)

    def with_steps_succeeded(self, plan: Plan, places: Iterable[int]) -> GeneratedPlans:
        """After steps of a plan succeeded; places count from 0."""
        return self._changed(plan, lambda plan: replace(plan, succeeded=plan.succeeded.union(places)))

    def with_run_finished(self, plan: Plan) -> GeneratedPlans:
        """After the whole body of a plan succeeded."""
        everything = frozenset(range(len(plan.body)))
        return self._changed(plan, lambda plan: replace(plan, succeeded=everything, verified=True))

    def without(self, plan: Plan) -> GeneratedPlans:
        """After a plan was removed; a step of it failed, or the operator took it away."""
        return replace(self, plans=tuple(other for other in self.plans if other.plan != plan))

    def _changed(self, plan: Plan, change: Callable[[PartialPlan], PartialPlan]) -> GeneratedPlans:
        known = self.of(plan)
        return replace(self, plans=tuple(change(each) if each is known else each for each in self.plans))


@dataclass(frozen=True, slots=True)
class Installation:
    """What installing generated plans does to a plan library."""

    generated: GeneratedPlans
    added: tuple[Plan, ...]
    """In their order; all go before the plans that are there."""
    removed: tuple[Plan, ...]
    refused: tuple[str, ...]
    """Why each of the other plans was not installed."""


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
    refused: list[str] = []
    taken = {plan.name for plan in library}
    count = generated.count
    for plan in plans:
        twin = next((existing for existing in library if same_guard(existing, plan)), None)
        kept = [existing for existing in library if existing not in (*removed, twin)]
        after = [*kept, *(partial.plan for partial in added)]
        rivals = sum(event_name(other.trigger) == event_name(plan.trigger) for other in after)
        reason = ""
        if twin is not None and generated.of(twin) is None and not approved:
            name = f": @{twin.name}" if twin.name else ""
            reason = f"a plan written by hand has its event and conditions{name}"
        elif len(added) + sum(generated.of(plan) is not None for plan in kept) >= limits.plans_per_agent:
            reason = f"the agent has {limits.plans_per_agent} generated plans already"
        elif rivals >= limits.plans_per_trigger:
            reason = f"there are {limits.plans_per_trigger} plans for {trigger_text(plan.trigger)} already"
        if reason:
            refused.append(reason)
            continue
        if twin is not None:
            removed.append(twin)
        count = next(number for number in itertools.count(count + 1) if f"{LABEL}{number}" not in taken)
        label = atom(f"{LABEL}{count}")
        mine = replace(plan, label=label, source=provenance.model, provenance=provenance.to_json())
        added.append(PartialPlan(mine, provenance))
    old = tuple(plan for plan in generated.plans if plan.plan not in removed)
    generated = GeneratedPlans((*added, *old), count)
    return Installation(generated, tuple(plan.plan for plan in added), tuple(removed), tuple(refused))


@dataclass(frozen=True, slots=True)
class FailedStep:
    """A step of a generated plan that failed, and with it the plan."""

    plan: str
    place: int
    step: str
    error: str
    """The id of the failure, such as `action_failed`."""
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """What a record of a trace says of generated plans."""

    generated: GeneratedPlans
    """With what is now known of them; a failed one stays until it is removed."""
    failed: FailedStep | None = None
    reached: tuple[str, ...] = ()
    """The events for which a whole body worked, `+!reach(home)`."""


class PlanTracker:
    """Follows the trace of one agent.

    It remembers between records only the tail calls of generated plans, whose last step is through when
    the goal that took their place is achieved.
    """

    def __init__(self) -> None:
        self._calls: dict[int, dict[tuple[int, str], TailCall]] = {}

    def save(self) -> list[dict[str, object]]:
        """What it remembers, ready for JSON."""
        return [asdict(call) for calls in self._calls.values() for call in calls.values()]

    def restore(self, data: Iterable[Mapping[str, Any]]) -> None:
        """Remember what `save` gave."""
        self._calls = {}
        for fields in data:
            call = TailCall(**fields)
            self._calls.setdefault(call.intention, {})[call.depth, call.plan] = call

    def observe(self, record: TraceEvent, generated: GeneratedPlans) -> Progress:
        """What a record says of the generated plans; of other plans nothing is said."""
        match record:
            case StepSucceeded() if known := generated.labelled(record.plan):
                places = _through(known.plan.body, record.at)
                return Progress(generated.with_steps_succeeded(known.plan, places))
            case StepFailed():
                self._calls.pop(record.intention, None)
                if known := generated.labelled(record.plan):
                    place = place_of(known.plan.body, record.at)
                    failed = FailedStep(record.plan, place, record.step, record.error, record.message)
                    return Progress(generated, failed)
            case TailCall() if generated.labelled(record.plan):
                # Of calls that take each other's place the first was for the goal that was asked for.
                calls = self._calls.setdefault(record.intention, {})
                calls.setdefault((record.depth, record.plan), record)
            case PlanFinished():
                return self._ended(record, generated)
            case IntentionChanged(change=Change.DROPPED | Change.FINISHED):
                self._calls.pop(record.intention, None)
            case PlanRemoved() if known := generated.labelled(record.plan):
                return Progress(generated.without(known.plan))
        return Progress(generated)

    def _ended(self, end: PlanFinished, generated: GeneratedPlans) -> Progress:
        calls = self._calls.get(end.intention, {})
        mine = [calls.pop(key) for key in list(calls) if key[0] >= end.depth]
        runs = [(end.plan, end.event), *((call.plan, call.event) for call in mine if call.depth == end.depth)]
        reached = []
        for label, event in runs:
            if known := generated.labelled(label):
                generated = generated.with_run_finished(known.plan)
                reached.append(event)
        return Progress(generated, reached=tuple(reached))


TRACKED = (StepSucceeded, StepFailed, TailCall, PlanFinished, IntentionChanged, PlanRemoved)
"""Records that a tracker needs; it may be spared all others."""


def place_of(body: Body, at: int) -> int:
    """The place in a body of the item to which a place in its code belongs; the last for one behind it."""
    for place, item in enumerate(body):
        at -= _length((item,))
        if at < 0:
            return place
    return max(len(body) - 1, 0)


def _length(body: Body) -> int:
    """Instructions of a body: one a step, and for blocks one a condition and what is inside."""
    total = 0
    for item in body:
        if isinstance(item, Step):
            total += 1
        elif isinstance(item, If):
            total += sum(1 + _length(block) for _, block in item.branches) + _length(item.otherwise)
        else:
            total += 1 + _length(item.body)
    return total


def _through(body: Body, at: int) -> list[int]:
    """The places of a step and the blocks before it; a block is through when something behind it is.

    An empty body has none, though its plan takes a turn.
    """
    place = place_of(body, at)
    if not body or not isinstance(body[place], Step):
        return []
    return [*(before for before in range(place) if not isinstance(body[before], Step)), place]
