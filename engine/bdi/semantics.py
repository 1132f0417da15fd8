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


@dataclass(frozen=True, slots=True)
class Semantics:
    """Settings of one agent, by default as Jason 3.3."""

    event_policy: EventPolicy = EventPolicy.SKIP_IRRELEVANT
    same_focus: bool = True
    """Whether an intention waits until the event of a belief that it adds or removes is handled by itself."""
    newest_first: bool = True
    """Whether beliefs answer newest first, initial ones as in the program; else in the order of insertion."""
    edition: int = 2
    """In 1, in which agents of older journals go on, rules answer behind the facts of their name, whatever
    annotations are asked for, and an empty plan costs no turn; since 2 all this is as in Jason."""
    last_removal_only: bool = False
    """Whether only the last belief of a sense step that is no longer perceived raises an event: a bug of the
    thesis' engine on which its numbers depend."""

    @classmethod
    def compat(cls) -> Semantics:
        """As the thesis' JaKtA agents, which gives GAT 33 for the baseline."""
        return cls(
            EventPolicy.ONE_PER_CYCLE, same_focus=False, newest_first=False, edition=1, last_removal_only=True
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may use; one more fails the step with `limit_exceeded`."""

    beliefs: int = 200_000
    belief_size: int = 200_000_000
    """Of all beliefs together, in characters of long texts; a structure counts as 100."""
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
