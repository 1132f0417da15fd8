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
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.domain.memory import MemoryItem, MemoryLevel, MemoryType
from engine.memory.embedding import Vector
from engine.memory.reading import Reading
from engine.memory.scoring import relevance, scope_words
from engine.memory.tables import TOKENIZER
from engine.memory.vectors import Entry, SignatureIndex, cosine, unpack

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
POSTINGS = 12_000
"""Places of words that are ranked exactly; the rarest words come first, and at least one is taken."""
LEFT_OVER = 4
"""How many times as many candidates are looked at where words are too frequent for that."""
COUNTS_KEPT = 20_000
"""Words whose frequency is kept from one search to the next."""
BM25_BEST = 2.2
"""The most that a word can count for, in units of its inverse document frequency (k1 + 1)."""
RELEVANCE_SHARE = 0.1
"""How much of a keyword score is the memory's relevance; the rest is how well the words match (§6)."""
POOL = 100
"""Candidates that each half brings at least."""
SCAN = 2_000
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

    def condition(self, reading: Reading, *, first: bool = True) -> tuple[str, list[object]]:
        """The filters as a condition on memories `m`, and its parameters.

        Args:
            reading: at which event tags count.
            first: whether the filters may be what memories are looked up by; otherwise they are only checked,
                as where candidates are known already.
        """
        free = "" if first else "+"
        parts: list[str] = []
        values: list[object] = []
        for column, value in (("workflow", self.workflow), ("level", self.level), ("type", self.type)):
            if value:
                parts.append(f"{free}m.{column} = ?")
                values.append(str(value))
        if self.importance != (0.0, 10.0):
            parts.append(f"{free}m.importance between ? and ?")
            values += self.importance
        if self.confidence:
            parts.append("m.confidence >= ?")
            values.append(self.confidence)
        if self.created is not None:
            parts.append(f"{free}m.created_at between ? and ?")
            values += self.created
        for tag in self.tags:
            live = reading.live("g")
            parts.append(f"exists(select 1 from taggings g where g.owner = m.id and g.tag = ? and {live})")
            values.append(tag)
        return " and ".join(parts) or "1", values

    def few(self, reading: Reading) -> set[str] | None:
        """The texts of the memories that pass, if these are few; None if they are many or all.

        Among the texts nearest to a query, few that pass might be missing; of many, enough will be there.
        """
        condition, values = self.condition(reading)
        if condition == "1":
            return None
        source = "memories m"
        if self.tags:
            source = "taggings t cross join memories m on m.id = t.owner"
            condition = f"t.tag = ? and {reading.live('t')} and {condition}"
            values = [self.tags[0], *values]
        passing = f"from {source} where {reading.live('m')} and {condition} limit {SCAN + 1}"
        ((count,),) = reading.rows(f"select count(*) from (select 1 {passing})", *values)
        if count > SCAN:
            return None
        return {row[0] for row in reading.rows(f"select m.digest {passing}", *values)}

    @property
    def scope(self) -> tuple[str, ...]:
        """The words that hold the index itself to these filters."""
        return scope_words(self.workflow, self.level, self.type)


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
    frequent: tuple[tuple[str, float], ...] = ()
    """Words that bring up no memory by themselves: what is asked for each, and what it counts for."""


class _Candidate(NamedTuple):
    """As much of a memory as ranking needs; few of those that are ranked are read whole."""

    row: int
    id: str
    digest: str
    level: MemoryLevel
    importance: float
    confidence: float
    created_at: float
    access_count: int
    accessed_at: float | None


class _Score(NamedTuple):
    """What a candidate came to."""

    candidate: _Candidate
    score: float
    semantic: float = 0.0
    keyword: float = 0.0


