"""Patterns with `*` and `?`: simple enough that no text makes them slow, whoever wrote the pattern."""

from __future__ import annotations

import re
from functools import lru_cache

LOOKED_AT = 64 * 1024
"""Characters of a text that a pattern is compared with."""


@lru_cache(maxsize=512)
def _pieces(pattern: str) -> tuple[re.Pattern[str], ...]:
    """What stands between the stars, each with a fixed length, so that nothing is ever tried twice."""
    return tuple(
        re.compile("".join("." if one == "?" else re.escape(one) for one in piece), re.DOTALL)
        for piece in pattern.split("*")
    )


def fits(pattern: str, text: str) -> bool:
    """Whether the whole text is of this form: `*` stands for any characters, `?` for one.

    Each piece between two stars is looked for once, from left to right, so the time grows with the length of
    the text and not with the number of stars.
    """
    if "*" not in pattern and "?" not in pattern:
        return pattern == text
    text = text[:LOOKED_AT]
    if "?" not in pattern:
        return _fits_stars(pattern, text)
    first, *rest = _pieces(pattern)
    if not rest:
        return first.fullmatch(text) is not None
    begun = first.match(text)
    if begun is None:
        return False
    at = begun.end()
    *between, last = rest
    for piece in between:
        found = piece.search(text, at)
        if found is None:
            return False
        at = found.end()
    length = len(pattern) - pattern.rindex("*") - 1
    return len(text) - length >= at and last.fullmatch(text, len(text) - length) is not None


def _fits_stars(pattern: str, text: str) -> bool:
    first, *between, last = pattern.split("*")
    if not text.startswith(first):
        return False
    at = len(first)
    for piece in between:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(text) - len(last) >= at and text.endswith(last)


def holds(pattern: str, text: str) -> bool:
    """Whether the text has a part of this form; without `*` and `?` that is the pattern itself."""
    text = text[:LOOKED_AT]
    if "*" not in pattern and "?" not in pattern:
        return pattern in text
    return fits(f"*{pattern}*", text)
