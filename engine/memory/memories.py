"""Requests that store, change, use, link, show and search memories.

Finding and showing a memory does not count as using it: only what an agent says it used counts towards
promotion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from engine.core import memory_events as ev
from engine.core.memory import LinkType, MemoryItem, MemoryLevel, MemoryLink, MemoryType, Workflow
from engine.memory import requests as rq
from engine.memory import scoring
from engine.memory.errors import MemoryInputError
from engine.memory.query import FOREVER, parsed
from engine.memory.requests import R_co, Request, View
from engine.memory.search import Filters, SearchMatch, Weights
from engine.memory.tables import ACTIONS, ARTIFACTS, CHAINS, LINKS, MEMORIES, THOUGHTS, Reading
from engine.memory.working_memory import WorkingMemory, working_memory
from engine.memory.writer import Unit, by_workflow, forget, remember
from engine.value import dataclass, replace

Direction = Literal["outgoing", "incoming", "both"]


class StoreMemory(Request[MemoryItem]):
    """Something is to be remembered; its type and level become tags of it."""

    workflow_id: rq.Ident
    content: rq.Memo
    memory_type: rq.Word[MemoryType]
    memory_level: rq.Word[MemoryLevel] = MemoryLevel.EPISODIC
    importance: rq.Importance = 5.0
    confidence: rq.Share = 1.0
    description: rq.Text = ""
    reasoning: rq.Text = ""
    source: rq.Line = ""
    tags: rq.Tags = ()
    ttl: rq.Seconds | None = None
    """Seconds to keep it, 0 for ever; the level's own when left out."""
    context_data: rq.Json = Field(default_factory=dict)
    action_id: rq.MaybeIdent = ""
    thought_id: rq.MaybeIdent = ""
    artifact_id: rq.MaybeIdent = ""
    idempotency_key: rq.Key = ""

    def write(self, unit: Unit) -> MemoryItem:
        reading = unit.reading
        workflow = reading.require_workflow(self.workflow_id)
        made = unit.made_before(ev.MemoryStored, self.idempotency_key, workflow)
        if made:
            return reading.need_memory(made, "idempotency_key")
        reading.check(ACTIONS, self.action_id, "action_id", workflow)
        reading.check(ARTIFACTS, self.artifact_id, "artifact_id", workflow)
        if self.thought_id:
            thought = reading.need(THOUGHTS, self.thought_id, "thought_id")
            # A thought knows its chain, and the chain its workflow.
            if reading.need(CHAINS, thought.chain, "thought_id").workflow != workflow:
                raise MemoryInputError("thought_id", f"thought_id: {thought.id} belongs to another workflow.")
        return remember(unit, **self.values())


class UpdateMemory(Request[MemoryItem]):
    """A memory says something else; what is left out stays. Its level changes by promotion only."""

    memory_id: rq.Ident
    content: rq.Memo | None = None
    memory_type: rq.Word[MemoryType] | None = None
    importance: rq.Importance | None = None
    confidence: rq.Share | None = None
    description: rq.Text | None = None
    reasoning: rq.Text | None = None
    source: rq.Line | None = None
    tags: rq.Tags | None = None
    """In the place of those it has; type and level stay among them."""
    ttl: rq.Seconds | None = None
    """Seconds from now on, 0 for ever."""
    context_data: rq.Json | None = None

    def write(self, unit: Unit) -> MemoryItem:
        memory = unit.reading.need_memory(self.memory_id)
        changes = {name: value for name, value in self.values("memory_id").items() if value is not None}
        if not changes:
            raise MemoryInputError("", "update_memory: nothing to change: name at least one field.")
        kind = self.memory_type or memory.type
        tags = memory.tags if self.tags is None else self.tags
        kept = (tag for tag in tags if tag != memory.type)
        changes["tags"] = tuple(dict.fromkeys((*kept, str(kind), str(memory.level))))
        if changes["tags"] == memory.tags:
            del changes["tags"]
        if self.ttl is not None:
            changes["expires_at"] = scoring.expiry(unit.now, self.ttl)
        unit.emit(ev.MemoryChanged(workflow=memory.workflow, memory=memory.id, changes=changes))
        return unit.reading.need_memory(memory.id)


