"""Beliefs: what an agent holds true and where it has it from; commands and events.

The event by which an operator disputes something recorded stands here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from pydantic import Field

from engine.core.command import Command
from engine.core.journal import Payload
from engine.core.reasons import NONE, Reason
from engine.value import dataclass


class BeliefSource(StrEnum):
    """Where a belief comes from."""

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
    """Whether what is held stays against a new value.

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
    return min((belief.until for belief in beliefs.values() if belief.until), default="")


class Believe(Command, do="believe"):
    """Put a belief into the agent's mind."""

    key: str = Field(min_length=1, max_length=200)
    value: Any


class Forget(Command, do="forget"):
    """Take a belief out of the agent's mind."""

    key: str


class Dispute(Command, do="dispute"):
    """Mark something recorded as wrong, or take that back; nothing else follows by itself."""

    event: str = Field(min_length=1, max_length=200)
    """An event of the agent's, as `stream:version`."""
    reason: str = Field(default="", max_length=2_000)
    lifted: bool = False


class ResultDisputed(Payload, kind="result.disputed"):
    """The operator marks something of this stream as wrong, or takes that back; nothing else follows."""

    event: str
    """What is marked, as `stream:version`."""
    reason: str = ""
    lifted: bool = False
    """Whether the mark is taken back."""


class BeliefAdded(Payload, kind="belief.added"):
    """Something is now held true; an older value of the key is replaced."""

    key: str
    value: Any
    confidence: float = 0.9
    source: BeliefSource = BeliefSource.PERCEPTION
    ttl_s: float | None = None
    """Seconds from this event for which it is held; None for no end."""
    until: str = ""
    """For one that is put back: when it ends, as it was said then."""


class BeliefOutweighed(Payload, kind="belief.outweighed"):
    """A value that was not taken: what is held under the key is surer and from a stronger source."""

    key: str
    value: Any
    confidence: float
    source: BeliefSource
    ttl_s: float | None = None


class BeliefRemoved(Payload, kind="belief.removed"):
    """Something is no longer held true."""

    key: str
    reason: Reason = NONE
