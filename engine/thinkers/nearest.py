"""Nearest examples: what the operator could say instead."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

_CLIP = 80
"""Characters compared; bounds the time whatever a clause holds."""


def nearest_examples(clause: str, examples: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """The examples most like a clause, nearest first, by shared words and then by shared letters."""
    given = clause[:_CLIP].casefold()
    words = set(given.split())
    matcher = SequenceMatcher(None, autojunk=False)
    matcher.set_seq2(given)

    def likeness(example: str) -> float:
        other = example[:_CLIP].casefold()
        others = set(other.split())
        matcher.set_seq1(other)
        return len(words & others) / len(words | others) + matcher.ratio()

    unique = dict.fromkeys(examples)
    return tuple(sorted(unique, key=likeness, reverse=True)[:count])