class ForgetMemories(Request[int]):
    """Memories go, with their links; the journal still holds them."""

    memory_ids: rq.Idents = Field(min_length=1)

    def write(self, unit: Unit) -> int:
        memories = [unit.reading.need_memory(ident, "memory_ids") for ident in dict.fromkeys(self.memory_ids)]
        forget(unit, memories, expired=False)
        return len(memories)


class UseMemories(Request[int]):
    """An agent used memories for what it decided; this counts towards promotion."""

    memory_ids: rq.Idents = Field(min_length=1)

    def write(self, unit: Unit) -> int:
        used = [unit.reading.need_memory(ident, "memory_ids") for ident in dict.fromkeys(self.memory_ids)]
        for workflow, idents in by_workflow(used).items():
            unit.emit(ev.MemoriesUsed(workflow=workflow, memories=tuple(idents)))
        return len(used)


# ------------------------------------------------------------------ links


class CreateMemoryLink(Request[MemoryLink]):
    """A memory relates to another one; a link of the same type takes the new strength."""

    source_memory_id: rq.Ident
    target_memory_id: rq.Ident
    link_type: rq.Word[LinkType] = LinkType.RELATED
    strength: Annotated[float, Field(gt=0, le=1)] = 1.0
    description: rq.Text = ""

    def write(self, unit: Unit) -> MemoryLink:
        if self.source_memory_id == self.target_memory_id:
            raise MemoryInputError("target_memory_id", "target_memory_id: a memory has no link to itself.")
        source = unit.reading.need_memory(self.source_memory_id, "source_memory_id")
        target = unit.reading.need_memory(self.target_memory_id, "target_memory_id", source.workflow)
        link = MemoryLink(source.id, target.id, self.link_type, self.strength, self.description, unit.now)
        unit.emit(ev.MemoriesLinked(workflow=source.workflow, link=link))
        return link


@dataclass(frozen=True, slots=True)
class LinkedMemory:
    """A link and the memory at its other end."""

    link: MemoryLink
    memory: MemoryItem


class GetLinkedMemories(Request[tuple[LinkedMemory, ...]]):
    """What a memory is linked with, strongest first."""

    memory_id: rq.Ident
    direction: Direction = "both"
    link_type: rq.Word[LinkType] | None = None
    limit: rq.Limit = 10

    def answer(self, view: View) -> tuple[LinkedMemory, ...]:
        memory = view.reading.need_memory(self.memory_id)
        return linked(view.reading, memory.id, self.direction, self.link_type, self.limit)


def linked(
    reading: Reading, ident: str, direction: Direction, kind: LinkType | None, limit: int
) -> tuple[LinkedMemory, ...]:
    """The links of a memory whose other end is there, strongest first."""
    ends = {"outgoing": "t.source = ?", "incoming": "t.target = ?", "both": "? in (t.source, t.target)"}
    condition, values = reading.where(type=kind)
    links = reading.many(
        LINKS, f"{ends[direction]} and {condition}", (ident, *values), order="t.strength desc, t.row"
    )
    others = [link.target if link.source == ident else link.source for link in links]
    there = {memory.id: memory for memory in reading.all_memories(list(dict.fromkeys(others)))}
    neighbours = [
        LinkedMemory(link, there[other]) for link, other in zip(links, others, strict=True) if other in there
    ]
    return tuple(neighbours[:limit])


# ------------------------------------------------------------------ reading


@dataclass(frozen=True, slots=True)
class MemoryDetails:
    """A memory with its links and with what is like it."""

    memory: MemoryItem
    links: tuple[LinkedMemory, ...] = ()
    context: tuple[SearchMatch, ...] = ()


class GetMemory(Request[MemoryDetails]):
    """A memory by id."""

    verb: ClassVar[str] = "get_memory_by_id"
    memory_id: rq.Ident
    include_links: bool = True
    include_context: bool = False
    context_limit: rq.Limit = 5

    def answer(self, view: View) -> MemoryDetails:
        memory = view.reading.need_memory(self.memory_id)
        links = linked(view.reading, memory.id, "both", None, 50) if self.include_links else ()
        context: tuple[SearchMatch, ...] = ()
        if self.include_context:
            context = similar(view, memory, self.context_limit, CONTEXT_THRESHOLD)
        return MemoryDetails(memory, links, context)


