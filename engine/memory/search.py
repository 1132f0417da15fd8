"""Finds memories by words, by likeness, or by both.

Words are ranked by BM25 divided by the best score that the query allows, so that a weak match of one common
word counts for little; likeness is the cosine of vectors. Both halves pass the same filters, and whatever a
query holds is words to search for and never syntax.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from engine.core.memory import MemoryItem, MemoryLevel, MemoryLink, MemoryType
from engine.memory.likeness import Likeness, Vector
from engine.memory.scoring import Candidate, embedded_text, relevance, scope_words
from engine.memory.tables import TOKENIZER, Reading
from engine.value import dataclass

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
CANDIDATE_FACTOR = 4
"""How many times as many candidates are looked at where words are too frequent for that."""
COUNTS_KEPT = 20_000
"""Words whose frequency is kept from one search to the next."""
BM25_BEST = 2.2
"""The most that a word can count for, in units of its inverse document frequency (k1 + 1)."""
RELEVANCE_SHARE = 0.1
"""How much of a keyword score is the memory's relevance; the rest is how well the words match."""
POOL = 100
"""Candidates that each half brings at least."""
SCAN = 2_000
"""Memories up to which a search by likeness looks only at those that pass the filters."""
SEMANTIC_FLOOR = 0.1
"""Cosine below which the semantic half of a hybrid search brings nothing."""

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
            parts.append(reading.tagged("m"))
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
    """What the halves of a hybrid search count for; they are taken relative to their sum."""

    semantic: float = 0.4
    keyword: float = 0.6

    def blend(self, likeness: float, words: float) -> float:
        """One score of a memory's two."""
        return (self.semantic * likeness + self.keyword * words) / (self.semantic + self.keyword)


@dataclass(frozen=True, slots=True)
class SearchMatch:
    """A memory that a search brought up, and why."""

    memory: MemoryItem
    score: float
    """0 to 1."""
    semantic: float = 0.0
    """Cosine of the vectors."""
    keyword: float = 0.0
    """How well the words match, with a share of the memory's relevance."""
    words: tuple[str, ...] = ()
    """Words of the query that it holds."""
    link: MemoryLink | None = None
    """By which another match led to it."""
    superseded: str = ""
    """The newer memory that contradicts it."""
    timely: bool = False
    """Whether it was made when the query says."""
    relevance: float = 0.0
    """How much it matters at its age, 0 to 10."""


class Tokens:
    """Words as the full-text index knows them: SQLite itself cuts and stems them."""

    def __init__(self) -> None:
        self._scratch = sqlite3.connect(":memory:", check_same_thread=False)
        self._scratch.execute(f"create virtual table q using fts5(x, tokenize = '{TOKENIZER}')")
        self._scratch.execute("create virtual table qv using fts5vocab(q, 'instance')")

    def words_of(self, query: str) -> dict[str, str]:
        """The words of a query by their stem; none where it holds no letter or digit."""
        words = list(dict.fromkeys(_WORD.findall(query.casefold()[:10_000])))
        kept = [word for word in words if word not in STOP_WORDS] or words
        kept = kept[:QUERY_WORDS]
        self._scratch.executemany("insert into q(rowid, x) values(?, ?)", list(enumerate(kept)))
        rows = self._scratch.execute("select term, doc from qv order by doc").fetchall()
        self._scratch.rollback()
        return {str(term): kept[doc] for term, doc in rows}

    def close(self) -> None:
        """Close the scratch database."""
        self._scratch.close()


@dataclass(frozen=True, slots=True)
class _Match:
    """A query as the full-text index is asked it."""

    text: str
    best: float
    """The score of a memory that holds every word as often as one could."""
    frequent: tuple[tuple[str, float], ...] = ()
    """Words that bring up no memory by themselves: what is asked for each, and what it counts for."""


class _Score(NamedTuple):
    """The score of a candidate."""

    candidate: Candidate
    score: float
    semantic: float = 0.0
    keyword: float = 0.0


