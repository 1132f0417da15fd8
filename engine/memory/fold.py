"""Memory as a fold of events: the only module that inserts and ends rows of its tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any

from engine.core import memory_events as ev
from engine.core.journal import Event, Payload
from engine.core.memory import CognitiveState, MemoryItem, Tagging, Usage
from engine.memory import tables
from engine.memory.connection import Connection
from engine.memory.errors import MemoryUnavailable
from engine.memory.scoring import expiry, scope_words, text_digest
from engine.memory.words import indexed


class Rows:
    """Inserts and ends rows at one event."""

    def __init__(self, connection: Connection, number: int, at: float) -> None:
        self.connection = connection
        self.number = number
        self.at = at
        self.reading = tables.Reading(connection, at)

    def put(self, table: tables.Table[Any], value: Any) -> int:
        """Insert a value; it ends the one with the same key. Answers the number of its row."""
        self.end(table, [getattr(value, name) for name in table.key])
        return self.insert(table, value)

    def insert(self, table: tables.Table[Any], value: Any) -> int:
        """Insert a value whose key is new. Answers the number of its row."""
        return self._insert(table, table.row_of(value))

    def change(self, table: tables.Table[Any], key: str, changes: Mapping[str, Any]) -> int:
        """A value gets other fields.

        Raises:
            MemoryUnavailable: there is none; the events do not fit together.
        """
        sql = f"select * from {table.name} where {table.key[0]} = ? and died is null"
        row = next(iter(self.connection.rows(sql, (key,))), None)
        if row is None:
            raise MemoryUnavailable(f"Event {self.number} changes {key}, which is not in {table.name}.")
        self.end(table, [key])
        fresh = [tables.encoded(changes[name]) if name in changes else row[name] for name in table.columns]
        return self._insert(table, fresh)

    def end(self, table: tables.Table[Any], key: Iterable[Any]) -> None:
        """End a value."""
        self.connection.run(table.death, (self.number, *key))

    def _insert(self, table: tables.Table[Any], row: Iterable[Any]) -> int:
        return self.connection.add(table.birth, (self.number, *row))

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
        self._index(self.insert(tables.MEMORIES, memory), memory)
        tags = [(self.number, memory.id, tag) for tag in dict.fromkeys(memory.tags)]
        self.connection.run_many(tables.TAGGINGS.birth, tags)

    def alter(self, ident: str, changes: Mapping[str, Any]) -> None:
        """A memory gets other fields; its words are indexed anew with it."""
        row = self.change(tables.MEMORIES, ident, changes)
        (memory,) = self.reading.memories("m.id = ?", (ident,), expired=True)
        self._index(row, memory)
        if "tags" in changes:
            self.tag(ident, memory.tags)

    def _index(self, row: int, memory: MemoryItem) -> None:
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
        rows.put(put[0], value)
        if put[0] in (tables.WORKFLOWS, tables.ACTIONS, tables.ARTIFACTS):
            rows.tag(value.id, value.tags)
    elif fold := _FOLDS.get(type(payload)):
        workflow, subject = fold(rows, payload)
    else:
        raise MemoryUnavailable(f"Event {event.ref} ({event.kind}) is none of memory's.")
    about = (workflow, subject or workflow, getattr(payload, "key", ""))
    connection.run(
        "insert into operations values(?, ?, ?, ?, ?, ?, ?, ?)",
        (event.version, event.seq or None, rows.at, event.actor, event.kind, *about),
    )


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
    rows.change(tables.WORKFLOWS, payload.workflow, changes)
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
    changes = {**payload.changes, "updated_at": rows.at}
    if "content" in changes or "description" in changes:
        (old,) = rows.reading.memories("m.id = ?", (payload.memory,), expired=True)
        texts = (changes.get("description", old.description), changes.get("content", old.content))
        changes["digest"] = text_digest(*texts)
    rows.alter(payload.memory, changes)
    return payload.workflow, payload.memory


def _promoted(rows: Rows, payload: ev.MemoryPromoted) -> tuple[str, str]:
    changes = {"level": payload.level, "ttl": payload.ttl, "expires_at": expiry(rows.at, payload.ttl)}
    rows.alter(payload.memory, {**changes, "tags": payload.tags, "updated_at": rows.at})
    return payload.workflow, payload.memory


def _used(rows: Rows, payload: ev.MemoriesUsed) -> tuple[str, str]:
    for ident in payload.memories:
        known = rows.reading.find(tables.USAGES, ident)
        rows.put(tables.USAGES, Usage(ident, known.count + 1 if known else 1, rows.at))
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
        (old,) = rows.reading.memories("m.id = ?", (ident,), expired=True)
        times = [time for time in (old.expires_at, until) if time is not None]
        rows.alter(ident, {"consolidated": payload.memory, "expires_at": min(times, default=None)})
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
