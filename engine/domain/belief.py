"""Beliefs: what an agent holds true, with where it has it from."""

from __future__ import annotations

from dataclasses import dataclass
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
