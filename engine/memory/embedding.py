"""Turning texts into vectors: the port, and what always works without a model.

Source: spec data-stack §2; spec master-loop-and-memory §6 (embeddings). Vectors of different embedders are
never compared, so changing one means that the texts are embedded again.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import unicodedata
from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias

Vector: TypeAlias = "array[float]"
"""An `array("f")` of length 1."""


class EmbedderUnavailable(Exception):  # noqa: N818 - the house's faults say what happened
    """The embedder cannot answer just now; search goes on with words alone."""


class Embedder(Protocol):
    """Makes vectors of texts; those of similar texts have a cosine near 1."""

    @property
    def id(self) -> str:
        """Names model and version; stored with every vector."""

    @property
    def dimension(self) -> int:
        """Numbers in each vector; a multiple of 8."""

    @property
    def note(self) -> str:
        """What it cannot do, for the operator; empty when it understands meaning."""

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> list[Vector]:
        """One vector of length 1 for each text.

        Raises:
            EmbedderUnavailable: not just now; the message says why.
        """


class HashEmbedder:
    """Vectors of the words and letter groups of a text, by hashing alone: no model, the same everywhere.

    It finds other spellings and forms of a word, and no other word of the same meaning. Each feature stands
    for 248 signs that its hash gives; a text is their sum.
    """

    id = "hash-248@1"
    dimension = 248
    note = "no language model: similarity is by words and spelling, not by meaning"

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> list[Vector]:
        """See `Embedder`; never unavailable."""
        return await asyncio.to_thread(lambda: [hashed(text) for text in texts])


_LANES = 16
"""Bits in which the signs of one dimension are counted."""
_FEATURES = 4_000
"""Features taken of a text; the sum of their weights stays within a lane."""
_WORD = re.compile(r"\w+")
_SPREAD = tuple(
    b"".join(((byte >> (7 - bit)) & 1).to_bytes(2, "little") for bit in range(8)) for byte in range(256)
)


@lru_cache(maxsize=50_000)
def _signs(feature: str) -> int:
    """248 bits of the feature's hash, each in a lane of its own, so that adding numbers adds all of them."""
    digest = hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=31).digest()
    return int.from_bytes(b"".join([_SPREAD[byte] for byte in digest]), "little")


def hashed(text: str) -> Vector:
    """The vector of a text; all zeros for a text without a word."""
    total = weight = taken = 0
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        padded = f"<{word[:40]}>"
        grams = [padded[at : at + 4] for at in range(len(padded) - 3)]
        total += 4 * _signs(padded)
        weight += 4
        for gram in grams:
            total += _signs(gram)
        weight += len(grams)
        taken += 1 + len(grams)
        if taken >= _FEATURES:
            break
    counts = array("H", total.to_bytes(248 * _LANES // 8, "little"))
    return unit([2 * count - weight for count in counts])


def unit(numbers: Sequence[float]) -> Vector:
    """The vector of length 1 in the direction of these numbers; zeros stay zeros."""
    length = sum(number * number for number in numbers) ** 0.5
    return array("f", [number / length for number in numbers] if length else numbers)


class NoEmbedder:
    """Search by words alone."""

    id = ""
    dimension = 0
    note = "vectors are off: search is by words alone"

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> list[Vector]:
        """See `Embedder`.

        Raises:
            EmbedderUnavailable: always.
        """
        raise EmbedderUnavailable(self.note)
