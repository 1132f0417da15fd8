"""Which component a directive means: the base generator, sample's tests, the explorer's plans.

Each component has names: its id, its aliases, the last parts of its paths. A name fits when all of its words
are in the directive, as they stand or as the beginning of one (`gen` for “generator”); the name with the most
letters found wins. Two components that are close, or none, are put to the operator.
Source: mindX spec §3, behaviours 33 and 36.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.domain.improvement import Component
from engine.parameters.likeness import folded

CLOSE = 0.9
"""A second reading with at least this part of the first one's letters is close."""
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
    """The best reading with those that are as good or nearly so."""
    return [one for one in found if one.letters >= found[0].letters * CLOSE]


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
    return Reading(component, f"{name} is {what}", 1_000.0)


def _fits(component: Component, name: str, what: str, said: Sequence[str]) -> Reading | None:
    words = [word for word in _WORD.findall(folded(name)) if word not in _EMPTY]
    letters, how = 0.0, []
    for word in words:
        if word in said:
            letters += len(word)
            how.append(word)
            continue
        near = [one for one in said if _begins(word, one)]
        if not near:
            return None
        letters += len(word) * WORTH
        how.append(f"{near[0]} for {word}")
    return Reading(component, f"{name} is {what}: {', '.join(how)}", letters) if letters else None


def _begins(word: str, other: str) -> bool:
    short, long = sorted((word, other), key=len)
    return len(short) >= BEGINNING and long.startswith(short)
