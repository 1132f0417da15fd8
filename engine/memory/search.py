"""Finds memories by words, by likeness, or by both, and says why each was found.

Words are ranked by BM25 divided by the best score that the query allows, so that a weak match of one common
word counts for little; likeness is the cosine of vectors. Both halves pass the same filters. What is linked
with a strong match is found with it, and of two that contradict each other the newer one comes first.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from engine.core.memory import LinkType, MemoryItem, MemoryLevel, MemoryLink, MemoryType
from engine.memory.commands import owner_tag
from engine.memory.connection import MemoryRow
from engine.memory.embedding import Vector
from engine.memory.query import Query, Span, parsed
from engine.memory.scoring import Candidate, embedded_text, rarity, relevance, scope_words
from engine.memory.tables import LINKS, Reading
from engine.memory.vectors import StoredLikeness
from engine.memory.words import STOP_WORDS, Tokens, beginnings, nearest_words, phrase
from engine.value import dataclass, replace

POSTINGS = 15_000
"""Places of words that are ranked exactly; the rarest words come first, and at least one is taken."""
CANDIDATE_FACTOR = 4
"""How many times as many candidates are looked at where words are too frequent for that."""
COUNTS_KEPT = 20_000
"""Words whose frequency is kept from one search to the next."""
BM25_BEST = 2.2
"""The most that a word can count for, in units of its inverse document frequency (k1 + 1)."""
RELEVANCE_SHARE = 0.1
"""How much of its score a memory loses that matters no more."""
TIMELY = 0.3
"""What a memory gains that was made when the query says."""
CLEAR_WORDS = 0.28
"""Coverage from which a match is no chance one; less, by the root, for more words than `CLEAR_COUNT`."""
CLEAR_COUNT = 4
"""Words of a query up to which that coverage is asked for."""
CLEAR_BESIDE = 0.5
"""The same where likeness counts as well, which tells more."""
CLEAR_LIKENESS = 0.4
"""Cosine from which a match is no chance one."""
FEW = 50
"""Memories below which any word of the query is no chance match, as nothing can be said of how rare it is."""
BEHIND = 1e-9
"""What stop words count for; it puts what they alone bring up behind all else."""
STRONG = 5
"""Matches whose links are followed."""
LINKED = 0.5
"""What a link carries over of a match's score."""
SUPERSEDED = 0.5
"""What is left of the score of a memory that a newer one contradicts."""
MISSPELT = 2
"""Words of a query, standing nowhere, for which others are looked for."""
SHORT = 4
"""Letters below which a word is not taken for a misspelt one."""
SMALL = 5_000
"""Memories up to which a misspelt word is compared with all words, and not with those that begin alike."""
NAMED = 4_000
"""Characters of a memory in which words of the query are looked for to say why it was found."""
POOL = 100
"""Candidates that each half brings at least."""
WORDS_POOL = 30
"""Candidates where words count alone."""
SCAN = 2_000
"""Memories up to which a search by likeness looks only at those that pass the filters."""
PARAMETERS = 5_000
"""That a statement takes at most."""
SEMANTIC_FLOOR = 0.1
"""Cosine below which the semantic half of a hybrid search brings nothing."""


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
    created: Span | None = None
    """From and to, in seconds since 1970."""
    agent: str = ""
    """Whose work they belong to; also what they name as their source, such as operator."""

    def narrowed(self, query: Query) -> Filters:
        """With the filters of a query where there are none yet."""
        return replace(
            self,
            level=self.level or query.level,
            type=self.type or query.type,
            created=self.created or query.created,
            agent=self.agent or query.agent,
        )

    def condition(self, reading: Reading, *, first: bool = True) -> tuple[str, list[object]]:
        """The filters as a condition on memories `m`, and its parameters.

        Args:
            reading: at which event tags count.
            first: whether the filters may be what memories are looked up by; otherwise they are only checked,
                as where candidates are known already.
        """
        free = "" if first else reading.connection.unindexed
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
        if self.agent:
            owned = f"select a.owner from taggings a where a.tag = ? and {reading.live('a')}"
            parts.append(f"({free}m.workflow in ({owned}) or m.source = ?)")
            values += (owner_tag(self.agent), self.agent)
        for tag in self.tags:
            parts.append(reading.tagged("m"))
            values.append(tag)
        return " and ".join(parts) or "true", values

    def few(self, reading: Reading) -> set[str] | None:
        """The texts of the memories that pass, if these are few; None if they are many or all.

        Among the texts nearest to a query, few that pass might be missing; of many, enough will be there.
        """
        condition, values = self.condition(reading)
        if condition == "true":
            return None
        source = "memories m"
        if self.tags:
            source = "taggings t cross join memories m"
            condition = f"m.id = t.owner and t.tag = ? and {reading.live('t')} and {condition}"
            values = [self.tags[0], *values]
        passing = f"from {source} where {reading.live('m')} and {condition} limit {SCAN + 1}"
        ((count,),) = reading.rows(f"select count(*) from (select 1 {passing}) passing", *values)
        if count > SCAN:
            return None
        return {row[0] for row in reading.rows(f"select m.digest {passing}", *values)}

    def newest(self, reading: Reading, count: int) -> list[int]:
        """The rows of the newest memories that pass."""
        condition, values = self.condition(reading)
        sql = f"select m.row from memories m where {reading.live('m')} and {reading.alive} and {condition}"
        rows = reading.rows(
            f"{sql} order by m.created_at desc, m.row desc limit ?", reading.now, *values, count
        )
        return [row[0] for row in rows]

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
    """What it is ranked by."""
    semantic: float = 0.0
    """Cosine of the vectors."""
    keyword: float = 0.0
    """How well the words match, 0 to 1."""
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
    clear: bool = True
    """Whether it is more than the nearest of what does not fit."""


