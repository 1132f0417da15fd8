"""Upkeep: what settles, what goes together, what goes, and what there is.

All of it is counted and computed. What a consolidation or a reflection says comes from whoever asks for it.
Source: spec master-loop-and-memory §1.5, §1.6, §1.8, §2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from pydantic import Field

from engine.domain.memory import (
    ConsolidationKind,
    LinkType,
    MemoryItem,
    MemoryLevel,
    MemoryLink,
    MemoryType,
    Operation,
    Reflection,
)
from engine.journal import memory_events as ev
from engine.memory import scoring
from engine.memory.errors import MemoryInputError, MemoryRefused
from engine.memory.reading import Reading
from engine.memory.remembering import forget, remember
from engine.memory.requests import (
    Ident,
    Idents,
    Importance,
    Level,
    Limit,
    Looking,
    MaybeIdent,
    Memo,
    Merging,
    Request,
    Share,
    Text,
    View,
    answers,
    writes,
)
from engine.memory.tables import LINKS
from engine.memory.vectors import dot
from engine.memory.writing import Unit

# ------------------------------------------------------------------ promotion


class PromoteMemory(Request[MemoryItem | None]):
    """A memory settles to the next level if it has earned it; None if not."""

    verb: ClassVar[str] = "promote_memory_level"
    for_agents: ClassVar[bool] = False
    memory_id: Ident
    target_level: Level | None = None
    """Refused unless it is the one that the memory has earned."""


@writes(PromoteMemory)
def _promote(unit: Unit, asked: PromoteMemory) -> MemoryItem | None:
    memory = unit.reading.need_memory(asked.memory_id)
    level = scoring.next_level(memory)
    if asked.target_level is not None and asked.target_level is not level:
        raise MemoryRefused(
            f"{memory.id} is {memory.level} with {memory.access_count} uses and confidence "
            f"{memory.confidence:g}: it has not earned {asked.target_level}."
        )
    if level is None:
        return None
    tags = tuple(str(level) if tag == memory.level else tag for tag in memory.tags)
    unit.emit(
        ev.MemoryPromoted(
            workflow=memory.workflow, memory=memory.id, level=level, ttl=scoring.TTL_S[level], tags=tags
        )
    )
    return unit.reading.need_memory(memory.id)


class PromotionCandidates(Request[tuple[MemoryItem, ...]]):
    """Memories that have earned the next level, most used first."""

    verb: ClassVar[str] = "promotion_candidates"
    for_agents: ClassVar[bool] = False
    workflow_id: Ident
    limit: Limit = 10


@answers(PromotionCandidates)
def _promotable(view: View, asked: PromotionCandidates) -> tuple[MemoryItem, ...]:
    view.reading.need_workflow(asked.workflow_id)
    used = view.reading.memories(
        "m.workflow = ? and u.count >= 5", (asked.workflow_id,), order="u.count desc, m.row"
    )
    return tuple(one for one in used if scoring.next_level(one) is not None)[: asked.limit]


# ------------------------------------------------------------------ consolidation


class ConsolidationCandidates(Request[tuple[MemoryItem, ...]]):
    """Memories to be brought together: the most important that never were, newest first of those."""

    verb: ClassVar[str] = "consolidation_candidates"
    for_agents: ClassVar[bool] = False
    workflow_id: Ident
    memory_level: Level = MemoryLevel.EPISODIC
    min_importance: Importance = 0.0
    min_confidence: Share = 0.0
    limit: Annotated[int, Field(ge=2, le=20)] = 10


@answers(ConsolidationCandidates)
def _candidates(view: View, asked: ConsolidationCandidates) -> tuple[MemoryItem, ...]:
    view.reading.need_workflow(asked.workflow_id)
    found = view.reading.memories(
        "m.workflow = ? and m.level = ? and m.consolidated = '' and m.importance >= ? and m.confidence >= ?",
        (asked.workflow_id, str(asked.memory_level), asked.min_importance, asked.min_confidence),
        order="m.importance desc, m.created_at desc, m.row desc",
        limit=asked.limit,
    )
    return tuple(found)


class ConsolidateMemories(Request[MemoryItem]):
    """Several memories go into one; its numbers follow from theirs, and they are no sources again."""

    verb: ClassVar[str] = "consolidate_memories"
    for_agents: ClassVar[bool] = False
    workflow_id: Ident
    source_ids: Annotated[tuple[Ident, ...], Field(strict=False, min_length=2, max_length=20)]
    content: Memo
    consolidation_type: Merging = ConsolidationKind.SUMMARY
    memory_level: Level = MemoryLevel.SEMANTIC
    computed: bool = False
    """True where the content was counted and no model wrote it."""


@writes(ConsolidateMemories)
def _consolidate(unit: Unit, asked: ConsolidateMemories) -> MemoryItem:
    workflow = unit.reading.need_workflow(asked.workflow_id).id
    idents = tuple(dict.fromkeys(asked.source_ids))
    if len(idents) < 2:
        raise MemoryInputError("source_ids", "source_ids: it takes two different memories or more.")
    sources = [unit.reading.need_memory(ident, "source_ids", workflow) for ident in idents]
    used_up = [one for one in sources if one.consolidated]
    if used_up:
        raise MemoryRefused(f"{used_up[0].id} went into {used_up[0].consolidated} already: leave it out.")
    result = remember(
        unit,
        MemoryItem(
            id="",
            workflow=workflow,
            content=asked.content,
            level=asked.memory_level,
            type=asked.consolidation_type.memory_type,
            importance=scoring.consolidated_importance([one.importance for one in sources]),
            confidence=scoring.consolidated_confidence([one.confidence for one in sources]),
            description=f"Consolidated from {len(sources)} memories",
            source="computed" if asked.computed else "consolidation",
            context={"sources": list(idents)},
            tags=("consolidated",),
            ttl=scoring.TTL_S[asked.memory_level],
        ),
    )
    for one in sources:
        link = MemoryLink(result.id, one.id, LinkType.GENERALIZES, created_at=unit.now)
        unit.emit(ev.MemoriesLinked(workflow=workflow, link=link))
    unit.emit(
        ev.MemoriesConsolidated(
            workflow=workflow, memory=result.id, sources=idents, ttl=scoring.CONSOLIDATED_TTL_S
        )
    )
    return result


# ------------------------------------------------------------------ reflection


class RecordReflection(Request[Reflection]):
    """What came of looking back is kept, and can be found like any other memory."""

    verb: ClassVar[str] = "record_reflection"
    for_agents: ClassVar[bool] = False
    workflow_id: Ident
    content: Text = Field(min_length=1)
    reflection_type: Looking
    computed: bool = False
    memory_ids: Idents = ()


@writes(RecordReflection)
def _reflect(unit: Unit, asked: RecordReflection) -> Reflection:
    workflow = unit.reading.need_workflow(asked.workflow_id).id
    for ident in asked.memory_ids:
        unit.reading.need_memory(ident, "memory_ids", workflow)
    if not asked.content.strip():
        raise MemoryInputError("content", "content: a reflection must say something.")
    reflection = Reflection(
        unit.new_id("r"),
        workflow,
        asked.reflection_type,
        asked.content.strip().splitlines()[0][:100],
        asked.content,
        asked.computed,
        asked.memory_ids,
        unit.now,
    )
    unit.emit(ev.ReflectionRecorded(reflection=reflection))
    remember(
        unit,
        MemoryItem(
            id="",
            workflow=workflow,
            content=asked.content,
            level=MemoryLevel.SEMANTIC,
            type=MemoryType.REFLECTION,
            importance=scoring.THOUGHT_IMPORTANCE["reflection"],
            description=f"Reflection ({asked.reflection_type})",
            source="computed" if asked.computed else "reflection",
            context={"reflection": reflection.id},
            ttl=scoring.TTL_S[MemoryLevel.SEMANTIC],
        ),
    )
    return reflection


class RecentOperations(Request[tuple[Operation, ...]]):
    """The newest writes to memory, newest first: what a reflection looks at."""

    verb: ClassVar[str] = "recent_operations"
    for_agents: ClassVar[bool] = False
    workflow_id: MaybeIdent = ""
    limit: Limit = 30


@answers(RecentOperations)
def _operations(view: View, asked: RecentOperations) -> tuple[Operation, ...]:
    return tuple(view.reading.operations(asked.workflow_id, asked.limit))


# ------------------------------------------------------------------ maintenance

SWEEP = 500
"""Memories that one unit of work lets go (§1.5)."""


class DeleteExpiredMemories(Request[int]):
    """Memories whose time is over go, at most 500 at a time; answers how many."""

    verb: ClassVar[str] = "delete_expired_memories"
    for_agents: ClassVar[bool] = False


@writes(DeleteExpiredMemories)
def _sweep(unit: Unit, asked: DeleteExpiredMemories) -> int:
    over = unit.reading.memories(
        "m.expires_at <= ?", (unit.now,), order="m.expires_at", limit=SWEEP, expired=True
    )
    forget(unit, over, expired=True)
    return len(over)


class DecayLinkStrengths(Request[int]):
    """Links of more than two weeks lose a twentieth of their strength; answers how many did."""

    verb: ClassVar[str] = "decay_link_strengths"
    for_agents: ClassVar[bool] = False
    workflow_id: Ident


@writes(DecayLinkStrengths)
def _decay(unit: Unit, asked: DecayLinkStrengths) -> int:
    unit.reading.need_workflow(asked.workflow_id)
    links = unit.reading.many(
        LINKS,
        "t.created_at < ? and exists(select 1 from memories m where m.id = t.source and m.died is null "
        "and m.workflow = ?)",
        (unit.now - scoring.LINK_DECAY_AFTER_S, asked.workflow_id),
    )
    weaker = tuple(
        replace(link, strength=strength)
        for link in links
        if (strength := scoring.weakened(link, unit.now)) is not None
    )
    if weaker:
        unit.emit(ev.LinksWeakened(workflow=asked.workflow_id, links=weaker))
    return len(weaker)


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two memories that say the same, or nearly so."""

    kept: MemoryItem
    """The older one."""
    other: MemoryItem
    likeness: float
    """1 for the same text."""


