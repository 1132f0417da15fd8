"""A memory as a person looks at it: whole, with links, its place in mind, and what became of it over time.

Source: design ARCHITECTURE §5 (memory as of event N).
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import ClassVar

from engine.domain.memory import MemoryItem, Workflow
from engine.memory.errors import MemoryNotFound
from engine.memory.memories import LinkedMemory, linked
from engine.memory.mind import WorkingMemory, working_memory
from engine.memory.reading import Reading
from engine.memory.requests import Ident, Limit, Request, View, answers
from engine.memory.tables import MEMORIES


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
    memory: MemoryItem | None = None
    """None where the memory was forgotten."""


class MemoryHistory(Request[tuple[MemoryVersion, ...]]):
    """The versions of a memory, newest first; also of one that was forgotten."""

    verb: ClassVar[str] = "memory_history"
    for_agents: ClassVar[bool] = False
    memory_id: Ident
    limit: Limit = 50


@answers(MemoryHistory)
def _history(view: View, asked: MemoryHistory) -> tuple[MemoryVersion, ...]:
    return versions_of(view.reading, asked.memory_id, asked.limit)


def versions_of(reading: Reading, ident: str, limit: int) -> tuple[MemoryVersion, ...]:
    """The newest versions of a memory, newest first.

    Raises:
        MemoryNotFound: there was never such a memory.
    """
    until = "" if reading.as_of is None else f"and o.number <= {reading.as_of}"
    made = reading.rows(
        f"""select m.*, o.number as op_number, o.at as op_at, o.actor as op_actor, o.kind as op_kind
        from memories m join operations o on o.number = m.born
        where m.id = ? {until} order by m.born desc limit ?""",
        ident,
        limit,
    )
    if not made:
        raise MemoryNotFound("memory_id", f"memory_id: there was never a memory {ident!r}.")
    # The last version's end is an event of its own only where no other version follows it.
    ended = reading.rows(
        f"""select o.number as op_number, o.at as op_at, o.actor as op_actor, o.kind as op_kind
        from operations o where o.number = ? {until}""",
        made[0]["died"],
    )
    versions = [_version(row, None) for row in ended]
    return (*versions, *(_version(row, MEMORIES.decode(row)) for row in made))


def _version(row: sqlite3.Row, memory: MemoryItem | None) -> MemoryVersion:
    return MemoryVersion(row["op_number"], row["op_at"], row["op_actor"], row["op_kind"], memory)


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

    verb: ClassVar[str] = "show_memory"
    for_agents: ClassVar[bool] = False
    memory_id: Ident
    limit: Limit = 50
    """Links and versions at most, of each."""


@answers(ShowMemory)
def _show(view: View, asked: ShowMemory) -> MemoryCard:
    reading = view.reading
    memory = reading.need_memory(asked.memory_id)
    return MemoryCard(
        memory,
        linked(reading, memory.id, "both", None, asked.limit),
        versions_of(reading, memory.id, asked.limit),
        reading.need_workflow(memory.workflow),
        working_memory(reading, memory.workflow),
    )