CONTEXT_THRESHOLD = 0.9 * 0.75
"""Likeness of what is shown beside a memory."""


def similar(view: View, memory: MemoryItem, limit: int, threshold: float) -> tuple[SearchMatch, ...]:
    """Other memories of the workflow that are like this one."""
    filters, liked = Filters(workflow=memory.workflow), view.finder.likeness
    text = scoring.embedded_text(memory.description, memory.content)
    vector = liked.vector(memory.digest) if liked is not None else None
    matches = view.finder.semantic(view.reading, text, filters, limit + 1, threshold, vector)
    return tuple(match for match in matches if match.memory.id != memory.id)[:limit]


@dataclass(frozen=True, slots=True)
class MemoryVersion:
    """A memory as it was from one event on."""

    number: int
    """Version in the memory's stream of the event that made it so."""
    at: float
    """Seconds since 1970."""
    actor: str
    kind: str
    """What sort of event that was."""
    memory: MemoryItem


def versions_of(reading: Reading, ident: str, limit: int) -> tuple[MemoryVersion, ...]:
    """The newest versions of a memory, newest first."""
    until = "" if reading.as_of is None else f"and o.number <= {reading.as_of}"
    made = reading.rows(
        f"""select m.*, o.number as op_number, o.at as op_at, o.actor as op_actor, o.kind as op_kind
        from memories m join operations o on o.number = m.born
        where m.id = ? {until} order by m.born desc limit ?""",
        ident,
        limit,
    )
    return tuple(
        MemoryVersion(row["op_number"], row["op_at"], row["op_actor"], row["op_kind"], MEMORIES.decode(row))
        for row in made
    )


@dataclass(frozen=True, slots=True)
class MemoryCard:
    """A memory with all that surrounds it, at one event."""

    memory: MemoryItem
    links: tuple[LinkedMemory, ...]
    versions: tuple[MemoryVersion, ...]
    """Newest first."""
    workflow: Workflow
    working: WorkingMemory
    """What that workflow has in mind."""