class FindDuplicates(Request[tuple[Duplicate, ...]]):
    """Memories that say what an older one says; nothing is changed."""

    verb: ClassVar[str] = "find_duplicates"
    for_agents: ClassVar[bool] = False
    workflow_id: Ident
    threshold: Share = 0.95
    recent: Limit = 200
    """How many of the newest memories are compared by likeness; the same text is found among all."""


@answers(FindDuplicates)
def _duplicates(view: View, asked: FindDuplicates) -> tuple[Duplicate, ...]:
    reading = view.reading
    reading.need_workflow(asked.workflow_id)
    same = reading.memories(
        f"""m.workflow = ? and m.digest in (select d.digest from memories d
        where d.workflow = ? and {reading.live("d")} group by d.digest having count(*) > 1)""",
        (asked.workflow_id, asked.workflow_id),
        limit=1_000,
    )
    first: dict[str, MemoryItem] = {}
    found = []
    for memory in same:
        kept = first.setdefault(memory.digest, memory)
        if kept is not memory:
            found.append(Duplicate(kept, memory, 1.0))
    return (*found, *_alike(view, asked))


def _alike(view: View, asked: FindDuplicates) -> list[Duplicate]:
    newest = view.reading.memories(
        "m.workflow = ?", (asked.workflow_id,), order="m.row desc", limit=asked.recent
    )[::-1]
    vectors = view.finder.vectors(view.reading, {one.digest for one in newest})
    found = []
    for place, other in enumerate(newest):
        for kept in newest[:place]:
            if kept.digest != other.digest and {kept.digest, other.digest} <= vectors.keys():
                likeness = dot(vectors[kept.digest], vectors[other.digest])
                if likeness >= asked.threshold:
                    found.append(Duplicate(kept, other, likeness))
                    break
    return found


