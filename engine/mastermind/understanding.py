"""A sentence about an agent read as a specification, each part with the words and the rule it came by.

Nothing here asks a model or changes anything. Where two readings are close the sentence is not guessed at: a
question names both, and how to write each so that it cannot be taken for the other (mindX spec §5.3, issue 8
no. 5; §7 nos. 33 and 36 for showing the rule).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.library.words import words_of
from engine.mastermind.imperatives import base_of, imperative, introduced
from engine.mastermind.reading import Part, Question, Reader
from engine.mastermind.sentence_rules import RULES

SENTENCE_LIMIT = 4_000
"""Characters of a sentence, as of a description."""


@dataclass(frozen=True, slots=True)
class Understood:
    """What a sentence says."""

    text: str
    parts: tuple[Part, ...] = ()
    questions: tuple[Question, ...] = ()
    """Empty where every word has one reading; nothing is created before."""

    @property
    def goals(self) -> tuple[str, ...]:
        """The goals in their order."""
        return tuple(part.value for part in self.parts if part.name == "goal")

    @property
    def settings(self) -> dict[str, Any]:
        """What the agent's configuration is to have."""
        found: dict[str, Any] = {}
        for part in self.parts:
            if part.name != "goal":
                *outer, last = part.name.split(".")
                inner = found
                for name in outer:
                    inner = inner.setdefault(name, {})
                inner[last] = part.value
        return found

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it for a person."""
        return (*(part.line for part in self.parts), *(one.line for one in self.questions))


def understand(
    text: str,
    *,
    agents: Collection[str] = (),
    programs: Collection[str] = (),
    verbs: Collection[str] = (),
    covers: Callable[[str], bool] = lambda _text: False,
) -> Understood:
    """What a sentence about a new agent says; a pure function.

    Args:
        text: the sentence; what stands in quotes belongs to the goal as it is.
        agents: ids of the agents that there are, which it may work for.
        programs: names of programs that the workspace allows.
        verbs: verbs with which a goal may begin.
        covers: whether the plan library knows what to do for a text.
    """
    reader = Reader(text.strip(), frozenset(agents), frozenset(programs))
    for rule in RULES:
        rule(reader)
    reader.settle_conflicts()
    _rest(reader, frozenset(verbs), covers)
    return Understood(text, tuple(reader.parts), tuple(reader.questions))


def _rest(reader: Reader, verbs: frozenset[str], covers: Callable[[str], bool]) -> None:
    """What is left over: the goals, or no more than a description."""
    left = reader.left
    if not left:
        return
    lead, rest, inflected = introduced(left)
    if not rest:
        return
    if not lead and not covers(rest):
        inflected = base_of(rest.partition(" ")[0]) in verbs and rest.partition(" ")[0] not in verbs
        sure = _sounds_like_a_goal(imperative(rest, verbs) if inflected else rest, verbs)
        if sure is None:
            readings = (f"a goal: write goal: {rest}", f"what it is: write an agent, {rest}")
            reader.questions.append(Question(rest, readings))
        if not sure:
            return
    rule = f"what follows “{lead}”" if lead else "it begins as something to do"
    for text in _split_goals(rest):
        reader.parts.append(Part("goal", imperative(text, verbs) if inflected else text, text, rule))


_AFTER_VERB = re.compile(
    r"(?:the|an?|all|every|each|my|our|this|that|these|its?|to|in|into|from|for|on|with|up|as|and|how|why|what|me|us|"
    r"new|\d+)\b|[\x22'`“‘\w]*[./_\x22'`“‘]",
    re.I,
)


def _sounds_like_a_goal(text: str, verbs: frozenset[str]) -> bool | None:
    """Whether a text asks for something to be done; None where it may as well name what the agent is."""
    first, _, rest = text.partition(" ")
    if first.casefold().strip(",:") not in verbs:
        return False
    return True if not rest or _AFTER_VERB.match(rest) else None


def _split_goals(text: str) -> Sequence[str]:
    """Goals stand between semicolons; those inside quotes part nothing."""
    cuts = [word.start for word in words_of(text) if word.text == ";" and not word.quoted]
    places = zip([0, *(cut + 1 for cut in cuts)], [*cuts, len(text)], strict=True)
    found = [re.sub(r"^(?:and|then)\s+", "", text[start:end].strip(" ,.")) for start, end in places]
    return [one for one in found if one]


def with_parts(understood: Understood, parts: Sequence[Part]) -> Understood:
    """What was understood with more parts, where the sentence said nothing of their names."""
    said = {part.name for part in understood.parts}
    return replace(understood, parts=(*understood.parts, *(one for one in parts if one.name not in said)))
