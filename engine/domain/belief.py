"""Beliefs: what an agent holds true, with where it has it from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any


class BeliefSource(StrEnum):
    """Where a belief comes from (mindX spec §2.2)."""

    PERCEPTION = "perception"
    COMMUNICATION = "communication"
    INFERENCE = "inference"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Belief:
    """A keyed fact with a confidence between 0 and 1."""

    key: str
    value: Any
    confidence: float = 0.9
    source: BeliefSource = BeliefSource.PERCEPTION
    event: str = ""
    """Reference of the event that added it."""
    tick: int = 0
    until: str = ""
    """When it is held no longer, ISO 8601 in UTC; empty where that has no end."""


@dataclass(frozen=True, slots=True)
class BeliefTerms:
    """How sure a plan is of what it adds to the beliefs, and for how long."""

    confidence: float | None = None
    """0 to 1; None where the value is as sure as what is seen."""
    ttl_s: float | None = None
    """Seconds; None for no end."""

    @property
    def source(self) -> BeliefSource:
        """What is said with a confidence is a plan's own guess."""
        return BeliefSource.PERCEPTION if self.confidence is None else BeliefSource.INFERENCE


_GUESSED = {BeliefSource.INFERENCE: 0, BeliefSource.COMMUNICATION: 1}
_SEEN = 2


def outweighs(held: Belief, confidence: float, source: BeliefSource) -> bool:
    """Whether what is held stays against a new value (mindX spec §7 22).

    It stays where the new value is both less sure and from a weaker source: inferred, told by others, or (the
    strongest) seen or told by the operator. Otherwise the newest counts.
    """
    return confidence < held.confidence and _GUESSED.get(source, _SEEN) < _GUESSED.get(held.source, _SEEN)


def moment_after(at: str, seconds: float) -> str:
    """A moment so many seconds later, in the same form; empty where there is none."""
    try:
        later = datetime.fromisoformat(at) + timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return ""
    return later.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def first_end(beliefs: Mapping[str, Belief]) -> str:
    """When the first of them ends; empty where none does."""
    return min((one.until for one in beliefs.values() if one.until), default="")
