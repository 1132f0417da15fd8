"""Finding memories by words, by likeness, or by both.

Words are ranked by BM25 over the best it could be for the query, so that a weak match of one common word
counts for little; likeness is the cosine of vectors. Both halves pass the same filters, and whatever the
query holds, it is words to look for and never syntax.
Source: spec master-loop-and-memory §1.7, §1.9 U6 to U10; spec data-stack §2 (coverage).
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.domain.memory import MemoryItem, MemoryLevel, MemoryType
from engine.memory.embedding import Vector
from engine.memory.reading import Reading
from engine.memory.scoring import relevance
from engine.memory.tables import TOKENIZER
from engine.memory.vectors import SignatureIndex, cosine, unpack

_STOP_WORDS = """
    a about after all also an and any are as at be because been but by can could did do does for from had
    has have he her him his how i if in into is it its just me more my no not of on one or our out she so
    some than that the their them then there these they this to up us was we were what when where which who
    why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that a query is better off without; a query of nothing else keeps them."""

QUERY_WORDS = 64
"""Words of a query that are looked for."""
POSTINGS = 30_000
"""Places of words that a search goes through; the rarest words come first, and at least one is taken."""
BM25_BEST = 2.2
"""The most that a word can count for, in units of its inverse document frequency (k1 + 1)."""
RELEVANCE_SHARE = 0.1
"""How much of a keyword score is the memory's relevance; the rest is how well the words match (§6)."""
POOL = 200
"""Candidates that each half brings at least."""
SCAN = 5_000
"""Memories up to which a search by likeness looks only at those that pass the filters."""
SEMANTIC_FLOOR = 0.1
"""Cosine below which the semantic half of a hybrid search brings nothing (§1.7)."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Filters:
    """Which memories count; both halves of a search pass the same ones."""

    workflow: str = ""
    level: MemoryLevel | None = None
    type: MemoryType | None = None
    tags: tuple[str, ...] = ()
    """All of them."""
    importance: tuple[float, float] = (0.0, 10.0)
    confidence: float = 0.0
    """At least."""
    created: tuple[float, float] | None = None
    """From and to, in seconds since 1970."""

    def condition(self) -> tuple[str, list[object]]:
        """The filters as a condition on memories `m`, and its parameters."""
        parts: list[str] = []
        values: list[object] = []
        for column, value in (("workflow", self.workflow), ("level", self.level), ("type", self.type)):
            if value:
                parts.append(f"m.{column} = ?")
                values.append(str(value))
        if self.importance != (0.0, 10.0):
            parts.append("m.importance between ? and ?")
            values += self.importance
        if self.confidence:
            parts.append("m.confidence >= ?")
            values.append(self.confidence)
        if self.created is not None:
            parts.append("m.created_at between ? and ?")
            values += self.created
        return " and ".join(parts) or "1", values

    def tagged(self, reading: Reading) -> tuple[str, list[object]]:
        """The condition with that on tags."""
        text, values = self.condition()
        for tag in self.tags:
            live = reading.live("g")
            text += f" and exists(select 1 from taggings g where g.owner = m.id and g.tag = ? and {live})"
            values.append(tag)
        return text, values

    @property
    def scope(self) -> tuple[str, ...]:
        """The words that hold the index itself to these filters."""
        level = f"level{self.level}" if self.level else ""
        kind = f"type{self.type.replace('_', '')}" if self.type else ""
        return tuple(word for word in (self.workflow, level, kind) if word)


@dataclass(frozen=True, slots=True)
class Weights:
    """What the halves of a hybrid search count for; they are taken relative to their sum (§1.7)."""

    semantic: float = 0.6
    keyword: float = 0.4

    def blend(self, likeness: float, words: float) -> float:
        """One score of a memory's two."""
        return (self.semantic * likeness + self.keyword * words) / (self.semantic + self.keyword)


@dataclass(frozen=True, slots=True)
class Found:
    """A memory that a search brought up, and why."""

    memory: MemoryItem
    score: float
    """0 to 1."""
    semantic: float = 0.0
    """Cosine of the vectors."""
    keyword: float = 0.0
    """How well the words match, with a share of the memory's relevance."""


