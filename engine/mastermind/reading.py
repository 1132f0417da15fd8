"""A sentence while it is being read: what has been taken of it, and what is left over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from engine.domain.budgets import BudgetKind, amount_text, check_limits
from engine.domain.text import clean_line
from engine.library.words import words_of


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that was understood."""

    name: str
    """`goal`, or the name of a setting with dots for what lies inside: `budget.usd`."""
    value: Any
    words: str
    """The words that say it, as they stand in the sentence."""
    rule: str
    """Why they are read so."""

    @property
    def line(self) -> str:
        """The part for a person, on one line."""
        words = f"from “{clean_line(self.words, limit=80)}”, " if self.words else ""
        return f"{self.name}: {clean_line(shown(self.name, self.value), limit=300)}   ({words}{self.rule})"


@dataclass(frozen=True, slots=True)
class Question:
    """Words that can be read in two ways."""

    words: str
    readings: tuple[str, ...]
    """Each with how to write it."""

    @property
    def line(self) -> str:
        """The question on one line."""
        return f"“{clean_line(self.words, limit=80)}”: {'; or '.join(self.readings)}?"


@dataclass(slots=True)
class Reader:
    """The sentence, and what has been taken of it so far."""

    text: str
    agents: frozenset[str]
    programs: frozenset[str]
    parts: list[Part] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    masked: str = ""
    """The text with marks in the place of what is quoted or taken; as long as the text."""

    def __post_init__(self) -> None:
        self.text = self.masked = self.text.translate(_MARKS)
        for word in words_of(self.text):
            if word.quoted:
                self._cover(word.start, word.end, "\x01")

    def _cover(self, start: int, end: int, mark: str) -> None:
        self.masked = f"{self.masked[:start]}{mark * (end - start)}{self.masked[end:]}"

    def found(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Where a pattern fits what nobody took; each match sees what was taken before it."""
        at = 0
        while (match := pattern.search(self.masked, at)) is not None:
            yield match
            at = max(match.end(), at + 1)

    def words(self, match: re.Match[str]) -> str:
        """The words of a match, as they stand in the sentence."""
        return self.text[match.start() : match.end()].strip(" ,;")

    def take(self, match: re.Match[str], rule: str, **values: Any) -> None:
        """Take the words of a match for settings; `__` in a name stands for the dot."""
        self.take_to(match, match.end(), rule, **values)

    def take_to(self, match: re.Match[str], end: int, rule: str, **values: Any) -> None:
        """Take the words from where a match begins to a place."""
        words = self.text[match.start() : end].strip(" ,;")
        self.parts += [Part(name.replace("__", "."), value, words, rule) for name, value in values.items()]
        self._cover(match.start(), end, "\0")

    def ask(self, match: re.Match[str], *readings: str) -> None:
        """Ask how the words of a match are meant; they stay where they are."""
        self.questions.append(Question(self.words(match), readings))

    def settle_conflicts(self) -> None:
        """Ask where the same thing is said in two ways; saying it twice alike is no matter."""
        kept: dict[str, Part] = {}
        for part in self.parts:
            other = kept.setdefault(part.name, part)
            if other.value != part.value:
                both = f"{other.words} … {part.words}"
                said = [f"{part.name} is {shown(part.name, one.value)}" for one in (other, part)]
                self.questions.append(Question(both, (said[0], f"{said[1]}: say only one")))
        self.parts = list(kept.values())

    @property
    def left(self) -> str:
        """What was not taken, with quoted text as it was."""
        pieces = [
            self.text[match.start() : match.end()].strip(" ,;\t\n") for match in _LEFT.finditer(self.masked)
        ]
        return " ".join(filter(None, pieces)).strip(" ,;")


_LEFT = re.compile("[^\0]+")
_MARKS = {0: " ", 1: " "}
"""The marks themselves are no part of a sentence."""


def shown(name: str, value: Any) -> str:
    """A setting's value for a person."""
    head, _, kind = name.partition(".")
    if head == "budget" and not check_limits({kind: value}):
        return amount_text(BudgetKind(kind), value)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
