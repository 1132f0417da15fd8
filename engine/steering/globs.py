"""Globs of paths beneath the root and of texts, each read once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from engine.domain.approval import OUTSIDE

_SPECIAL = re.compile(r"([*?\[\]])")


def fits_path(pattern: str, path: str) -> bool:
    """Whether a path beneath the root fits; `*` and `?` stay within a name, `**` crosses directories."""
    return not path.startswith(f"{OUTSIDE}:") and _path(pattern).fullmatch(path) is not None


def fits(pattern: str, text: str) -> bool:
    """Whether a text fits; `*` stands for anything, `?` for one character, upper and lower case differ."""
    return _text(pattern).fullmatch(text) is not None


def literal(text: str) -> str:
    """The pattern that only this text fits."""
    return _SPECIAL.sub(r"[\1]", text)


def joined(patterns: Iterable[str], sign: str) -> str:
    """Patterns as one text with a sign between them; where a pattern has the sign it stands in brackets."""
    return sign.join(re.sub(rf"(?<!\[){re.escape(sign)}(?!\])", f"[{sign}]", one) for one in patterns)


def parted(text: str, sign: str) -> list[str]:
    """The patterns of a text that `joined` made."""
    return [part for part in re.split(rf"(?<!\[){re.escape(sign)}(?!\])", text) if part]


@lru_cache(maxsize=4_096)
def _path(pattern: str) -> re.Pattern[str]:
    pattern = pattern.strip("/") or "."
    if pattern == "**":
        return re.compile(r".*", re.S)
    made = ""
    parts = pattern.split("/")
    for at, part in enumerate(parts):
        last = at == len(parts) - 1
        if part == "**":
            # `src/**` is src itself and all beneath it; `**/x` is x anywhere.
            made = made.removesuffix("/") + r"(?:/.*)?" if last else made + r"(?:[^/]+/)*"
        else:
            made += _translated(part, within="[^/]") + ("" if last else "/")
    return re.compile(made, re.S)


@lru_cache(maxsize=4_096)
def _text(pattern: str) -> re.Pattern[str]:
    return re.compile(_translated(pattern, within="."), re.S)


def _translated(pattern: str, *, within: str) -> str:
    made, at = "", 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "*":
            made += f"{within}*"
        elif sign == "?":
            made += within
        elif sign == "[" and (end := pattern.find("]", at + 2)) > 0:
            inside = pattern[at + 1 : end].replace("\\", r"\\").replace("[", r"\[").replace("^", r"\^")
            inside = f"^{inside[1:]}" if inside.startswith("!") and len(inside) > 1 else inside
            made += _class(f"[{inside}]")
            at = end
        else:
            made += re.escape(sign)
        at += 1
    return made


def _class(signs: str) -> str:
    """A class of characters, or the same text where it is none, such as a range that goes backwards."""
    try:
        re.compile(signs)
    except re.error:
        return re.escape(signs)
    return signs
