"""How often a test repeats what must never go wrong."""

from __future__ import annotations

import os

FULL = bool(os.environ.get("PILOTHOUSE_FULL_ROUNDS"))
"""Set by `make endurance`: as many rounds as the targets name, which takes minutes for each test."""


def rounds(in_suite: int, *, full: int) -> int:
    """The number of rounds: few, so that the suite stays quick, or all."""
    return full if FULL else in_suite
