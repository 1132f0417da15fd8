"""Likeness of texts by their vectors, as a search uses it; without it words count alone."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import Protocol, TypeAlias

Vector: TypeAlias = "array[float]"
"""An `array("f")` of length 1."""


class Likeness(Protocol):
    """The vectors of texts that were ever remembered; called in the reading thread."""

    embedder: str
    """Names the model and its digest; empty where there is none."""
    note: str
    """One sentence for the reader where likeness is missing, incomplete or faulty; empty for none."""

    def nearest(
        self, query: Vector, count: int, among: Collection[str] | None = None
    ) -> list[tuple[str, float]]:
        """Digests of texts and their cosine, best first.

        Args:
            query: what they shall be near to.
            count: how many at most.
            among: only these; None for all.
        """
        ...

    def cosines(self, query: Vector, digests: Sequence[str]) -> dict[str, float]:
        """The cosine of those of these texts that have a vector."""
        ...

    def vector(self, digest: str) -> Vector | None:
        """That of a text; None where it has none."""
        ...
