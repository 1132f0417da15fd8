"""Which component a directive means: the base generator, sample's tests, the explorer's plans.

Each component has names: its id, its aliases, the last parts of its paths. A name fits when all of its words
are in the directive, as they stand or as the beginning of one (`gen` for “generator”). A reading that rests
on some of another one's words only gives way to it (`sample` to `sample/stats.py`). Where two are left they
are put to the operator, as is a directive that names none.
Source: mindX spec §3, behaviours 33 and 36.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.domain.improvement import Component
from engine.parameters.components import references
from engine.parameters.likeness import folded

CLOSE = 0.9
"""Of two readings on the same words, one with less than this part of the other's letters gives way."""
BEGINNING = 3
"""Letters that a word has in common with a longer one at least."""
WORTH = 0.8
"""What a beginning counts of a whole word."""
_WORD = re.compile(r"[^\W_]+")
_EMPTY = frozenset(
    {"tool", "agent", "py", "toml", "asl", "the", "a", "an", "of", "and", "sandbox", "json", "md"}
)
"""Words of names that say nothing of which one is meant."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A component that a directive may mean, with why."""

    component: Component
    rule: str
    letters: float
    """How much of its name was found."""
    words: frozenset[str] = frozenset()
    """The directive's words that it rests on."""


def readings(directive: str, components: Iterable[Component]) -> list[Reading]:
    """The components that a directive names, the best first."""
    said = _WORD.findall(folded(directive[:8_000]))
    whole = directive.strip().casefold()
    found = []
    for component in components:
        best: Reading | None = None
        for name, what in _names(component):
            reading = _exact(component, name, what, whole) or _fits(component, name, what, said)
            if reading is not None and (best is None or reading.letters > best.letters):
                best = reading
        if best is not None:
            found.append(best)
    return sorted(found, key=lambda one: (-one.letters, one.component.id))


def close(found: Sequence[Reading]) -> list[Reading]:
    """The readings that give way to no other."""
    return [one for one in found if not any(_better(other, one) for other in found)]


def unknown(directive: str, found: Iterable[Reading]) -> list[str]:
    """Tools and agents that a directive names, as `foo_tool`, and that no reading is."""
    words = frozenset[str]().union(*(one.words for one in found))
    return [name for name in references(directive) if not words & set(_WORD.findall(name)) - _EMPTY]


def _better(other: Reading, one: Reading) -> bool:
    """Whether a reading gives way to another one."""
    return one.words < other.words or (one.words == other.words and one.letters < other.letters * CLOSE)


def _names(component: Component) -> Iterable[tuple[str, str]]:
    yield component.id, "its id"
    for alias in component.aliases:
        yield alias, "a name of it"
    if len(component.paths) == 1:
        yield component.paths[0], "its path"
        yield component.paths[0].rpartition("/")[2], "its file"


def _exact(component: Component, name: str, what: str, whole: str) -> Reading | None:
    if name.casefold() != whole:
        return None
    words = frozenset(_WORD.findall(folded(name)))
    return Reading(component, f"{name} is {what}", 1_000.0, words)


def _fits(component: Component, name: str, what: str, said: Sequence[str]) -> Reading | None:
    words = [word for word in _WORD.findall(folded(name)) if word not in _EMPTY]
    letters, how, rests = 0.0, [], set()
    for word in words:
        if word in said:
            letters += len(word)
            how.append(word)
            rests.add(word)
            continue
        near = [one for one in said if _begins(word, one)]
        if not near:
            return None
        letters += len(word) * WORTH
        how.append(f"{near[0]} for {word}")
        rests.add(near[0])
    if not letters:
        return None
    return Reading(component, f"{name} is {what}: {', '.join(how)}", letters, frozenset(rests))


def _begins(word: str, other: str) -> bool:
    short, long = sorted((word, other), key=len)
    return len(short) >= BEGINNING and long.startswith(short)
