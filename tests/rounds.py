"""How often a test repeats what must never go wrong, and in how many sizes of a terminal."""

from __future__ import annotations

import os

FULL = bool(os.environ.get("PILOTHOUSE_FULL_ROUNDS"))
"""Set by `make endurance`: as many rounds as the targets name, which takes minutes for each test."""


def rounds(in_suite: int, *, full: int) -> int:
    """The number of rounds: few, so that the suite stays quick, or all."""
    return full if FULL else in_suite


def sizes(first: tuple[int, int], *others: tuple[int, int]) -> list[tuple[int, int]]:
    """The sizes of a terminal that a test is repeated in: one, or all."""
    return [first, *others] if FULL else [first]
