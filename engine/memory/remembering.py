"""What every part of memory does alike: remembering, forgetting, and adding a thought.

Source: spec master-loop-and-memory §1.4 (memories that the system writes by itself), §1.5.
"""

from __future__ import annotations

from dataclasses import replace

from engine.domain.memory import (
    MemoryItem,
    MemoryLevel,
    MemoryType,
    Thought,
    ThoughtChain,
    ThoughtType,
)
from engine.journal import memory_events as ev
from engine.memory import scoring
from engine.memory.writing import Unit


def remember(unit: Unit, memory: MemoryItem, key: str = "") -> MemoryItem:
    """Store a memory with its tags, time to live and place among the vectors settled."""
    tags = tuple(dict.fromkeys((*memory.tags, str(memory.type), str(memory.level))))
    settled = replace(
        memory,
        id=unit.new_id("m"),
        tags=tags,
        expires_at=scoring.expiry(unit.now, memory.ttl),
        digest=scoring.text_digest(memory.description, memory.content),
        created_at=unit.now,
        updated_at=unit.now,
    )
    unit.emit(ev.MemoryStored(memory=settled, key=key))
    return settled


def forget(unit: Unit, memories: list[MemoryItem], *, expired: bool) -> None:
    """Let memories go, with one event for each workflow."""
    mine: dict[str, list[str]] = {}
    for memory in memories:
        mine.setdefault(memory.workflow, []).append(memory.id)
    for workflow, idents in mine.items():
        unit.emit(ev.MemoriesForgotten(workflow=workflow, memories=tuple(idents), expired=expired))


def think(
    unit: Unit,
    chain: ThoughtChain,
    kind: ThoughtType,
    content: str,
    *,
    parent: str = "",
    action: str = "",
    artifact: str = "",
    memory: str = "",
    key: str = "",
) -> Thought:
    """Add a thought to a chain; what it refers to was checked."""
    ((before,),) = unit.reading.rows(
        "select coalesce(max(sequence), 0) from thoughts where chain = ? and died is null", chain.id
    )
    thought = Thought(
        unit.new_id("t"), chain.id, kind, content, before + 1, parent, action, artifact, memory, unit.now
    )
    unit.emit(ev.ThoughtAdded(workflow=chain.workflow, thought=thought, key=key))
    if kind in scoring.THOUGHT_IMPORTANCE:
        told = MemoryItem(
            id="",
            workflow=chain.workflow,
            content=content,
            level=MemoryLevel.SEMANTIC,
            type=MemoryType.REASONING_STEP,
            importance=scoring.THOUGHT_IMPORTANCE[kind],
            ttl=scoring.TTL_S[MemoryLevel.SEMANTIC],
            description=f"Thought ({kind})",
            action=action,
            thought=thought.id,
        )
        remember(unit, told)
    return thought
