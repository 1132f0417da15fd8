"""A text that a regular expression matches, where one is found; who uses it looks whether it does."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

DEEPEST = 20


def fitting(pattern: str) -> str:
    """A short text for a pattern; empty where none is found. Look-arounds and references are left out."""
    try:
        # The parser of the standard library is not public: without it no text is found, and that is said.
        parsed = importlib.import_module("re._parser").parse(pattern)
        return "".join(map(_text, parsed))
    except Exception:  # noqa: BLE001  whatever is wrong with a pattern, there is no text for it
        return ""


def _text(token: tuple[Any, Any], depth: int = 0) -> str:
    name, value = str(token[0]), token[1]
    if depth > DEEPEST:
        return ""
    match name:
        case "LITERAL":
            return chr(value)
        case "NOT_LITERAL":
            return "a" if value != ord("a") else "b"
        case "ANY":
            return "a"
        case "IN":
            return _of_set(value)
        case "BRANCH":
            return _all(value[1][0], depth)
        case "SUBPATTERN":
            return _all(value[3], depth)
        case "ATOMIC_GROUP":
            return _all(value, depth)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, inner = value
            return _all(inner, depth) * min(max(int(least), 1), int(most), 1_000)
    return ""


def _all(tokens: Iterable[tuple[Any, Any]], depth: int) -> str:
    return "".join(_text(token, depth + 1) for token in tokens)


def _of_set(tokens: Iterable[tuple[Any, Any]]) -> str:
    """A character of a set; of one that is turned around, a letter, digit or blank that may not be in it."""
    members = [(str(name), value) for name, value in tokens]
    if members and members[0][0] == "NEGATE":
        return next((one for one in "a0 -Z" if not _is_in(one, members[1:])), "")
    return next((one for one in "a0 -Z" if _is_in(one, members)), _first(members))


def _is_in(one: str, members: Iterable[tuple[str, Any]]) -> bool:
    return any(
        (name == "LITERAL" and value == ord(one))
        or (name == "RANGE" and value[0] <= ord(one) <= value[1])
        or (name == "CATEGORY" and one in _CATEGORIES.get(str(value), ""))
        for name, value in members
    )


_CATEGORIES = {
    "CATEGORY_DIGIT": "0",
    "CATEGORY_NOT_DIGIT": "a -Z",
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_SPACE": "a0-Z",
    "CATEGORY_WORD": "a0Z",
    "CATEGORY_NOT_WORD": " -",
}


def _first(members: Iterable[tuple[str, Any]]) -> str:
    for name, value in members:
        if name in ("LITERAL", "RANGE"):
            return chr(value if name == "LITERAL" else value[0])
    return ""
