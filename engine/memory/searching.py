"""Asking for memories: by words and likeness, by filters, and for what they might be linked with.

Source: spec master-loop-and-memory §1.7, §1.9 U9 and U10, §2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from engine.domain.memory import LinkType, MemoryItem
from engine.memory import scoring
from engine.memory.errors import MemoryInputError
from engine.memory.finding import Filters, Found, Weights
from engine.memory.memories import linked, similar
from engine.memory.reading import Reading
from engine.memory.requests import (
    Ident,
    Importance,
    Level,
    Limit,
    MaybeIdent,
    Offset,
    Request,
    Share,
    Tags,
    Text,
    Type,
    View,
    answers,
)


class _Filtered(Request[tuple[Found, ...]]):
    """What the searches have in common."""

    workflow_id: MaybeIdent = ""
    memory_level: Level | None = None
    memory_type: Type | None = None
    tags: Tags = ()
    """All of them."""
    min_importance: Importance = 0.0
    max_importance: Importance = 10.0
    min_confidence: Share = 0.0
    created_after: float | None = None
    """Seconds since 1970."""
    created_before: float | None = None

    @property
    def filters(self) -> Filters:
        """The filters that both halves of a search pass."""
        created = None
        if self.created_after is not None or self.created_before is not None:
            until = 1e18 if self.created_before is None else self.created_before
            created = (self.created_after or 0.0, until)
        return Filters(
            self.workflow_id,
            self.memory_level,
            self.memory_type,
            self.tags,
            (self.min_importance, self.max_importance),
            self.min_confidence,
            created,
        )


class HybridSearch(_Filtered):
    """Memories by words and likeness, best first."""

    verb: ClassVar[str] = "hybrid_search_memories"
    purpose: ClassVar[str] = "find memories by words and likeness"
    searches: ClassVar[str] = "query"
    query: Text = Field(min_length=1)
    limit: Limit = 10
    offset: Offset = 0
    semantic_weight: Share = Weights().semantic
    keyword_weight: Share = Weights().keyword


@answers(HybridSearch)
def _hybrid(view: View, asked: HybridSearch) -> tuple[Found, ...]:
    if asked.workflow_id:
        view.reading.need_workflow(asked.workflow_id)
    if not asked.semantic_weight + asked.keyword_weight:
        raise MemoryInputError(
            "semantic_weight", "semantic_weight and keyword_weight cannot both be 0: raise one of them."
        )
    weights = Weights(asked.semantic_weight, asked.keyword_weight)
    found = view.finder.hybrid(
        view.reading, asked.query, view.vector, asked.filters, weights, asked.limit, asked.offset
    )
    return tuple(found)


class SemanticSearch(_Filtered):
    """Memories by likeness alone; by words where there are no vectors."""

    verb: ClassVar[str] = "search_semantic_memories"
    purpose: ClassVar[str] = "find memories that are like a text"
    searches: ClassVar[str] = "query"
    query: Text = Field(min_length=1)
    limit: Limit = 5
    threshold: Share = 0.75


@answers(SemanticSearch)
def _semantic(view: View, asked: SemanticSearch) -> tuple[Found, ...]:
    if asked.workflow_id:
        view.reading.need_workflow(asked.workflow_id)
    if view.vector is None:
        return tuple(view.finder.keyword(view.reading, asked.query, asked.filters, asked.limit))
    return tuple(view.finder.semantic(view.reading, view.vector, asked.filters, asked.limit, asked.threshold))


SORTED_BY = {
    "importance": "m.importance",
    "created_at": "m.created_at",
    "updated_at": "m.updated_at",
    "confidence": "m.confidence",
    "last_accessed": "u.at",
    "access_count": "access_count",
}
RELEVANCE_POOL = 500
"""Most important memories among which those of most relevance are looked for."""


class QueryMemories(_Filtered):
    """Memories that pass filters, sorted."""

    verb: ClassVar[str] = "query_memories"
    purpose: ClassVar[str] = "list memories by level, type, tags, importance, time"
    search_text: Text = ""
    sort_by: Literal[
        "relevance", "importance", "created_at", "updated_at", "confidence", "last_accessed", "access_count"
    ] = "relevance"
    sort_order: Literal["asc", "desc"] = "desc"
    limit: Limit = 10
    offset: Offset = 0


@answers(QueryMemories)
def _query(view: View, asked: QueryMemories) -> tuple[Found, ...]:
    reading = view.reading
    if asked.workflow_id:
        reading.need_workflow(asked.workflow_id)
    if asked.search_text:
        found = view.finder.keyword(reading, asked.search_text, asked.filters, asked.limit + asked.offset)
        return tuple(found[asked.offset :])
    condition, values = asked.filters.condition(reading)
    if asked.sort_by == "relevance":
        memories = _most_relevant(reading, condition, values, asked)
    else:
        order = f"{SORTED_BY[asked.sort_by]} {asked.sort_order}, m.row {asked.sort_order}"
        memories = reading.memories(condition, values, order=order, limit=asked.limit, offset=asked.offset)
    return tuple(Found(one, scoring.relevance(one, reading.now) / 10) for one in memories)


def _most_relevant(
    reading: Reading, condition: str, values: list[object], asked: QueryMemories
) -> list[MemoryItem]:
    # Relevance changes with every moment and has no index: it is looked at among the most important.
    pool = max(RELEVANCE_POOL, asked.limit + asked.offset)
    memories = reading.memories(condition, values, order="m.importance desc, m.row desc", limit=pool)
    memories.sort(
        key=lambda one: (scoring.relevance(one, reading.now), one.created_at),
        reverse=asked.sort_order == "desc",
    )
    return memories[asked.offset : asked.offset + asked.limit]


@dataclass(frozen=True, slots=True)
class SuggestedLink:
    """A link that two similar memories suggest."""

    target: MemoryItem
    type: LinkType
    likeness: float


class SuggestLinks(Request[tuple[SuggestedLink, ...]]):
    """Links that a memory might have; none is made."""

    verb: ClassVar[str] = "suggest_links"
    for_agents: ClassVar[bool] = False
    memory_id: Ident
    threshold: Share = 0.7
    max_links: Limit = 3


@answers(SuggestLinks)
def _suggest(view: View, asked: SuggestLinks) -> tuple[SuggestedLink, ...]:
    memory = view.reading.need_memory(asked.memory_id)
    known = {one.memory.id for one in linked(view.reading, memory.id, "both", None, 500)}
    found = similar(view, memory, asked.max_links + len(known), asked.threshold)
    fresh = [one for one in found if one.memory.id not in known][: asked.max_links]
    return tuple(
        SuggestedLink(one.memory, scoring.suggested_link(memory, one.memory), one.semantic) for one in fresh
    )
