"""Programs with words left out, doubled, exchanged or taken from other programs, drawn from a seed."""

from __future__ import annotations

import random
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from engine.bdi.expressions import Tokens
from tests.engine.bdi.conformance.cases import case_files, read_cases
from tests.engine.bdi.corpus import CORPUS

_EXTRA = (
    "X",
    "_",
    "f(X,Y)",
    "[H|T]",
    "1e300",
    "-",
    "not",
    "!",
    "[",
    ")",
    "{",
    "}",
    "'",
    '"',
    "::",
    "/*",
    ".",
)
_TAKE_THE_PLACE = {"name", "variable", "number", "string"}


class _Word(NamedTuple):
    kind: str
    text: str
    """With what stands behind it up to the next word."""


@cache
def _originals() -> tuple[tuple[_Word, ...], ...]:
    """The words of each program that the tests know."""
    texts = [*CORPUS.values(), *(case.text for path in case_files() for case in read_cases(path))]
    return tuple(tuple(_words(text)) for text in texts)


def _words(text: str) -> list[_Word]:
    tokens = Tokens(text)
    offsets = [*tokens.offsets, len(text)]
    pieces = [text[start:stop] for start, stop in pairwise(offsets)]
    return list(map(_Word, tokens.kinds, pieces))


def mutated_program(seed: int) -> str:
    """A program of the tests with one to four changes; the same seed gives the same one.

    Most changes put a word in the place of another of its kind, so that many programs can still be read.
    """
    rng = random.Random(f"mutated {seed}")
    words = list(rng.choice(_originals()))
    for _ in range(rng.randint(1, 4)):
        other = rng.choice(_originals())
        place, there = rng.randrange(len(words)), rng.randrange(len(other))
        match rng.randrange(12):
            case 0:
                words[place : place + rng.randint(1, 3)] = []
            case 1:
                words.insert(place, words[place])
            case 2:
                words[place:place] = other[there : there + rng.randint(1, 12)]
            case 3:
                words.insert(place, _Word("", f" {rng.choice(_EXTRA)} "))
            case _:
                _exchange(words, other, rng)
        words = words or [_Word("", " ")]
    return "".join(word.text for word in words)


def _exchange(words: list[_Word], other: tuple[_Word, ...], rng: random.Random) -> None:
    """Put a word of another program, or of this one, in the place of one of its kind."""
    places = [at for at, word in enumerate(words) if word.kind in _TAKE_THE_PLACE]
    if places:
        at = rng.choice(places)
        alike = [word for word in (*other, *words) if word.kind == words[at].kind]
        words[at] = rng.choice(alike)
