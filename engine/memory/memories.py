"""Storing, changing, using and linking memories.

Finding and showing a memory is no use of it: only what an agent says it used counts towards promotion.
Source: spec master-loop-and-memory §1.7, §1.9 U9 to U11 and U22, §2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from engine.domain.memory import LinkType, MemoryItem, MemoryLevel, MemoryLink
from engine.journal import memory_events as ev
from engine.memory import scoring
from engine.memory.errors import MemoryInputError
from engine.memory.finding import Filters, Found
from engine.memory.reading import Reading
from engine.memory.remembering import forget, remember
from engine.memory.requests import (
    Ident,
    Idents,
    Importance,
    Json,
    Key,
    Level,
    Limit,
    Line,
    Link,
    MaybeIdent,
    Memo,
    Request,
    Seconds,
    Share,
    Tags,
    Text,
    Type,
    View,
    answers,
    writes,
)
from engine.memory.tables import ACTIONS, ARTIFACTS, CHAINS, LINKS, THOUGHTS
from engine.memory.writing import Unit

Direction = Literal["outgoing", "incoming", "both"]


class StoreMemory(Request[MemoryItem]):
    """Something is to be remembered; its type and level become tags of it."""

    verb: ClassVar[str] = "store_memory"
    purpose: ClassVar[str] = "remember something"
    workflow_id: Ident
    content: Memo
    memory_type: Type
    memory_level: Level = MemoryLevel.EPISODIC
    importance: Importance = 5.0
    confidence: Share = 1.0
    description: Text = ""
    reasoning: Text = ""
    source: Line = ""
    tags: Tags = ()
    ttl: Seconds | None = None
    """Seconds to keep it, 0 for ever; the level's own when left out."""
    context_data: Json = Field(default_factory=dict)
    action_id: MaybeIdent = ""
    thought_id: MaybeIdent = ""
    artifact_id: MaybeIdent = ""
    idempotency_key: Key = ""


@writes(StoreMemory)
def _store(unit: Unit, asked: StoreMemory) -> MemoryItem:
    reading = unit.reading
    workflow = reading.require_workflow(asked.workflow_id)
    made = unit.made_before(ev.MemoryStored, asked.idempotency_key, workflow)
    if made:
        return reading.need_memory(made, "idempotency_key")
    if asked.action_id:
        reading.need(ACTIONS, asked.action_id, "action_id", workflow)
    if asked.artifact_id:
        reading.need(ARTIFACTS, asked.artifact_id, "artifact_id", workflow)
    if asked.thought_id:
        thought = reading.need(THOUGHTS, asked.thought_id, "thought_id")
        # A thought knows its chain, and the chain its workflow.
        if reading.need(CHAINS, thought.chain, "thought_id").workflow != workflow:
            raise MemoryInputError("thought_id", f"thought_id: {thought.id} belongs to another workflow.")
    memory = MemoryItem(
        id="",
        workflow=workflow,
        content=asked.content,
        level=asked.memory_level,
        type=asked.memory_type,
        importance=asked.importance,
        confidence=asked.confidence,
        description=asked.description,
        reasoning=asked.reasoning,
        source=asked.source,
        context=asked.context_data,
        tags=asked.tags,
        ttl=scoring.TTL_S[asked.memory_level] if asked.ttl is None else asked.ttl,
        action=asked.action_id,
        thought=asked.thought_id,
        artifact=asked.artifact_id,
    )
    return remember(unit, memory, asked.idempotency_key)


class UpdateMemory(Request[MemoryItem]):
    """A memory says something else; what is left out stays. Its level changes by promotion only."""

    verb: ClassVar[str] = "update_memory"
    purpose: ClassVar[str] = "correct a memory, or say how much it matters"
    memory_id: Ident
    content: Memo | None = None
    memory_type: Type | None = None
    importance: Importance | None = None
    confidence: Share | None = None
    description: Text | None = None
    reasoning: Text | None = None
    source: Line | None = None
    tags: Tags | None = None
    """In the place of those it has; type and level stay among them."""
    ttl: Seconds | None = None
    """Seconds from now on, 0 for ever."""
    context_data: Json | None = None


@writes(UpdateMemory)
def _update(unit: Unit, asked: UpdateMemory) -> MemoryItem:
    memory = unit.reading.need_memory(asked.memory_id)
    told = asked.model_dump(exclude_none=True, exclude={"memory_id"})
    if not told:
        raise MemoryInputError("", "update_memory: nothing to change: name at least one field.")
    changes = {
        {"memory_type": "type", "context_data": "context"}.get(name, name): told[name] for name in told
    }
    kind = asked.memory_type or memory.type
    tags = memory.tags if asked.tags is None else asked.tags
    kept = (tag for tag in tags if tag != memory.type)
    changes["tags"] = tuple(dict.fromkeys((*kept, str(kind), str(memory.level))))
    if changes["tags"] == memory.tags:
        del changes["tags"]
    if asked.ttl is not None:
        changes["expires_at"] = scoring.expiry(unit.now, asked.ttl)
    unit.emit(ev.MemoryChanged(workflow=memory.workflow, memory=memory.id, changes=changes))
    return unit.reading.need_memory(memory.id)


class ForgetMemories(Request[int]):
    """Memories go, with their links; the journal still holds them."""

    verb: ClassVar[str] = "forget_memories"
    for_agents: ClassVar[bool] = False
    memory_ids: Idents = Field(min_length=1)


