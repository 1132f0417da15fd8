"""Memory as a fold of events: the only module that inserts and ends rows of its tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

from engine.core import memory_events as ev
from engine.core.journal import Event, Payload
from engine.core.memory import CognitiveState, MemoryItem, Tagging, Usage
from engine.memory import tables
from engine.memory.connection import Connection
from engine.memory.errors import MemoryUnavailable
from engine.memory.scoring import expiry, scope_words, text_digest
from engine.memory.words import indexed

V = TypeVar("V")


class Rows:
    """Inserts and ends rows at one event."""

    def __init__(self, connection: Connection, number: int, at: float) -> None:
        self.connection = connection
        self.number = number
        self.at = at
        self.reading = tables.Reading(connection, at, writing=True)

    def put(self, table: tables.Table[Any], value: Any) -> None:
        """Insert a value; it ends the one with the same key."""
        self.end(table, table.key_of(value))
        self.insert(table, value)

    def insert(self, table: tables.Table[Any], value: Any) -> None:
        """Insert a value whose key is new."""
        self.connection.run(table.birth, (self.number, *table.row_of(value)))
        known = self.connection.known
        known[table.name, *table.key_of(value)] = value
        if table.within and (last := ("last", table.name, getattr(value, table.within))) in known:
            known[last] = max(known[last], value.sequence)

    def begin(self, table: tables.Table[Any], value: Any) -> None:
        """Insert something new, whose id nothing had before; what belongs to it is known from now on."""
        self.insert(table, value)
        self.first_tags(value.id, getattr(value, "tags", ()))
        known = self.connection.known
        if table is tables.WORKFLOWS:
            known["last", tables.ACTIONS.name, value.id] = 0
            known["below", value.id], known["first chain", value.id] = [], None
            if value.parent and (below := known.get(("below", value.parent))) is not None:
                below.append(value.id)
        elif table is tables.CHAINS:
            known["last", tables.THOUGHTS.name, value.id] = 0
            if known.get(("first chain", value.workflow), value) is None:
                known["first chain", value.workflow] = value

    def change(self, table: tables.Table[V], key: str, changes: Mapping[str, Any]) -> V:
        """A value gets other fields; answers what it was.

        Raises:
            MemoryUnavailable: there is none; the events do not fit together.
        """
        old = self.reading.find(table, key)
        if old is None:
            raise self._misfit(table, key)
        self.put(table, replace(old, **changes))  # type: ignore[type-var]
        return old

    def end(self, table: tables.Table[Any], key: Sequence[Any]) -> None:
        """End a value."""
        self.connection.run(table.death, (self.number, *key))
        self.connection.known.pop((table.name, *key), None)

    def _misfit(self, table: tables.Table[Any], key: str) -> MemoryUnavailable:
        return MemoryUnavailable(f"Event {self.number} changes {key}, which is not in {table.name}.")

    def first_tags(self, owner: str, tags: Iterable[str]) -> None:
        """Something new has these tags."""
        births = [(self.number, owner, tag) for tag in dict.fromkeys(tags)]
        if births:
            self.connection.run_many(tables.TAGGINGS.birth, births)

    def tag(self, owner: str, tags: Iterable[str]) -> None:
        """These are all tags of something now."""
        old = {tagging.tag for tagging in self.reading.many(tables.TAGGINGS, "t.owner = ?", (owner,))}
        new = dict.fromkeys(tags)
        for tag in sorted(old - set(new)):
            self.end(tables.TAGGINGS, (owner, tag))
        for tag in new:
            if tag not in old:
                self.put(tables.TAGGINGS, Tagging(owner, tag))

    def remember(self, memory: MemoryItem) -> None:
        """Insert a memory with its words and tags; its id is new."""
        self._insert_memory(memory)
        self.first_tags(memory.id, memory.tags)

    def memory(self, ident: str) -> MemoryItem:
        """A memory that an event changes, even if its time is over.

        Raises:
            MemoryUnavailable: there is none; the events do not fit together.
        """
        memory = self.reading.find_memory(ident, expired=True)
        if memory is None:
            raise self._misfit(tables.MEMORIES, ident)
        return memory

    def alter(self, memory: MemoryItem, changes: Mapping[str, Any]) -> None:
        """A memory gets other fields; its words are indexed anew with it."""
        self.end(tables.MEMORIES, [memory.id])
        self._insert_memory(replace(memory, **changes))
        if "tags" in changes:
            self.tag(memory.id, changes["tags"])

    def _insert_memory(self, memory: MemoryItem) -> None:
        table = tables.MEMORIES
        row, columns = self.reading.last_memory() + 1, table.row_of(memory)
        self.connection.run(tables.MEMORY_BIRTH, (row, self.number, *columns))
        self.connection.known[tables.LAST_MEMORY] = row
        joined = {"access_count": memory.access_count, "accessed_at": memory.accessed_at}
        read = table.decode({**dict(zip(table.columns, columns, strict=True)), **joined})  # as it will be
        self.connection.known[table.name, memory.id] = read
        self.connection.words.add(
            row,
            (
                *map(indexed, (memory.content, memory.description, memory.reasoning, " ".join(memory.tags))),
                " ".join(scope_words(memory.workflow, memory.level, memory.type)),
            ),
        )


def without(state: CognitiveState, gone: Collection[str]) -> CognitiveState:
    """What a workflow has in mind without some memories."""
    return replace(
        state,
        working=tuple(ident for ident in state.working if ident not in gone),
        pinned=tuple(ident for ident in state.pinned if ident not in gone),
        focal="" if state.focal in gone else state.focal,
    )


@lru_cache(16)
def seconds(at: str) -> float:
    """The time of an event in seconds since 1970."""
    return datetime.fromisoformat(at).timestamp()


def apply(connection: Connection, event: Event, payload: Payload) -> None:
    """Update the tables by one event of the memory's stream.

    Raises:
        MemoryUnavailable: the event does not fit what came before.
    """
    rows = Rows(connection, event.version, seconds(event.at))
    if put := _PUTS.get(type(payload)):
        value, workflow, subject = put[1](payload)
        if put[0].key == ("id",):  # which is new
            rows.begin(put[0], value)
        else:
            rows.put(put[0], value)
    elif fold := _FOLDS.get(type(payload)):
        workflow, subject = fold(rows, payload)
    else:
        raise MemoryUnavailable(f"Event {event.ref} ({event.kind}) is none of memory's.")
    about = (workflow, subject or workflow, getattr(payload, "key", ""))
    connection.run(
        "insert into operations values(?, ?, ?, ?, ?, ?, ?, ?)",
        (event.version, event.seq or None, rows.at, event.actor, event.kind, *about),
    )
    if (made := connection.known.get(("made", event.kind, about[2]))) is not None:
        made.append(about[:2])


_PUTS: dict[type[Payload], tuple[tables.Table[Any], attrgetter[Any]]] = {
    ev.WorkflowCreated: (tables.WORKFLOWS, attrgetter("workflow", "workflow.id", "workflow.id")),
    ev.ActionRecorded: (tables.ACTIONS, attrgetter("action", "action.workflow", "action.id")),
    ev.DependencyAdded: (tables.DEPENDENCIES, attrgetter("dependency", "workflow", "dependency.source")),
    ev.ArtifactRecorded: (tables.ARTIFACTS, attrgetter("artifact", "artifact.workflow", "artifact.id")),
    ev.ThoughtChainCreated: (tables.CHAINS, attrgetter("chain", "chain.workflow", "chain.id")),
    ev.ThoughtAdded: (tables.THOUGHTS, attrgetter("thought", "workflow", "thought.id")),
    ev.MemoriesLinked: (tables.LINKS, attrgetter("link", "workflow", "link.source")),
    ev.MemoryJudged: (tables.JUDGEMENTS, attrgetter("judgement", "workflow", "judgement.memory")),
    ev.MindSet: (tables.STATES, attrgetter("state", "state.workflow", "state.focal")),
    ev.ReflectionRecorded: (
        tables.REFLECTIONS,
        attrgetter("reflection", "reflection.workflow", "reflection.id"),
    ),
}
"""Events by which a value is born: its table, and the value, workflow and subject of the event."""


def _workflow_changed(rows: Rows, payload: ev.WorkflowChanged) -> tuple[str, str]:
    ended = rows.at if payload.status.terminal else None
    changes = {"status": payload.status, "tags": payload.tags, "updated_at": rows.at, "completed_at": ended}
    if rows.change(tables.WORKFLOWS, payload.workflow, changes).tags != payload.tags:
        rows.tag(payload.workflow, payload.tags)
    return payload.workflow, payload.workflow


def _action_ended(rows: Rows, payload: ev.ActionEnded) -> tuple[str, str]:
    changes = {"status": payload.status, "result": payload.result, "summary": payload.summary}
    rows.change(tables.ACTIONS, payload.action, {**changes, "completed_at": rows.at})
    return payload.workflow, payload.action


def _stored(rows: Rows, payload: ev.MemoryStored) -> tuple[str, str]:
    rows.remember(payload.memory)
    return payload.memory.workflow, payload.memory.id


def _changed(rows: Rows, payload: ev.MemoryChanged) -> tuple[str, str]:
    changes, old = {**payload.changes, "updated_at": rows.at}, rows.memory(payload.memory)
    if "content" in changes or "description" in changes:
        texts = (changes.get("description", old.description), changes.get("content", old.content))
        changes["digest"] = text_digest(*texts)
    rows.alter(old, changes)
    return payload.workflow, payload.memory


def _promoted(rows: Rows, payload: ev.MemoryPromoted) -> tuple[str, str]:
    changes = {"level": payload.level, "ttl": payload.ttl, "expires_at": expiry(rows.at, payload.ttl)}
    rows.alter(rows.memory(payload.memory), {**changes, "tags": payload.tags, "updated_at": rows.at})
    return payload.workflow, payload.memory


def _used(rows: Rows, payload: ev.MemoriesUsed) -> tuple[str, str]:
    for ident in payload.memories:
        known = rows.reading.find(tables.USAGES, ident)
        rows.put(tables.USAGES, Usage(ident, known.count + 1 if known else 1, rows.at))
        rows.connection.known.pop((tables.MEMORIES.name, ident), None)
    return payload.workflow, payload.memories[0]


def _forgotten(rows: Rows, payload: ev.MemoriesForgotten) -> tuple[str, str]:
    gone = set(payload.memories)
    for ident in payload.memories:
        for link in rows.reading.many(tables.LINKS, "(t.source = ? or t.target = ?)", (ident, ident)):
            rows.end(tables.LINKS, (link.source, link.target, link.type))
        rows.tag(ident, ())
        rows.end(tables.USAGES, (ident,))
        rows.end(tables.MEMORIES, (ident,))
    state = rows.reading.find(tables.STATES, payload.workflow)
    if state is not None and gone & {*state.working, *state.pinned, state.focal}:
        rows.put(tables.STATES, without(state, gone))
    return payload.workflow, payload.memories[0]


def _weakened(rows: Rows, payload: ev.LinksWeakened) -> tuple[str, str]:
    for link in payload.links:
        if link.strength > 0:
            rows.put(tables.LINKS, link)
        else:
            rows.end(tables.LINKS, (link.source, link.target, link.type))
    return payload.workflow, payload.links[0].source


def _consolidated(rows: Rows, payload: ev.MemoriesConsolidated) -> tuple[str, str]:
    until = expiry(rows.at, payload.ttl)
    for ident in payload.sources:
        old = rows.memory(ident)
        times = [time for time in (old.expires_at, until) if time is not None]
        rows.alter(old, {"consolidated": payload.memory, "expires_at": min(times, default=None)})
    return payload.workflow, payload.memory


_FOLDS: dict[type[Payload], Callable[[Rows, Any], tuple[str, str]]] = {
    ev.WorkflowChanged: _workflow_changed,
    ev.ActionEnded: _action_ended,
    ev.MemoryStored: _stored,
    ev.MemoryChanged: _changed,
    ev.MemoryPromoted: _promoted,
    ev.MemoriesUsed: _used,
    ev.MemoriesForgotten: _forgotten,
    ev.LinksWeakened: _weakened,
    ev.MemoriesConsolidated: _consolidated,
}
"""What other events change; each gives workflow and subject of the event."""
