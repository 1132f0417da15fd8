"""How a sentence about an agent becomes the goal that is meant: `a helper that runs it` is to `run it`."""

from __future__ import annotations

import re
from collections.abc import Collection

_GOAL_WORD = re.compile(
    r"(?<![\w'-])(?P<lead>goals?\s*[:=]|(?:whose|its|with\s+the|the)\s+goal\s+(?:is\s+to|is|to|of))\s*"
    r"(?P<rest>\S.*)\Z",
    re.I | re.S,
)
_ROLE = (
    r"(?:[\w'-]+\s+){0,5}?"
    r"(?:agent|bot|helper|assistant|worker|coder|tester|writer|reviewer|one|someone)\s*,?\s*"
)
_WHO = re.compile(
    rf"^(?:(?:(?:please|make|create|have|me|us)\s+){{0,3}}(?:(?:an?|the|one)\s+)?{_ROLE})?"
    r"(?P<lead>(?:that|which|who)(?:\s+(?:can|will|should|shall|must|is\s+to|has\s+to))?|to)\s+"
    r"(?P<rest>\S.*)\Z",
    re.I | re.S,
)
_NO_DEED = frozenset({"is", "are", "has", "have", "knows", "know", "likes", "like", "be"})
"""Verbs that say what an agent is, and give it nothing to do."""
_JOINED = re.compile(r"(?P<joint>(?:,\s*(?:and\s+|then\s+)*|\b(?:and|then)\s+)+)(?P<verb>[a-z]+s)\b", re.I)


def introduced(text: str) -> tuple[str, str, bool]:
    """The words that introduce a goal, what follows them, and whether its verbs have an `s`.

    The lead is empty where nothing introduces one, and the rest is empty where the words only describe.
    """
    if match := _GOAL_WORD.search(text):
        return match["lead"].strip(" :="), match["rest"].strip(), False
    if match := _WHO.match(text):
        lead, rest = " ".join(match["lead"].split()), match["rest"].strip()
        first = rest.partition(" ")[0].casefold()
        if first in _NO_DEED:
            return lead, "", False
        return lead, rest, lead.casefold() in ("that", "which", "who")
    return "", text.strip(), False


def imperative(text: str, verbs: Collection[str]) -> str:
    """The text with its verbs as they stand in a goal.

    Its first word loses its `s`; a later one only after a comma, `and` or `then`, and where that makes one of
    the verbs: `runs the tests and lists files` keeps its files.
    """
    first, blank, rest = text.partition(" ")

    def base(match: re.Match[str]) -> str:
        found = base_of(match["verb"])
        return match["joint"] + (found if found.casefold() in verbs else match["verb"])

    return base_of(first) + blank + (_JOINED.sub(base, rest) if blank else "")


def base_of(verb: str) -> str:
    """A verb without the `s` of the third person."""
    low = verb.casefold()
    if re.fullmatch(r"[a-z]{2,}[^aeiou]ies", low):
        return verb[:-3] + "y"
    if low in ("does", "goes") or re.fullmatch(r"[a-z]+(?:ss|sh|ch|x|zz)es", low):
        return verb[:-2]
    return verb[:-1] if re.fullmatch(r"[a-z]+[^s]s", low) else verb