class MemorySearcher:
    """Looks through words, and through vectors where there are any; used in the reading thread only."""

    def __init__(self, likeness: Likeness | None = None) -> None:
        self._tokens = Tokens()
        self.likeness = likeness
        self._counted = 0
        self._counts_kept: dict[str, int] = {}

    def close(self) -> None:
        """Close the scratch database."""
        self._tokens.close()

    # -------------------------------------------------------------- what is asked

    def hybrid(
        self,
        reading: Reading,
        query: str,
        filters: Filters,
        weights: Weights,
        limit: int,
        offset: int = 0,
        vector: Vector | None = None,
    ) -> list[SearchMatch]:
        """The best memories by words and likeness, best first.

        The likeness of what the words bring up is looked up as well; what only likeness brings up counts for
        nothing by its words. Without the query's vector words count alone.
        """
        end = limit + offset
        liked = self.likeness if vector is not None and weights.semantic else None
        wordless = liked is not None and not weights.keyword
        by_words = [] if wordless else self._by_words(reading, query, filters, max(POOL, end))
        if liked is None or vector is None:
            return _whole(reading, by_words[offset:end])
        keyword = {score.candidate: score.keyword for score in by_words}
        near = self._by_likeness(reading, liked, vector, filters, max(POOL, end), SEMANTIC_FLOOR)
        semantic = {score.candidate: score.semantic for score in near}
        rest = [candidate for candidate in keyword if candidate not in semantic]
        cosines = liked.cosines(vector, [candidate.digest for candidate in rest])
        semantic |= {candidate: cosines.get(candidate.digest, 0.0) for candidate in rest}
        both = []
        for candidate in keyword | semantic:
            likeness, match = max(0.0, semantic[candidate]), keyword.get(candidate, 0.0)
            both.append(_Score(candidate, weights.blend(likeness, match), likeness, match))
        return _whole(reading, _best(both)[offset:end])

    def keyword(self, reading: Reading, query: str, filters: Filters, limit: int) -> list[SearchMatch]:
        """The memories whose words match best, best first; none for a query without words."""
        return _whole(reading, self._by_words(reading, query, filters, limit))

    def semantic(
        self,
        reading: Reading,
        text: str,
        filters: Filters,
        limit: int,
        floor: float,
        vector: Vector | None = None,
    ) -> list[SearchMatch]:
        """The memories whose texts are most like this one, best first; none below the floor.

        Without the text's vector, texts are as like as they have words in common.
        """
        if self.likeness is not None and vector is not None:
            return _whole(reading, self._by_likeness(reading, self.likeness, vector, filters, limit, floor))
        words = self._tokens.words_of(text).keys()
        found = []
        for match in self.keyword(reading, text, filters, max(POOL, limit)):
            whole = embedded_text(match.memory.description, match.memory.content)
            other = self._tokens.words_of(whole).keys()
            likeness = len(words & other) / math.sqrt(len(words) * len(other) or 1)
            if likeness >= floor:
                found.append(SearchMatch(match.memory, likeness, keyword=likeness))
        return sorted(found, key=lambda match: -match.score)[:limit]

    # -------------------------------------------------------------- words

    def _by_words(self, reading: Reading, query: str, filters: Filters, limit: int) -> list[_Score]:
        match = self._match(reading, query, filters)
        if match is None:
            return []
        condition, values = filters.condition(reading, first=False)
        size = limit * CANDIDATE_FACTOR if match.frequent else limit
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
            scores = []
            for candidate in _candidates(reading, "row", list(ranks), condition, values):
                covered = min(1.0, ranks[candidate.row] / match.best)
                mattering = relevance(candidate, reading.now) / 10
                score = (1 - RELEVANCE_SHARE) * covered + RELEVANCE_SHARE * mattering
                scores.append(_Score(candidate, score, keyword=score))
            if len(scores) >= limit or len(hits) < size:
                return _best(scores)[:limit]
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
            rows = reading.rows(f"select term, doc from vocabulary where term in ({marks})", *fresh)
            self._counts_kept |= dict.fromkeys(fresh, 0) | {str(row[0]): int(row[1]) for row in rows}
        return {term: self._counts_kept[term] for term in terms}

    # -------------------------------------------------------------- likeness

    def _by_likeness(
        self, reading: Reading, liked: Likeness, vector: Vector, filters: Filters, limit: int, floor: float
    ) -> list[_Score]:
        condition, values = filters.condition(reading, first=False)
        among, size = filters.few(reading), max(POOL, limit)
        while True:
            near = liked.nearest(vector, size, among)
            cosines = {digest: cosine for digest, cosine in near if cosine >= floor}
            scores = [
                _Score(candidate, cosines[candidate.digest], semantic=cosines[candidate.digest])
                for candidate in _candidates(reading, "digest", list(cosines), condition, values)
            ]
            # A few that are filtered away are no reason to go through eight times as many.
            if 2 * len(scores) >= limit or len(cosines) < size:
                return _best(scores)[:limit]
            size *= 8


def _idf(total: int, count: int) -> float:
    """As FTS5 weighs a word that stands in `count` of `total` texts."""
    return max(1e-6, math.log((max(total, count) - count + 0.5) / (count + 0.5)))


def _candidates(
    reading: Reading, column: str, keys: Sequence[object], condition: str, values: Sequence[object]
) -> Iterator[Candidate]:
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
        yield from (Candidate(*row) for row in rows)


def _whole(reading: Reading, scores: Sequence[_Score]) -> list[SearchMatch]:
    """The memories of candidates, in their order."""
    there = {memory.id: memory for memory in reading.all_memories([score.candidate.id for score in scores])}
    return [
        SearchMatch(there[score.candidate.id], score.score, score.semantic, score.keyword)
        for score in scores
        if score.candidate.id in there
    ]


def _portions(items: Sequence[object]) -> Iterator[Sequence[object]]:
    """The items, no more at a time than a statement takes parameters."""
    for at in range(0, len(items), 5_000):
        yield items[at : at + 5_000]


def _best(scores: list[_Score]) -> list[_Score]:
    """Best first; the newer of two that are equal."""
    return sorted(scores, key=lambda score: (-score.score, -score.candidate.row))