@writes(ForgetMemories)
def _forget(unit: Unit, asked: ForgetMemories) -> int:
    memories = [unit.reading.need_memory(ident, "memory_ids") for ident in dict.fromkeys(asked.memory_ids)]
    forget(unit, memories, expired=False)
    return len(memories)


class UseMemories(Request[int]):
    """An agent used memories for what it decided; this counts towards promotion."""

    verb: ClassVar[str] = "use_memories"
    for_agents: ClassVar[bool] = False
    memory_ids: Idents = Field(min_length=1)


@writes(UseMemories)
def _use(unit: Unit, asked: UseMemories) -> int:
    mine: dict[str, list[str]] = {}
    for ident in dict.fromkeys(asked.memory_ids):
        mine.setdefault(unit.reading.need_memory(ident, "memory_ids").workflow, []).append(ident)
    for workflow, idents in mine.items():
        unit.emit(ev.MemoriesUsed(workflow=workflow, memories=tuple(idents)))
    return sum(map(len, mine.values()))


# ------------------------------------------------------------------ links


class CreateMemoryLink(Request[MemoryLink]):
    """A memory bears on another one; a link of the same type takes the new strength."""

    verb: ClassVar[str] = "create_memory_link"
    purpose: ClassVar[str] = "say how one memory bears on another"
    source_memory_id: Ident
    target_memory_id: Ident
    link_type: Link = LinkType.RELATED
    strength: Annotated[float, Field(gt=0, le=1)] = 1.0
    description: Text = ""


@writes(CreateMemoryLink)
def _link(unit: Unit, asked: CreateMemoryLink) -> MemoryLink:
    if asked.source_memory_id == asked.target_memory_id:
        raise MemoryInputError("target_memory_id", "target_memory_id: a memory has no link to itself.")
    source = unit.reading.need_memory(asked.source_memory_id, "source_memory_id")
    target = unit.reading.need_memory(asked.target_memory_id, "target_memory_id", source.workflow)
    link = MemoryLink(source.id, target.id, asked.link_type, asked.strength, asked.description, unit.now)
    unit.emit(ev.MemoriesLinked(workflow=source.workflow, link=link))
    return link


@dataclass(frozen=True, slots=True)
class LinkedMemory:
    """A link and the memory at its other end."""

    link: MemoryLink
    memory: MemoryItem


class GetLinkedMemories(Request[tuple[LinkedMemory, ...]]):
    """What a memory is linked with, strongest first."""

    verb: ClassVar[str] = "get_linked_memories"
    purpose: ClassVar[str] = "follow the links of a memory"
    memory_id: Ident
    direction: Direction = "both"
    link_type: Link | None = None
    limit: Limit = 10


@answers(GetLinkedMemories)
def _linked(view: View, asked: GetLinkedMemories) -> tuple[LinkedMemory, ...]:
    memory = view.reading.need_memory(asked.memory_id)
    return linked(view.reading, memory.id, asked.direction, asked.link_type, asked.limit)


def linked(
    reading: Reading, ident: str, direction: Direction, kind: LinkType | None, limit: int
) -> tuple[LinkedMemory, ...]:
    """The links of a memory whose other end is there, strongest first."""
    ends = {"outgoing": "t.source = ?", "incoming": "t.target = ?", "both": "(t.source = ? or t.target = ?)"}
    values = [ident] * (2 if direction == "both" else 1)
    condition = ends[direction]
    if kind is not None:
        condition += " and t.type = ?"
        values.append(str(kind))
    links = reading.many(LINKS, condition, values, order="t.strength desc, t.row")
    others = [link.target if link.source == ident else link.source for link in links]
    there = {one.id: one for one in reading.all_memories(list(dict.fromkeys(others)))}
    found = [
        LinkedMemory(link, there[other]) for link, other in zip(links, others, strict=True) if other in there
    ]
    return tuple(found[:limit])


# ------------------------------------------------------------------ reading


@dataclass(frozen=True, slots=True)
class MemoryDetails:
    """A memory with its links and with what is like it."""

    memory: MemoryItem
    links: tuple[LinkedMemory, ...] = ()
    context: tuple[Found, ...] = ()


class GetMemory(Request[MemoryDetails]):
    """A memory by id."""

    verb: ClassVar[str] = "get_memory_by_id"
    purpose: ClassVar[str] = "look at one memory; this counts as using it"
    memory_id: Ident
    include_links: bool = True
    include_context: bool = False
    context_limit: Limit = 5


CONTEXT_THRESHOLD = 0.9 * 0.75
"""Likeness of what is shown beside a memory (§2, 0.9 of the threshold of similarity)."""


@answers(GetMemory)
def _get(view: View, asked: GetMemory) -> MemoryDetails:
    memory = view.reading.need_memory(asked.memory_id)
    links = linked(view.reading, memory.id, "both", None, 50) if asked.include_links else ()
    context: tuple[Found, ...] = ()
    if asked.include_context:
        context = similar(view, memory, asked.context_limit, CONTEXT_THRESHOLD)
    return MemoryDetails(memory, links, context)


def similar(view: View, memory: MemoryItem, limit: int, threshold: float) -> tuple[Found, ...]:
    """Other memories of the workflow that are like this one; none while it has no vector."""
    vector = view.finder.vectors(view.reading, [memory.digest]).get(memory.digest)
    if vector is None:
        return ()
    filters = Filters(workflow=memory.workflow)
    found = view.finder.semantic(view.reading, vector, filters, limit + 1, threshold)
    return tuple(one for one in found if one.memory.id != memory.id)[:limit]
