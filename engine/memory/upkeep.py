"""Requests for upkeep: promotion, consolidation, reflection, expiry, decay, duplicates and statistics.

All of it is counted and computed. The text of a consolidation or reflection comes from the caller.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from engine.core import memory as core
from engine.core import memory_events as ev
from engine.memory import requests as rq
from engine.memory import scoring
from engine.memory.errors import MemoryInputError, MemoryRefused
from engine.memory.requests import Request, View
from engine.memory.tables import LINKS, Reading
from engine.memory.writer import Unit, forget, remember
from engine.value import dataclass, replace

# ------------------------------------------------------------------ promotion


class PromoteMemory(Request[core.MemoryItem | None]):
    """A memory settles to the next level if it has earned it; None if not."""

    verb: ClassVar[str] = "promote_memory_level"
    memory_id: rq.Ident

    def write(self, unit: Unit) -> core.MemoryItem | None:
        memory = unit.reading.need_memory(self.memory_id)
        level = scoring.next_level(memory)
        if level is None:
            return None
        _settle(unit, memory, level)
        return unit.reading.need_memory(memory.id)


def _settle(unit: Unit, memory: core.MemoryItem, level: core.MemoryLevel) -> None:
    """A memory gets a level, and its time begins anew."""
    tags = tuple(str(level) if tag == memory.level else tag for tag in memory.tags)
    unit.emit(
        ev.MemoryPromoted(
            workflow=memory.workflow, memory=memory.id, level=level, ttl=scoring.TTL_S[level], tags=tags
        )
    )


class PromotionCandidates(Request[tuple[core.MemoryItem, ...]]):
    """Memories that have earned the next level, most used first."""

    workflow_id: rq.Ident
    limit: rq.Limit = 10

    def answer(self, view: View) -> tuple[core.MemoryItem, ...]:
        view.reading.need_workflow(self.workflow_id)
        used = view.reading.memories(
            "m.workflow = ? and u.count >= 5", (self.workflow_id,), order="u.count desc, m.row"
        )
        return tuple(memory for memory in used if scoring.next_level(memory) is not None)[: self.limit]


# ------------------------------------------------------------------ consolidation


class ConsolidationCandidates(Request[tuple[core.MemoryItem, ...]]):
    """Memories to be brought together: the most important that never were, newest first of those."""

    workflow_id: rq.Ident
    limit: Annotated[int, Field(ge=2, le=20)] = 10

    def answer(self, view: View) -> tuple[core.MemoryItem, ...]:
        view.reading.need_workflow(self.workflow_id)
        candidates = view.reading.memories(
            "m.workflow = ? and m.level = 'episodic' and m.consolidated = ''",
            (self.workflow_id,),
            order="m.importance desc, m.created_at desc, m.row desc",
            limit=self.limit,
        )
        return tuple(candidates)


class ConsolidateMemories(Request[core.MemoryItem]):
    """Several memories go into one; its numbers follow from theirs, and they are no sources again.

    What was learnt keeps its own time, as a question may be about it; records of what was done go soon.
    """

    workflow_id: rq.Ident
    source_ids: Annotated[tuple[rq.Ident, ...], Field(strict=False, min_length=2, max_length=20)]
    content: rq.Memo
    consolidation_type: rq.Word[core.ConsolidationKind] = core.ConsolidationKind.SUMMARY
    memory_level: rq.Word[core.MemoryLevel] = core.MemoryLevel.SEMANTIC
    computed: bool = False
    """True where the content was counted and no model wrote it."""

    def write(self, unit: Unit) -> core.MemoryItem:
        workflow = unit.reading.need_workflow(self.workflow_id).id
        idents = tuple(dict.fromkeys(self.source_ids))
        if len(idents) < 2:
            raise MemoryInputError("source_ids", "source_ids: it takes two different memories or more.")
        sources = [unit.reading.need_memory(ident, "source_ids", workflow) for ident in idents]
        used_up = [source for source in sources if source.consolidated]
        if used_up:
            raise MemoryRefused(f"{used_up[0].id} went into {used_up[0].consolidated} already: leave it out.")
        result = remember(
            unit,
            workflow,
            self.content,
            level=self.memory_level,
            type=self.consolidation_type.memory_type,
            importance=scoring.consolidated_importance([source.importance for source in sources]),
            confidence=scoring.consolidated_confidence([source.confidence for source in sources]),
            description=f"Consolidated from {len(sources)} memories",
            source="computed" if self.computed else "consolidation",
            context={"sources": list(idents)},
            tags=("consolidated",),
        )
        for source in sources:
            link = core.MemoryLink(result.id, source.id, core.LinkType.GENERALIZES, created_at=unit.now)
            unit.emit(ev.MemoriesLinked(workflow=workflow, link=link))
        for ttl, learnt in ((0, True), (scoring.CONSOLIDATED_TTL_S, False)):
            alike = tuple(source.id for source in sources if scoring.learnt(source) is learnt)
            if alike:
                unit.emit(
                    ev.MemoriesConsolidated(workflow=workflow, memory=result.id, sources=alike, ttl=ttl)
                )
        return result


# ------------------------------------------------------------------ reflection


class RecordReflection(Request[core.Reflection]):
    """The text of a reflection is kept, and can be found like any other memory."""

    workflow_id: rq.Ident
    content: rq.Text = Field(min_length=1)
    reflection_type: rq.Word[core.ReflectionKind]
    computed: bool = False
    memory_ids: rq.Idents = ()

    def write(self, unit: Unit) -> core.Reflection:
        workflow = unit.reading.need_workflow(self.workflow_id).id
        for ident in self.memory_ids:
            unit.reading.need_memory(ident, "memory_ids", workflow)
        if not self.content.strip():
            raise MemoryInputError("content", "content: a reflection must say something.")
        ident, title = unit.new_id("r"), self.content.strip().splitlines()[0][:100]
        said = (self.reflection_type, title, self.content, self.computed)
        reflection = core.Reflection(ident, workflow, *said, self.memory_ids, unit.now)
        unit.emit(ev.ReflectionRecorded(reflection=reflection))
        remember(
            unit,
            workflow,
            self.content,
            level=core.MemoryLevel.SEMANTIC,
            type=core.MemoryType.REFLECTION,
            importance=scoring.THOUGHT_IMPORTANCE["reflection"],
            description=f"Reflection ({self.reflection_type})",
            source="computed" if self.computed else "reflection",
            context={"reflection": reflection.id},
        )
        return reflection


# ------------------------------------------------------------------ maintenance

SWEEP = 500
"""Memories that one unit of work lets go."""


class DeleteExpiredMemories(Request[int]):
    """Memories whose time is over go, at most 500 at a time; answers how many.

    What was used or matters stays, and is given new time a day before it would be missed.
    """

    def write(self, unit: Unit) -> int:
        for memory in self._until(unit, unit.now + scoring.DAY_S, "m.level != 'working'"):
            level = scoring.settled(memory, unit.now)
            if level is not None:
                _settle(unit, memory, level)
        over = self._until(unit, unit.now)
        forget(unit, over, expired=True)
        return len(over)

    @staticmethod
    def _until(unit: Unit, time: float, which: str = "true") -> list[core.MemoryItem]:
        return unit.reading.memories(
            f"m.expires_at <= ? and {which}", (time,), order="m.expires_at, m.row", limit=SWEEP, expired=True
        )


class DecayLinkStrengths(Request[int]):
    """Links of more than two weeks lose a twentieth of their strength; answers how many did."""

    workflow_id: rq.Ident

    def write(self, unit: Unit) -> int:
        unit.reading.need_workflow(self.workflow_id)
        links = unit.reading.many(
            LINKS,
            "t.created_at < ? and exists(select 1 from memories m where m.id = t.source and m.died is null "
            "and m.workflow = ?)",
            (unit.now - scoring.LINK_DECAY_AFTER_S, self.workflow_id),
        )
        weaker = tuple(
            replace(link, strength=strength)
            for link in links
            if (strength := scoring.weakened(link, unit.now)) is not None
        )
        if weaker:
            unit.emit(ev.LinksWeakened(workflow=self.workflow_id, links=weaker))
        return len(weaker)


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

    workflow_id: rq.MaybeIdent = ""

    def answer(self, view: View) -> MemoryStatistics:
        reading = view.reading
        if self.workflow_id:
            reading.need_workflow(self.workflow_id)
        mine = f"{reading.live('m')} and {reading.alive} and ? in ('', m.workflow)"
        values = (reading.now, self.workflow_id)
        ((total, importance, confidence, waiting),) = reading.rows(
            f"""select count(*), coalesce(avg(m.importance), 0), coalesce(avg(m.confidence), 0),
            count(*) filter (where m.level = 'episodic' and m.consolidated = '')
            from memories m where {mine}""",
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