# ------------------------------------------------------------------ statistics


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """What there is, in numbers."""

    total: int = 0
    by_level: tuple[tuple[str, int], ...] = ()
    by_type: tuple[tuple[str, int], ...] = ()
    unconsolidated_episodic: int = 0
    mean_importance: float = 0.0
    mean_confidence: float = 0.0
    links: int = 0
    top_tags: tuple[tuple[str, int], ...] = ()
    by_workflow: tuple[tuple[str, int], ...] = ()
    """The twenty with most memories."""
    expiring: tuple[tuple[str, float], ...] = ()
    """The five memories that go next, and when, in seconds since 1970."""


class ComputeMemoryStatistics(Request[MemoryStatistics]):
    """What there is, in one workflow or in all."""

    verb: ClassVar[str] = "compute_memory_statistics"
    for_agents: ClassVar[bool] = False
    workflow_id: MaybeIdent = ""


@answers(ComputeMemoryStatistics)
def _statistics(view: View, asked: ComputeMemoryStatistics) -> MemoryStatistics:
    reading = view.reading
    if asked.workflow_id:
        reading.need_workflow(asked.workflow_id)
    mine = f"{reading.live('m')} and {reading.alive} and ? in ('', m.workflow)"
    values = (reading.now, asked.workflow_id)
    ((total, importance, confidence, waiting),) = reading.rows(
        f"""select count(*), coalesce(avg(m.importance), 0), coalesce(avg(m.confidence), 0),
        count(*) filter (where m.level = 'episodic' and m.consolidated = '') from memories m where {mine}""",
        *values,
    )
    ((links,),) = reading.rows(
        f"""select count(*) from links l join memories m on m.id = l.source
        where {reading.live("l")} and {mine}""",
        *values,
    )
    return MemoryStatistics(
        total,
        _counted(reading, f"select m.level, count(*) from memories m where {mine}", values),
        _counted(reading, f"select m.type, count(*) from memories m where {mine}", values),
        waiting,
        importance,
        confidence,
        links,
        _counted(
            reading,
            f"""select g.tag, count(*) from taggings g join memories m on m.id = g.owner
            where {reading.live("g")} and {mine}""",
            values,
        )[:10],
        _counted(reading, f"select m.workflow, count(*) from memories m where {mine}", values)[:20],
        _expiring(reading, mine, values),
    )


def _expiring(reading: Reading, mine: str, values: tuple[object, ...]) -> tuple[tuple[str, float], ...]:
    rows = reading.rows(
        f"""select m.id, m.expires_at from memories m where {mine} and m.expires_at is not null
        order by m.expires_at, m.row limit 5""",
        *values,
    )
    return tuple((row[0], row[1]) for row in rows)


def _counted(reading: Reading, sql: str, values: tuple[object, ...]) -> tuple[tuple[str, int], ...]:
    """Words and how often each stands, the most frequent first."""
    return tuple((row[0], row[1]) for row in reading.rows(f"{sql} group by 1 order by 2 desc, 1", *values))
