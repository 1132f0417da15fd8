"""The reactive procedure: a goal without a relevant plan gets one generated (spec BDI §2.3).

As in the thesis (listing 3.1) the agent gets the plan `-!G : missing_plan_for(G) <- generate G; !G` and
believes `missing_plan_for(G)`. Unlike there both are taken back when the generation is settled, and the
attempts for a goal are counted until one proves itself, so that none is generated for ever (§7 39).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from engine.bdi.syntax import Operation, Plan, Step, StepKind, Trigger, TriggerKind
from engine.bdi.terms import QUOTED_PLAN, SELF, Struct
from engine.generation.pgp.context import MISSING_PLAN
from engine.generation.pgp.renaming import event_key


@dataclass(frozen=True, slots=True)
class MissingPlans:
    """How often plans were generated for which goals; attempts are counted by event, up to renaming."""

    attempts: Mapping[str, int] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()
    """Events for which `missing_plan_for` is believed."""

    def may_ask(self, goal: Trigger, limit: int) -> bool:
        """Whether another generation is allowed for a goal."""
        return self.attempts.get(event_key(goal), 0) < limit

    def asked(self, goal: Trigger) -> MissingPlans:
        """After a generation was begun."""
        key = event_key(goal)
        attempts = {**self.attempts, key: self.attempts.get(key, 0) + 1}
        return MissingPlans(attempts, self.waiting | {key})

    def settled(self, goal: Trigger) -> MissingPlans:
        """After plans were installed, or none could be had; the attempt stays counted."""
        return replace(self, waiting=self.waiting - {event_key(goal)})

    def proved(self, goal: Trigger) -> MissingPlans:
        """After a generated plan reached the goal; counting begins anew."""
        key = event_key(goal)
        return replace(self, attempts={one: count for one, count in self.attempts.items() if one != key})


def missing_plan_belief(goal: Trigger) -> Struct:
    """`missing_plan_for(G)[source(self)]`, to be added without an event."""
    return Struct(MISSING_PLAN, (goal.literal,), (SELF,))


def meta_plan(goal: Trigger) -> Plan:
    """The plan that generates plans for a goal when it fails for want of one, and then pursues it again."""
    again = StepKind(goal.kind)
    quoted = Struct(QUOTED_PLAN, (f"{goal.operation}{goal.kind}", goal.literal))
    wanted = goal.literal if goal.kind is TriggerKind.ACHIEVE else quoted
    return Plan(
        trigger=Trigger(Operation.REMOVED, goal.kind, goal.literal),
        context=Struct(MISSING_PLAN, (goal.literal,)),
        body=(
            Step(StepKind.INTERNAL, Struct(".generate_plan", (wanted,))),
            Step(again, goal.literal),
        ),
    )