class ShowMemory(Request[MemoryCard]):
    """A memory with its links, its versions and its work; looking at it does not count as using it."""

    memory_id: rq.Ident
    limit: rq.Limit = 50
    """Links and versions at most, of each."""

    def answer(self, view: View) -> MemoryCard:
        reading = view.reading
        memory = reading.need_memory(self.memory_id)
        return MemoryCard(
            memory,
            linked(reading, memory.id, "both", None, self.limit),
            versions_of(reading, memory.id, self.limit),
            reading.need_workflow(memory.workflow),
            working_memory(reading, memory.workflow),
        )


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, best first."""

    items: tuple[SearchMatch, ...] = ()
    relevant: bool = True
    """Whether any of it fits; otherwise it is only the nearest of what does not."""
    withheld: int = 0
    """How many were left out, as none fits."""
    note: str = ""
    """What a model had to do with it, in a sentence; empty where none was asked."""

    @classmethod
    def of(cls, matches: Sequence[SearchMatch], *, nearest: bool) -> Found:
        """These; none where none fits, unless the nearest are asked for."""
        relevant = any(match.clear for match in matches)
        if relevant or nearest:
            return cls(tuple(matches), relevant)
        return cls(relevant=False, withheld=len(matches))

    def __iter__(self) -> Iterator[SearchMatch]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class _Filtered(Request[R_co]):
    """What the searches have in common."""

    workflow_id: rq.MaybeIdent = ""
    memory_level: rq.Word[MemoryLevel] | None = None
    memory_type: rq.Word[MemoryType] | None = None
    tags: rq.Tags = ()
    """All of them."""
    min_importance: rq.Importance = 0.0
    max_importance: rq.Importance = 10.0
    min_confidence: rq.Share = 0.0
    created_after: float | None = None
    """Seconds since 1970."""
    created_before: float | None = None

    def check(self, view: View) -> None:
        """Refuse a workflow that there is not."""
        if self.workflow_id:
            view.reading.need_workflow(self.workflow_id)

    @property
    def filters(self) -> Filters:
        """The filters that both halves of a search pass."""
        of, importance = (self.workflow_id, self.memory_level, self.memory_type), self.min_importance
        filters = Filters(*of, self.tags, (importance, self.max_importance), self.min_confidence)
        if self.created_after is None and self.created_before is None:
            return filters
        until = FOREVER if self.created_before is None else self.created_before
        return replace(filters, created=(self.created_after or 0.0, until))


class HybridSearch(_Filtered[Found]):
    """Memories by words and likeness, best first; none where none fits, unless the nearest are asked for."""

    verb: ClassVar[str] = "hybrid_search_memories"
    query: rq.Big = Field(min_length=1)
    limit: rq.Limit = 10
    offset: rq.Offset = 0
    semantic_weight: rq.Share = Weights().semantic
    keyword_weight: rq.Share = Weights().keyword
    nearest: bool = False
    """Whether to show the nearest where nothing fits."""
    rewrite: bool = False
    """Whether a model may help, where the settings let it."""

    @property
    def meant(self) -> str:
        return parsed(self.query, 0.0).text

    def answer(self, view: View) -> Found:
        self.check(view)
        if not self.semantic_weight + self.keyword_weight:
            raise MemoryInputError(
                "semantic_weight", "semantic_weight and keyword_weight cannot both be 0: raise one of them."
            )
        weights = Weights(self.semantic_weight, self.keyword_weight)
        matches = view.finder.hybrid(
            view.reading, self.query, self.filters, weights, self.limit, self.offset, view.vector
        )
        return Found.of(matches, nearest=self.nearest)


class SemanticSearch(_Filtered[tuple[SearchMatch, ...]]):
    """Memories by likeness alone."""

    verb: ClassVar[str] = "search_semantic_memories"
    query: rq.Big = Field(min_length=1)
    limit: rq.Limit = 5
    threshold: rq.Share = 0.75

    @property
    def meant(self) -> str:
        return self.query

    def answer(self, view: View) -> tuple[SearchMatch, ...]:
        self.check(view)
        return tuple(
            view.finder.semantic(
                view.reading, self.query, self.filters, self.limit, self.threshold, view.vector
            )
        )


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


class QueryMemories(_Filtered[tuple[SearchMatch, ...]]):
    """Memories that pass filters, sorted."""

    search_text: rq.Big = ""
    sort_by: Literal[
        "relevance", "importance", "created_at", "updated_at", "confidence", "last_accessed", "access_count"
    ] = "relevance"
    sort_order: Literal["asc", "desc"] = "desc"
    limit: rq.Limit = 10
    offset: rq.Offset = 0

    def answer(self, view: View) -> tuple[SearchMatch, ...]:
        reading = view.reading
        self.check(view)
        if self.search_text:
            by_words = Weights(0.0, 1.0)
            return tuple(
                view.finder.hybrid(reading, self.search_text, self.filters, by_words, self.limit, self.offset)
            )
        condition, values = self.filters.condition(reading)
        if self.sort_by == "relevance":
            memories = _most_relevant(reading, condition, values, self)
        else:
            order = f"{SORTED_BY[self.sort_by]} {self.sort_order}, m.row {self.sort_order}"
            memories = reading.memories(condition, values, order=order, limit=self.limit, offset=self.offset)
        return tuple(SearchMatch(memory, scoring.relevance(memory, reading.now) / 10) for memory in memories)


def _most_relevant(
    reading: Reading, condition: str, values: list[object], asked: QueryMemories
) -> list[MemoryItem]:
    # Relevance changes with every moment and has no index: it is looked at among the most important.
    pool = max(RELEVANCE_POOL, asked.limit + asked.offset)
    memories = reading.memories(condition, values, order="m.importance desc, m.row desc", limit=pool)
    memories.sort(
        key=lambda memory: (scoring.relevance(memory, reading.now), memory.created_at),
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

    memory_id: rq.Ident
    threshold: rq.Share = 0.7
    max_links: rq.Limit = 3

    def answer(self, view: View) -> tuple[SuggestedLink, ...]:
        memory = view.reading.need_memory(self.memory_id)
        known = {other.memory.id for other in linked(view.reading, memory.id, "both", None, 500)}
        matches = similar(view, memory, self.max_links + len(known), self.threshold)
        fresh = [match for match in matches if match.memory.id not in known][: self.max_links]
        return tuple(
            SuggestedLink(match.memory, scoring.suggested_link(memory, match.memory), match.score)
            for match in fresh
        )
