"""BM25: how much texts are about the words of a query."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

K1, B = 1.2, 0.75


class Bm25:
    """Scores documents; a word counts by how few of them hold it.

    Args:
        documents: how often each word stands in each.
        others: documents with none of the words that are counted beside them, so that few documents tell
            rare words from common ones too.
    """

    def __init__(self, documents: Sequence[Mapping[str, int]], others: int = 0) -> None:
        self._documents, self._count = documents, len(documents) + others
        self._lengths = [sum(words.values()) for words in documents]
        self._average = sum(self._lengths) / max(len(documents), 1) or 1.0
        self._among = Counter(word for words in documents for word in words)

    def rarity(self, word: str) -> float:
        """The inverse document frequency of a word; more than 0."""
        among = self._among[word]
        return math.log(1 + (self._count - among + 0.5) / (among + 0.5))

    def scores(self, query: Iterable[str]) -> list[float]:
        """What each document scores for the words of a query, each word once."""
        asked = {word: self.rarity(word) for word in sorted(set(query))}
        lengths = [K1 * (1 - B + B * length / self._average) for length in self._lengths]
        return [
            math.fsum(
                rarity * words[word] * (K1 + 1) / (words[word] + length)
                for word, rarity in asked.items()
                if word in words
            )
            for words, length in zip(self._documents, lengths, strict=True)
        ]
