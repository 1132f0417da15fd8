"""What the reasoner's trace says of generated plans: steps that worked, plans that failed or are proved.

Tracking is metadata; it changes neither a plan nor its place (spec BDI §2.5; §7 43, 44).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from engine.bdi.syntax import Body, If, Step
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
from engine.generation.pgp.partial_plans import GeneratedPlans


@dataclass(frozen=True, slots=True)
class SucceededStep:
    """A step of a generated plan that worked."""

    plan: str
    """The plan's label."""
    place: int
    """In its body, from 0."""


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
class FinishedRun:
    """A generated plan whose whole body worked."""

    plan: str
    event: str
    """What it was carried out for, `+!reach(home)`."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What some records of a trace say of generated plans, each sort in their order."""

    succeeded: tuple[SucceededStep, ...] = ()
    failed: tuple[FailedStep, ...] = ()
    finished: tuple[FinishedRun, ...] = ()
    removed: tuple[str, ...] = ()
    """Labels of plans that are no longer in the library."""

    def applied(self, generated: GeneratedPlans) -> GeneratedPlans:
        """The generated plans with what is now known of them; failed ones stay until they are removed."""
        for step in self.succeeded:
            if known := generated.labelled(step.plan):
                generated = generated.with_step_succeeded(known.plan, step.place)
        for run in self.finished:
            if known := generated.labelled(run.plan):
                generated = generated.with_run_finished(known.plan)
        for label in self.removed:
            if known := generated.labelled(label):
                generated = generated.without(known.plan)
        return generated


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
        for one in data:
            call = TailCall(**one)
            self._calls.setdefault(call.intention, {})[call.depth, call.plan] = call

    def observe(self, records: Iterable[TraceEvent], generated: GeneratedPlans) -> Progress:
        """What records, in their order, say of the generated plans; of other plans nothing is said."""
        bodies = {one.label: one.plan.body for one in generated.plans}
        succeeded: list[SucceededStep] = []
        failed: list[FailedStep] = []
        finished: list[FinishedRun] = []
        removed: list[str] = []
        for one in records:
            match one:
                case StepSucceeded() if one.plan in bodies:
                    succeeded += _through(one.plan, place_of(bodies[one.plan], one.at), bodies[one.plan])
                case StepFailed():
                    self._calls.pop(one.intention, None)
                    if one.plan in bodies:
                        place = place_of(bodies[one.plan], one.at)
                        failed.append(FailedStep(one.plan, place, one.step, one.error, one.message))
                case TailCall() if one.plan in bodies:
                    # Of calls that take each other's place the first was for the goal that was asked for.
                    self._calls.setdefault(one.intention, {}).setdefault((one.depth, one.plan), one)
                case PlanFinished():
                    finished += self._ended(one, bodies)
                case IntentionChanged(change=Change.DROPPED | Change.FINISHED):
                    self._calls.pop(one.intention, None)
                case PlanRemoved() if one.plan in bodies:
                    removed.append(one.plan)
                case _:
                    pass
        return Progress(tuple(succeeded), tuple(failed), tuple(finished), tuple(removed))

    def _ended(self, end: PlanFinished, bodies: Mapping[str, Body]) -> list[FinishedRun]:
        calls = self._calls.get(end.intention, {})
        mine = [calls.pop(key) for key in list(calls) if key[0] >= end.depth]
        runs = [FinishedRun(end.plan, end.event)]
        runs += [FinishedRun(call.plan, call.event) for call in mine if call.depth == end.depth]
        return [run for run in runs if run.plan in bodies]


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


def _through(plan: str, place: int, body: Body) -> list[SucceededStep]:
    """The step and the blocks before it; a block is through when something behind it is."""
    if not isinstance(body[place], Step):
        return []
    blocks = [before for before in range(place) if not isinstance(body[before], Step)]
    return [SucceededStep(plan, one) for one in (*blocks, place)]