class Finder:
    """Looks through words and vectors; used in the reading thread only."""

    def __init__(self, embedder: str) -> None:
        """Look for vectors of the embedder with this id; empty for none."""
        self._embedder = embedder
        self._tokens = Tokens()
        self.index = SignatureIndex()
        """The signs of the vectors of all texts; grows as texts are embedded."""
        self._counted = 0
        self._counts_kept: dict[str, int] = {}

    def load(self, reading: Reading) -> None:
        """Take up the vectors that are there."""
        rows = reading.rows("select digest, signature from vectors where embedder = ?", self._embedder)
        self.index.add((row[0], int.from_bytes(row[1], "big")) for row in rows)

    def take(self, entries: Sequence[Entry]) -> None:
        """Take up vectors that were kept just now."""
        self.index.add((digest, int.from_bytes(signs, "big")) for _, digest, signs, _ in entries)

    def close(self) -> None:
        """Give up what is kept beside the database."""
        self._tokens.close()

    # -------------------------------------------------------------- what is asked

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

        The likeness of what the words bring up is looked up as well; what only likeness brings up counts for
        nothing by its words. Where there is no vector, words count alone.
        """
        wanted = limit + offset
        by_words = self._by_words(reading, query, filters, max(POOL, wanted)) if weights.keyword else []
        keyword = {one.candidate: one.keyword for one in by_words}
        semantic: dict[_Candidate, float] = {}
        if vector is not None and weights.semantic:
            near = self._by_likeness(reading, vector, filters, max(POOL, wanted), SEMANTIC_FLOOR)
            semantic = {one.candidate: one.semantic for one in near}
            rest = [one for one in keyword if one not in semantic]
            semantic |= {one.candidate: one.semantic for one in self._compared(reading, vector, rest)}
        else:
            weights = Weights(0.0, 1.0)
        both = []
        for one in keyword | semantic:
            likeness, match = max(0.0, semantic.get(one, 0.0)), keyword.get(one, 0.0)
            both.append(_Score(one, weights.blend(likeness, match), likeness, match))
        return _whole(reading, _best(both)[offset:wanted])

    def keyword(self, reading: Reading, query: str, filters: Filters, limit: int) -> list[Found]:
        """The memories whose words match best, best first; none for a query without words."""
        return _whole(reading, self._by_words(reading, query, filters, limit))

    def semantic(
        self, reading: Reading, vector: Vector, filters: Filters, limit: int, floor: float
    ) -> list[Found]:
        """The memories whose vectors are nearest, best first; none below the floor."""
        return _whole(reading, self._by_likeness(reading, vector, filters, limit, floor))

    # -------------------------------------------------------------- words

    def _by_words(self, reading: Reading, query: str, filters: Filters, limit: int) -> list[_Score]:
        match = self._match(reading, query, filters)
        if match is None:
            return []
        condition, values = filters.condition(reading, first=False)
        size = limit * LEFT_OVER if match.frequent else limit
        while True:
            hits = reading.rows(
                "select rowid, rank from words where words match ? and rank match "
                "'bm25(1.0, 1.0, 1.0, 1.0, 0.0)' order by rank limit ?",
                match.text,
                size,
            )
            ranks = {int(hit[0]): -float(hit[1]) for hit in hits}
            for text, weight in match.frequent:
                # As one occurrence counts in a text of mean length.
                for (row,) in reading.rows("select rowid from words where words match ?", text):
                    if row in ranks:
                        ranks[row] += weight
            found = []
            for one in _candidates(reading, "row", list(ranks), condition, values):
                covered = min(1.0, ranks[one.row] / match.best)
                mattering = relevance(one, reading.now) / 10
                score = (1 - RELEVANCE_SHARE) * covered + RELEVANCE_SHARE * mattering
                found.append(_Score(one, score, keyword=score))
            if len(found) >= limit or len(hits) < size:
                return _best(found)[:limit]
            size *= 8

    def _match(self, reading: Reading, query: str, filters: Filters) -> _Match | None:
        terms = self._tokens.words_of(query)
        if not terms:
            return None
        total = int(reading.rows("select coalesce(max(row), 0) from memories")[0][0])
        counts = self._counts(reading, terms, total)
        chosen: list[str] = []
        postings = 0
        for term in sorted(terms, key=lambda term: counts[term]):
            postings += counts[term]
            if chosen and postings > POSTINGS:
                break
            chosen.append(term)
        best = sum(BM25_BEST * _idf(total, counts[term]) for term in terms)
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(terms[term] for term in chosen))
        text = f"{self._scope(reading, filters, total)}({words})"
        frequent = [
            (f'"{terms[term]}" AND {text}', _idf(total, counts[term])) for term in terms if term not in chosen
        ]
        return _Match(text, best, tuple(frequent))

    def _scope(self, reading: Reading, filters: Filters, total: int) -> str:
        """The filters that the index itself can hold a search to, as far as that spares it work."""
        scope = self._tokens.words_of(" ".join(filters.scope))
        counts = self._counts(reading, scope, total)
        return "".join(f'"{word}" AND ' for term, word in scope.items() if counts[term] <= POSTINGS)

    def _counts(self, reading: Reading, terms: Collection[str], total: int) -> dict[str, int]:
        """In how many memories, old texts included, each term stands."""
        # Counting goes through all places of a word, so counts are kept until memory has grown by a tenth.
        if not self._counted <= total <= self._counted * 1.1 or len(self._counts_kept) > COUNTS_KEPT:
            self._counted = total
            self._counts_kept.clear()
        fresh = [term for term in terms if term not in self._counts_kept]
        if fresh:
            marks = ", ".join("?" * len(fresh))
            found = reading.rows(f"select term, doc from vocabulary where term in ({marks})", *fresh)
            self._counts_kept |= dict.fromkeys(fresh, 0) | {str(row[0]): int(row[1]) for row in found}
        return {term: self._counts_kept[term] for term in terms}

    # -------------------------------------------------------------- likeness

    def _by_likeness(
        self, reading: Reading, vector: Vector, filters: Filters, limit: int, floor: float
    ) -> list[_Score]:
        condition, values = filters.condition(reading, first=False)
        found: list[_Score] = []
        seen = 0
        for digests in self.index.nearest(vector, max(POOL, limit), filters.few(reading)):
            near = list(_candidates(reading, "digest", digests, condition, values))
            found += [one for one in self._compared(reading, vector, near) if one.semantic >= floor]
            seen += len(near)
            # A few that are filtered away are no reason to go through eight times as many.
            if 2 * seen >= limit:
                break
        return _best(found)[:limit]

    def _compared(self, reading: Reading, vector: Vector, candidates: Sequence[_Candidate]) -> list[_Score]:
        """The candidates that have a vector, with their likeness."""
        blobs = self._blobs(reading, {one.digest for one in candidates})
        likeness = {digest: cosine(vector, blob) for digest, blob in blobs.items()}
        return [
            _Score(one, likeness[one.digest], semantic=likeness[one.digest])
            for one in candidates
            if one.digest in likeness
        ]

    def vectors(self, reading: Reading, digests: Iterable[str]) -> dict[str, Vector]:
        """The vectors of texts, by digest; those not embedded yet are missing."""
        return {digest: unpack(blob) for digest, blob in self._blobs(reading, digests).items()}

    def _blobs(self, reading: Reading, digests: Iterable[str]) -> dict[str, bytes]:
        out: dict[str, bytes] = {}
        for some in _portions(list(digests)):
            marks = ", ".join("?" * len(some))
            sql = f"select digest, vector from vectors where embedder = ? and digest in ({marks})"
            out |= {row[0]: row[1] for row in reading.rows(sql, self._embedder, *some)}
        return out


def _idf(total: int, count: int) -> float:
    """As FTS5 weighs a word that stands in `count` of `total` texts."""
    return max(1e-6, math.log((max(total, count) - count + 0.5) / (count + 0.5)))


def _candidates(
    reading: Reading, column: str, keys: Sequence[object], condition: str, values: Sequence[object]
) -> Iterator[_Candidate]:
    """The live memories with these row numbers or digests that pass the filters."""
    for some in _portions(keys):
        marks = ", ".join("?" * len(some))
        rows = reading.rows(
            f"""select m.row, m.id, m.digest, m.level, m.importance, m.confidence, m.created_at,
            coalesce(u.count, 0), u.at
            from memories m left join usages u on u.memory = m.id and {reading.live("u")}
            where m.{column} in ({marks}) and {reading.live("m")} and {reading.alive} and {condition}""",
            *some,
            reading.now,
            *values,
        )
        yield from (_Candidate(*row) for row in rows)


def _whole(reading: Reading, scores: Sequence[_Score]) -> list[Found]:
    """The memories of candidates, in their order."""
    there = {one.id: one for one in reading.all_memories([score.candidate.id for score in scores])}
    return [
        Found(there[one.candidate.id], one.score, one.semantic, one.keyword)
        for one in scores
        if one.candidate.id in there
    ]


def _portions(items: Sequence[object]) -> Iterator[Sequence[object]]:
    """The items, no more at a time than a statement takes parameters."""
    for at in range(0, len(items), 5_000):
        yield items[at : at + 5_000]


def _best(found: list[_Score]) -> list[_Score]:
    """Best first; the newer of two that are equal."""
    return sorted(found, key=lambda one: (-one.score, -one.candidate.row))