class _Score(NamedTuple):
    """The score of a candidate."""

    candidate: Candidate
    score: float
    semantic: float = 0.0
    keyword: float = 0.0
    link: MemoryLink | None = None
    superseded: str = ""
    timely: bool = False
    clear: bool = True


class MemorySearcher:
    """Looks through words, and through vectors where there are any; used in the reading thread only."""

    def __init__(self, likeness: StoredLikeness | None = None) -> None:
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
        nothing by its words. Without the query's vector words count alone. Where no memory holds a phrase, or
        all hold a word that none shall, the nearest are those with any of the words.
        """
        asked, end = parsed(query, reading.now), limit + offset
        filters = filters.narrowed(asked)
        scores = self._scored(reading, asked, filters, weights, end, vector)
        if not scores and (asked.phrases or asked.without):
            loose = " ".join((asked.text, *asked.without))
            asked = replace(asked, text=loose, phrases=(), without=())
            scores = self._scored(reading, asked, filters, weights, end, vector)
            scores = [score._replace(clear=False) for score in scores]
        if not (asked.phrases or asked.without):
            scores = _with_links(reading, scores, end, filters)
        words = self._tokens.words_of(asked.text)
        return self._whole(reading, scores[offset:end], words)

    def _scored(
        self,
        reading: Reading,
        asked: Query,
        filters: Filters,
        weights: Weights,
        end: int,
        vector: Vector | None,
    ) -> list[_Score]:
        """All that is found, best first, without what links lead to."""
        size = max(POOL if vector is not None else WORDS_POOL, end)
        condition, values = filters.condition(reading, first=False)
        terms = self._tokens.words_of(asked.text)
        shunned = _any_of(asked.without)
        never = set(reading.connection.words.matching(shunned)) if shunned else set[int]()
        if not terms:
            newest = filters.newest(reading, size + len(never)) if asked.lists else []
            listed = _candidates(reading, "row", newest, condition, values)
            keyword = {candidate: 1.0 for candidate in listed if candidate.row not in never}
        elif weights.keyword or vector is None or self.likeness is None:
            keyword = self._by_words(reading, terms, asked, filters, size)
        else:
            keyword = {}
        semantic: dict[Candidate, float] = {}
        if terms and self.likeness is not None and vector is not None and weights.semantic:
            cosines = self.likeness.cosines(vector, [candidate.digest for candidate in keyword])
            semantic = {candidate: max(0.0, cosines.get(candidate.digest, 0.0)) for candidate in keyword}
            if not asked.phrases:
                near = self._by_likeness(reading, vector, filters, size, SEMANTIC_FLOOR)
                semantic |= {one: cosine for one, cosine in near.items() if one.row not in never}
        else:
            weights = Weights(0.0, 1.0)
        if asked.around is not None and terms:
            made = replace(filters, created=filters.created or asked.around).newest(reading, size)
            then = _candidates(reading, "row", made, condition, values)
            keyword |= {one: 0.0 for one in then if one not in keyword and one.row not in never}
        least = CLEAR_BESIDE if semantic else CLEAR_WORDS * min(1.0, CLEAR_COUNT / max(1, len(terms))) ** 0.5
        if _total(reading) < FEW:
            least = 10 * BEHIND
        scores = []
        for candidate in keyword | semantic:
            likeness, match = semantic.get(candidate, 0.0), keyword.get(candidate, 0.0)
            timely = asked.around is not None and asked.around[0] <= candidate.created_at <= asked.around[1]
            matters = relevance(candidate, reading.now) / 10
            score = weights.blend(likeness, match) + (TIMELY if timely else 0.0)
            score = matters if asked.lists else score * (1 - RELEVANCE_SHARE * (1 - matters))
            clear = match >= least or likeness >= CLEAR_LIKENESS or timely
            scores.append(_Score(candidate, score, likeness, match, timely=timely, clear=clear))
        return _best(scores)

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
            near = self._by_likeness(reading, vector, filters, limit, floor)
            scores = [_Score(candidate, cosine, semantic=cosine) for candidate, cosine in near.items()]
            return self._whole(reading, _best(scores)[:limit], {})
        words = self._tokens.words_of(text)
        by_words = self._by_words(reading, words, Query(text), filters, max(POOL, limit))
        found = []
        for match in self._whole(reading, [_Score(one, 0.0) for one in by_words], {}):
            whole = embedded_text(match.memory.description, match.memory.content)
            other = self._tokens.words_of(whole)
            likeness = len(words.keys() & other.keys()) / math.sqrt(len(words) * len(other) or 1)
            if likeness >= floor:
                found.append(replace(match, score=likeness, keyword=likeness))
        return sorted(found, key=lambda match: -match.score)[:limit]

    # -------------------------------------------------------------- words

    def _by_words(
        self, reading: Reading, terms: Mapping[str, str], asked: Query, filters: Filters, limit: int
    ) -> dict[Candidate, float]:
        """How well the words of memories match; stop words bring up what nothing else would."""
        stops = {term for term, text in terms.items() if _first(text) in STOP_WORDS}
        content = {term: text for term, text in terms.items() if term not in stops} or dict(terms)
        found = self._ranked(reading, content, asked, filters, limit)
        if len(found) < limit and len(content) < len(terms):
            rest = {term: terms[term] for term in terms if term in stops}
            behind = self._ranked(reading, rest, asked, filters, limit)
            found = {candidate: BEHIND * match for candidate, match in behind.items()} | found
        return found

    def _ranked(
        self, reading: Reading, terms: Mapping[str, str], asked: Query, filters: Filters, limit: int
    ) -> dict[Candidate, float]:
        if not terms:
            return {}
        total = _total(reading)
        counts = self._counts(reading, terms, total)
        weights = {term: _forms(terms[term]) * rarity(total, counts[term]) for term in terms}
        best = BM25_BEST * sum(weights.values())
        terms, counts = dict(terms), dict(counts)
        for term in [term for term in terms if not counts[term]][:MISSPELT]:
            others = self._instead_of(reading, term, total)
            if others:
                counts[term] = sum(others.values())
                terms[term] = " OR ".join(f'"{other}"' for other in others)
        chosen: list[str] = []
        postings = 0
        for term in sorted(terms, key=lambda term: counts[term]):
            postings += counts[term] * _forms(terms[term])
            if chosen and postings > POSTINGS:
                break
            chosen.append(term)
        text = self._expression(reading, [terms[term] for term in chosen], asked, filters, total)
        frequent = [term for term in terms if term not in chosen]
        condition, values = filters.condition(reading, first=False)
        size = limit * CANDIDATE_FACTOR if frequent else limit
        while True:
            hits = reading.connection.words.ranked(text, size)
            ranks = dict(hits)
            for term in frequent:
                # As one occurrence counts in a text of mean length.
                for row in reading.connection.words.matching(f"({terms[term]}) AND {text}"):
                    if row in ranks:
                        ranks[row] += weights[term]
            found = {
                candidate: min(1.0, ranks[candidate.row] / best)
                for candidate in _candidates(reading, "row", list(ranks), condition, values)
            }
            if len(found) >= limit or len(hits) < size:
                return found
            size *= 8

    def _expression(
        self, reading: Reading, words: Iterable[str], asked: Query, filters: Filters, total: int
    ) -> str:
        """What the index is asked: any of the words, all phrases, none of what shall not be there.

        It holds the search to the filters as well, as far as that spares it work.
        """
        scope = self._tokens.words_of(" ".join(filters.scope))
        counts = self._counts(reading, scope, total)
        held = [word for term, word in scope.items() if counts[term] <= POSTINGS]
        phrases = list(filter(None, map(phrase, asked.phrases)))
        never = _any_of(asked.without)
        text = " AND ".join([*held, f"({' OR '.join(dict.fromkeys(words))})", *phrases])
        return f"({text}) NOT ({never})" if never else f"({text})"

    def _instead_of(self, reading: Reading, term: str, total: int) -> dict[str, int]:
        """Stems that a word may stand for that stands nowhere, and in how many texts they stand."""
        if len(term) < SHORT:
            return {}
        rows: list[MemoryRow] = []
        for start in [""] if total <= SMALL else beginnings(term):
            sql = "select term, doc from vocabulary where term >= ? and term < ?"
            rows += reading.rows(sql, start, start + "\U0010ffff")
        counts = {str(row[0]): int(row[1]) for row in rows if not row[0].startswith("scope")}
        near = nearest_words(term, counts.items())
        # Where a stem is not its own stem the index cannot be asked for it.
        return {other: counts[other] for other in near if other in self._tokens.words_of(other)}

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
        self, reading: Reading, vector: Vector, filters: Filters, limit: int, floor: float
    ) -> dict[Candidate, float]:
        condition, values = filters.condition(reading, first=False)
        assert self.likeness is not None
        among, size = filters.few(reading), max(POOL, limit)
        while True:
            near = self.likeness.nearest(vector, size, among)
            cosines = {digest: cosine for digest, cosine in near if cosine >= floor}
            candidates = _candidates(reading, "digest", list(cosines), condition, values)
            found = {candidate: cosines[candidate.digest] for candidate in candidates}
            # A few that are filtered away are no reason to go through eight times as many.
            if 2 * len(found) >= limit or len(cosines) < size:
                return found
            size *= 8

    # -------------------------------------------------------------- what is shown

    def _whole(
        self, reading: Reading, scores: Sequence[_Score], terms: Mapping[str, str]
    ) -> list[SearchMatch]:
        """The memories of candidates, in their order, with the words of the query that they hold."""
        idents = [score.candidate.id for score in scores]
        there = {memory.id: memory for memory in reading.all_memories(idents)}
        named = {term: _first(text) for term, text in terms.items() if _first(text) not in STOP_WORDS}
        texts = [
            " ".join((memory.content[:NAMED], memory.description, memory.reasoning, *memory.tags))
            for memory in there.values()
        ]
        held = dict(zip(there, self._tokens.stems_of(texts), strict=True)) if named else {}
        return [
            SearchMatch(
                there[candidate.id],
                words=tuple(word for term, word in named.items() if term in held[candidate.id]),
                relevance=relevance(candidate, reading.now),
                **{name: value for name, value in score._asdict().items() if name != "candidate"},
            )
            for score in scores
            if (candidate := score.candidate).id in there
        ]


def _with_links(reading: Reading, scores: list[_Score], end: int, filters: Filters) -> list[_Score]:
    """The candidates with what strong ones are linked with, the newer of contradicting ones first."""
    first = scores[:end]
    if not first:
        return scores
    known = {score.candidate.id: score for score in scores}
    marks = ", ".join("?" * len(first))
    idents = [score.candidate.id for score in first]
    links: list[MemoryLink] = []
    for column in ("source", "target"):
        links += reading.many(LINKS, f"t.{column} in ({marks})", idents, order="t.strength desc", limit=500)
    strong = {score.candidate.id for score in first[:STRONG] if 2 * score.score >= first[0].score}
    wanted = [
        link
        for link in links
        if link.type is LinkType.CONTRADICTS or link.source in strong or link.target in strong
    ]
    ends = {ident for link in wanted for ident in (link.source, link.target)} - known.keys()
    condition, values = filters.condition(reading, first=False)
    for candidate in _candidates(reading, "id", sorted(ends), condition, values):
        known[candidate.id] = _Score(candidate, 0.0)
    for link in wanted:
        for here, there in ((link.source, link.target), (link.target, link.source)):
            if here in strong and there in known:
                carried = LINKED * link.strength * known[here].score
                if carried > known[there].score:
                    known[there] = known[there]._replace(score=carried, link=link, clear=known[here].clear)
    for link in wanted:
        if link.type is LinkType.CONTRADICTS and link.source in known and link.target in known:
            pair = (known[link.source], known[link.target])
            old, new = sorted(pair, key=lambda score: (score.candidate.created_at, score.candidate.row))
            known[new.candidate.id] = new._replace(score=max(new.score, old.score), link=new.link or link)
            known[old.candidate.id] = old._replace(score=old.score * SUPERSEDED, superseded=new.candidate.id)
    return _best(known.values())


def _any_of(texts: Iterable[str]) -> str:
    """What the index is asked for texts that hold one of these words or phrases; empty for none."""
    return " OR ".join(filter(None, map(phrase, texts)))


def _total(reading: Reading) -> int:
    """How many memories there are, old texts included."""
    return int(reading.rows("select coalesce(max(row), 0) from memories")[0][0])


def _first(text: str) -> str:
    """The first form of a word that the index is asked for."""
    return text.partition(" OR ")[0].strip('"*').lower()


def _forms(text: str) -> int:
    """How many forms of a word are asked for."""
    return 1 + text.count(" OR ")


def _candidates(
    reading: Reading, column: str, keys: Sequence[object], condition: str, values: Sequence[object]
) -> Iterator[Candidate]:
    """The live memories with these row numbers, ids or digests of texts that pass the filters."""
    for at in range(0, len(keys), PARAMETERS):
        some = keys[at : at + PARAMETERS]
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


def _best(scores: Iterable[_Score]) -> list[_Score]:
    """Best first; the newer of two that are equal."""
    return sorted(scores, key=lambda score: (-score.score, -score.candidate.row))
