"""The points on which engines differ as settings, and the limits of a program."""

from __future__ import annotations

from enum import StrEnum

from engine.value import dataclass


class EventPolicy(StrEnum):
    """What an event without a plan costs."""

    SKIP_IRRELEVANT = "skip_irrelevant"
    """Nothing: the next event is taken in the same cycle, as in Jason."""
    ONE_PER_CYCLE = "one_per_cycle"
    """A whole cycle, as in JaKtA."""


class BeliefFocus(StrEnum):
    """Which intention handles the event of a belief that a body adds or removes."""

    SAME = "same"
    """The one that changed the belief; its next step waits."""
    NEW = "new"


class BeliefOrder(StrEnum):
    """In which order beliefs answer."""

    NEWEST_FIRST = "newest_first"
    """Initial beliefs in the order of the program, later ones before them."""
    INSERTION = "insertion"


class IntentionOrder(StrEnum):
    """Which intention runs its next step."""

    ROUND_ROBIN = "round_robin"
    PRIORITY = "priority"
    """The one with the highest `[priority(n)]` on a plan's label, 0 without one; equal ones in turn. A plan
    without a priority has that of the plan whose sub-goal it pursues."""


class PerceptRemovals(StrEnum):
    """Which beliefs that are no longer perceived raise an event."""

    ALL = "all"
    LAST_ONLY = "last_only"
    """Only the last of a sense step: a bug of the thesis' engine on which its numbers depend."""


@dataclass(frozen=True, slots=True)
class Semantics:
    """Settings of one agent."""

    event_policy: EventPolicy = EventPolicy.SKIP_IRRELEVANT
    belief_focus: BeliefFocus = BeliefFocus.SAME
    belief_order: BeliefOrder = BeliefOrder.NEWEST_FIRST
    percept_removals: PerceptRemovals = PerceptRemovals.ALL
    intention_order: IntentionOrder = IntentionOrder.ROUND_ROBIN

    @classmethod
    def jason(cls) -> Semantics:
        """As Jason 3.3."""
        return cls()

    @classmethod
    def compat(cls) -> Semantics:
        """As the thesis' JaKtA agents, which gives GAT 33 for the baseline."""
        return cls(
            EventPolicy.ONE_PER_CYCLE, BeliefFocus.NEW, BeliefOrder.INSERTION, PerceptRemovals.LAST_ONLY
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may use; one more fails the step with `limit_exceeded`."""

    beliefs: int = 200_000
    intentions: int = 20_000
    frames: int = 200_000
    """Of one intention."""
    events: int = 200_000
    """Waiting to be handled."""
    messages: int = 10_000
    """Waiting in the mailbox; further ones are refused."""
    query_steps: int = 1_000_000
    """Nodes walked for one answer."""
    size: int = 1_000_000
    """Characters or elements of a text or list that an internal action makes."""