class Tokens:
    """Words as the full-text index knows them: SQLite itself cuts and stems them."""

    def __init__(self) -> None:
        self._scratch = sqlite3.connect(":memory:", check_same_thread=False)
        self._scratch.execute(f"create virtual table q using fts5(x, tokenize = '{TOKENIZER}')")
        self._scratch.execute("create virtual table qv using fts5vocab(q, 'instance')")

    def words_of(self, query: str) -> dict[str, str]:
        """The words of a query by their stem; none where it holds no letter or digit."""
        words = list(dict.fromkeys(_WORD.findall(query.casefold()[:10_000])))
        told = [word for word in words if word not in STOP_WORDS] or words
        told = told[:QUERY_WORDS]
        self._scratch.executemany("insert into q(rowid, x) values(?, ?)", list(enumerate(told)))
        rows = self._scratch.execute("select term, doc from qv order by doc").fetchall()
        self._scratch.rollback()
        return {str(term): told[doc] for term, doc in rows}

    def close(self) -> None:
        """Give the scratch database up."""
        self._scratch.close()


@dataclass(frozen=True, slots=True)
class _Match:
    """A query as the full-text index is asked it."""

    text: str
    best: float
    """The score of a memory that holds every word as often as one could."""


class Finder:
    """Looks through words and vectors; used in the reading thread only."""

    def __init__(self, embedder: str) -> None:
        """Look for vectors of the embedder with this id; empty for none."""
        self._embedder = embedder
        self._tokens = Tokens()
        self.index = SignatureIndex()
        """The signs of the vectors of all texts; grows as texts are embedded."""

    def close(self) -> None:
        """Give up what is kept beside the database."""
        self._tokens.close()

    # -------------------------------------------------------------- both halves

    def hybrid(
        self,
        reading: Reading,
        query: str,
        vector: Vector | None,
        filters: Filters,
        weights: Weights,
        limit: int,
        offset: int = 0,
    ) -> list[Found]:
        """The best memories by words and likeness, best first.

        A memory that only one half brings up counts for nothing in the other one, save that the likeness of
        all candidates is looked up. Where there is no vector, words count alone.
        """
        wanted = limit + offset
        words = self.keyword(reading, query, filters, max(POOL, wanted)) if weights.keyword else []
        keyword = {one.memory.id: one for one in words}
        semantic: dict[str, Found] = {}
        if vector is not None and weights.semantic:
            near = self.semantic(reading, vector, filters, max(POOL, wanted), SEMANTIC_FLOOR)
            semantic = {one.memory.id: one for one in near}
            rest = [one.memory for one in words if one.memory.id not in semantic]
            semantic |= {one.memory.id: one for one in self._compared(reading, vector, rest)}
        else:
            weights = Weights(0.0, 1.0)
        both = []
        for ident in keyword | semantic:
            by_words, by_likeness = keyword.get(ident), semantic.get(ident)
            memory = (by_words or by_likeness).memory  # type: ignore[union-attr]
            likeness = max(0.0, by_likeness.semantic) if by_likeness else 0.0
            match = by_words.keyword if by_words else 0.0
            both.append(Found(memory, weights.blend(likeness, match), likeness, match))
        return _best(both)[offset:wanted]

    # -------------------------------------------------------------- words

    def keyword(self, reading: Reading, query: str, filters: Filters, limit: int) -> list[Found]:
        """The memories whose words match best, best first; none for a query without words."""
        match = self._match(reading, query, filters)
        if match is None:
            return []
        condition, values = filters.tagged(reading)
        size = limit
        while True:
            hits = reading.rows(
                "select rowid, rank from words where words match ? and rank match "
                "'bm25(1.0, 1.0, 1.0, 1.0, 0.0)' order by rank limit ?",
                match.text,
                size,
            )
            ranks = {row: -rank for row, rank in hits}
            found = [
                Found(
                    memory, score := self._word_score(ranks[row], match, memory, reading.now), keyword=score
                )
                for row, memory in _by_rows(reading, list(ranks), condition, values)
            ]
            if len(found) >= limit or len(hits) < size:
                return _best(found)[:limit]
            size *= 8

    def _word_score(self, rank: float, match: _Match, memory: MemoryItem, now: float) -> float:
        covered = min(1.0, rank / match.best)
        return (1 - RELEVANCE_SHARE) * covered + RELEVANCE_SHARE * relevance(memory, now) / 10

    def _match(self, reading: Reading, query: str, filters: Filters) -> _Match | None:
        terms = self._tokens.words_of(query)
        if not terms:
            return None
        total = int(reading.rows("select coalesce(max(row), 0) from memories")[0][0])
        counts = self._counts(reading, terms)
        chosen: list[str] = []
        postings = 0
        for term in sorted(terms, key=lambda term: counts[term]):
            postings += counts[term]
            if chosen and postings > POSTINGS:
                break
            chosen.append(term)
        best = sum(BM25_BEST * _idf(total, counts[term]) for term in chosen)
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(terms[term] for term in chosen))
        scope = "".join(f'scope:"{word}" AND ' for word in filters.scope)
        return _Match(f"{scope}{{content description reasoning tags}}:({words})", best)

    def _counts(self, reading: Reading, terms: Iterable[str]) -> dict[str, int]:
        """In how many memories, old texts included, each term stands."""
        names = list(terms)
        marks = ", ".join("?" * len(names))
        found = reading.rows(f"select term, doc from vocabulary where term in ({marks})", *names)
        return dict.fromkeys(names, 0) | {str(term): int(count) for term, count in found}

    # -------------------------------------------------------------- likeness

    def semantic(
        self, reading: Reading, vector: Vector, filters: Filters, limit: int, floor: float
    ) -> list[Found]:
        """The memories whose vectors are nearest, best first; none below the floor."""
        condition, values = filters.tagged(reading)
        found: list[Found] = []
        for digests in self.index.nearest(vector, max(POOL, limit), self._few(reading, condition, values)):
            near: list[MemoryItem] = []
            for some in _portions(digests):
                marks = ", ".join("?" * len(some))
                near += reading.memories(f"m.digest in ({marks}) and {condition}", [*some, *values])
            above = [one for one in self._compared(reading, vector, near) if one.semantic >= floor]
            found += above
            if len(found) >= limit or (near and not above):
                break
        return _best(found)[:limit]

    def _few(self, reading: Reading, condition: str, values: Sequence[object]) -> set[str] | None:
        """The texts of the memories that pass the filters, if these are few; None if they are many.

        Among the texts nearest to a query, few that pass might be missing; of many, enough will be there.
        """
        if condition == "1":
            return None
        sql = f"select m.digest from memories m where {reading.live('m')} and {condition} limit ?"
        rows = reading.rows(sql, *values, SCAN + 1)
        return {row[0] for row in rows} if len(rows) <= SCAN else None

    def _compared(self, reading: Reading, vector: Vector, memories: Sequence[MemoryItem]) -> list[Found]:
        """The memories that have a vector, with their likeness."""
        vectors = self.vectors(reading, {one.digest for one in memories})
        out = []
        for memory in memories:
            other = vectors.get(memory.digest)
            if other is not None:
                likeness = cosine(vector, other)
                out.append(Found(memory, likeness, semantic=likeness))
        return out

    def vectors(self, reading: Reading, digests: Iterable[str]) -> dict[str, Vector]:
        """The vectors of texts, by digest; those not embedded yet are missing."""
        out: dict[str, Vector] = {}
        for some in _portions(list(digests)):
            marks = ", ".join("?" * len(some))
            sql = f"select digest, vector from vectors where embedder = ? and digest in ({marks})"
            out |= {row[0]: unpack(row[1]) for row in reading.rows(sql, self._embedder, *some)}
        return out


def _idf(total: int, count: int) -> float:
    """As FTS5 weighs a word that stands in `count` of `total` texts."""
    return max(1e-6, math.log((max(total, count) - count + 0.5) / (count + 0.5)))


def _by_rows(
    reading: Reading, rows: Sequence[int], condition: str, values: Sequence[object]
) -> Iterator[tuple[int, MemoryItem]]:
    """The memories with these row numbers that pass the filters."""
    for some in _portions(rows):
        marks = ", ".join("?" * len(some))
        found = reading.memories(f"m.row in ({marks}) and {condition}", [*some, *values], order="m.row")
        numbers = reading.rows(
            f"select id, row from memories m where m.row in ({marks}) and {reading.live('m')}", *some
        )
        place = {row[0]: row[1] for row in numbers}
        for memory in found:
            yield place[memory.id], memory


def _portions(items: Sequence[object]) -> Iterator[Sequence[object]]:
    """The items, no more at a time than a statement takes parameters."""
    for at in range(0, len(items), 5_000):
        yield items[at : at + 5_000]


def _best(found: list[Found]) -> list[Found]:
    """Best first; the newer of two that are equal."""
    return sorted(found, key=lambda one: (-one.score, -one.memory.created_at, one.memory.id))
