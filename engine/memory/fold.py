"""Memory as a fold of events: the only place where rows of `memory.db` are born and die."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from engine.domain.memory import MemoryItem, Tagging, Usage
from engine.journal import memory_events as ev
from engine.journal.event import Event
from engine.journal.payload import Payload
from engine.memory.errors import MemoryUnavailable
from engine.memory.reading import Reading
from engine.memory.scoring import expiry, scope_words, text_digest
from engine.memory.tables import (
    ACTIONS,
    ARTIFACTS,
    CHAINS,
    DEPENDENCIES,
    LINKS,
    MEMORIES,
    REFLECTIONS,
    STATES,
    TAGGINGS,
    THOUGHTS,
    USAGES,
    WORKFLOWS,
    Table,
)

P = TypeVar("P", bound=Payload)


class Touched(NamedTuple):
    """What an event was about."""

    workflow: str
    subject: str
    key: str = ""


class Rows:
    """Births and deaths of rows at one event."""

    def __init__(self, connection: sqlite3.Connection, number: int, at: float) -> None:
        self.connection = connection
        self.number = number
        self.at = at
        self.reading = Reading(connection, at)

    def put(self, table: Table[Any], value: Any) -> int:
        """A value is born; one with the same key dies. Answers the number of its row."""
        self._die(table, [getattr(value, name) for name in table.key])
        return self.bear(table, value)

    def bear(self, table: Table[Any], value: Any) -> int:
        """A value is born whose key is new. Answers the number of its row."""
        return self._insert(table, table.row_of(value))

    def change(self, table: Table[Any], key: str, changes: Mapping[str, Any]) -> int:
        """A value goes on with other fields.

        Raises:
            MemoryUnavailable: there is none; the events do not fit together.
        """
        row = self.connection.execute(
            f"select * from {table.name} where {table.key[0]} = ? and died is null", (key,)
        ).fetchone()
        if row is None:
            raise MemoryUnavailable(f"Event {self.number} changes {key}, which is not in {table.name}.")
        self._die(table, [key])
        fresh = [table.encode(changes[name]) if name in changes else row[name] for name in table.columns]
        return self._insert(table, fresh)

    def end(self, table: Table[Any], *key: str) -> None:
        """A value dies."""
        self._die(table, key)

    def _die(self, table: Table[Any], key: Iterable[Any]) -> None:
        self.connection.execute(table.death, (self.number, *key))

    def _insert(self, table: Table[Any], encoded: Iterable[Any]) -> int:
        return int(self.connection.execute(table.birth, (self.number, *encoded)).lastrowid or 0)

    def tag(self, owner: str, tags: Iterable[str]) -> None:
        """These are all tags of something now."""
        old = {one.tag for one in self.reading.many(TAGGINGS, "t.owner = ?", (owner,))}
        new = dict.fromkeys(tags)
        for tag in sorted(old - set(new)):
            self.end(TAGGINGS, owner, tag)
        for tag in new:
            if tag not in old:
                self.put(TAGGINGS, Tagging(owner, tag))

    def remember(self, memory: MemoryItem) -> None:
        """A memory is born, with its words and tags; its id is new."""
        self._index(self.bear(MEMORIES, memory), memory)
        tags = [(self.number, memory.id, tag) for tag in dict.fromkeys(memory.tags)]
        self.connection.executemany(TAGGINGS.birth, tags)

    def alter(self, ident: str, changes: Mapping[str, Any]) -> None:
        """A memory goes on with other fields; its words are indexed anew with it."""
        row = self.change(MEMORIES, ident, changes)
        (memory,) = self.reading.memories("m.id = ?", (ident,), expired=True)
        self._index(row, memory)
        if "tags" in changes:
            self.tag(ident, memory.tags)

    def _index(self, row: int, memory: MemoryItem) -> None:
        self.connection.execute(
            "insert into words(rowid, content, description, reasoning, tags, scope) values(?, ?, ?, ?, ?, ?)",
            (
                row,
                memory.content,
                memory.description,
                memory.reasoning,
                " ".join(memory.tags),
                " ".join(scope_words(memory.workflow, memory.level, memory.type)),
            ),
        )


def seconds(at: str) -> float:
    """The time of an event in seconds since 1970."""
    return datetime.fromisoformat(at).timestamp()


def apply(connection: sqlite3.Connection, event: Event, payload: Payload) -> None:
    """Bring the tables forward by one event of the memory's stream.

    Raises:
        MemoryUnavailable: the event does not fit what came before.
    """
    rows = Rows(connection, event.version, seconds(event.at))
    handler = _handlers.get(type(payload))
    if handler is None:
        raise MemoryUnavailable(f"Event {event.ref} ({event.kind}) is none of memory's.")
    touched = handler(rows, payload)
    connection.execute(
        "insert into operations values(?, ?, ?, ?, ?, ?, ?, ?)",
        (event.version, event.seq or None, rows.at, event.actor, event.kind, *touched),
    )


_handlers: dict[type[Payload], Callable[[Rows, Any], Touched]] = {}


def _on(kind: type[P]) -> Callable[[Callable[[Rows, P], Touched]], None]:
    def register(handler: Callable[[Rows, P], Touched]) -> None:
        _handlers[kind] = handler

    return register


# ------------------------------------------------------------------ workflows, actions, thoughts


@_on(ev.WorkflowCreated)
def _workflow_created(rows: Rows, said: ev.WorkflowCreated) -> Touched:
    rows.put(WORKFLOWS, said.workflow)
    rows.tag(said.workflow.id, said.workflow.tags)
    return Touched(said.workflow.id, said.workflow.id, said.key)


@_on(ev.WorkflowChanged)
def _workflow_changed(rows: Rows, said: ev.WorkflowChanged) -> Touched:
    ended = rows.at if said.status.terminal else None
    changes = {"status": said.status, "tags": said.tags, "updated_at": rows.at, "completed_at": ended}
    rows.change(WORKFLOWS, said.workflow, changes)
    rows.tag(said.workflow, said.tags)
    return Touched(said.workflow, said.workflow, said.key)


@_on(ev.ActionRecorded)
def _action_recorded(rows: Rows, said: ev.ActionRecorded) -> Touched:
    rows.put(ACTIONS, said.action)
    rows.tag(said.action.id, said.action.tags)
    return Touched(said.action.workflow, said.action.id, said.key)


@_on(ev.ActionEnded)
def _action_ended(rows: Rows, said: ev.ActionEnded) -> Touched:
    changes = {"status": said.status, "result": said.result, "summary": said.summary}
    rows.change(ACTIONS, said.action, {**changes, "completed_at": rows.at})
    return Touched(said.workflow, said.action, said.key)


@_on(ev.DependencyAdded)
def _dependency_added(rows: Rows, said: ev.DependencyAdded) -> Touched:
    rows.put(DEPENDENCIES, said.dependency)
    return Touched(said.workflow, said.dependency.source)


@_on(ev.ArtifactRecorded)
def _artifact_recorded(rows: Rows, said: ev.ArtifactRecorded) -> Touched:
    rows.put(ARTIFACTS, said.artifact)
    rows.tag(said.artifact.id, said.artifact.tags)
    return Touched(said.artifact.workflow, said.artifact.id, said.key)


@_on(ev.ThoughtChainCreated)
def _chain_created(rows: Rows, said: ev.ThoughtChainCreated) -> Touched:
    rows.put(CHAINS, said.chain)
    return Touched(said.chain.workflow, said.chain.id)


@_on(ev.ThoughtAdded)
def _thought_added(rows: Rows, said: ev.ThoughtAdded) -> Touched:
    rows.put(THOUGHTS, said.thought)
    return Touched(said.workflow, said.thought.id, said.key)


# ------------------------------------------------------------------ memories


@_on(ev.MemoryStored)
def _stored(rows: Rows, said: ev.MemoryStored) -> Touched:
    rows.remember(said.memory)
    return Touched(said.memory.workflow, said.memory.id, said.key)


@_on(ev.MemoryChanged)
def _changed(rows: Rows, said: ev.MemoryChanged) -> Touched:
    changes = {**said.changes, "updated_at": rows.at}
    if "content" in changes or "description" in changes:
        (old,) = rows.reading.memories("m.id = ?", (said.memory,), expired=True)
        texts = (changes.get("description", old.description), changes.get("content", old.content))
        changes["digest"] = text_digest(*texts)
    rows.alter(said.memory, changes)
    return Touched(said.workflow, said.memory)


@_on(ev.MemoryPromoted)
def _promoted(rows: Rows, said: ev.MemoryPromoted) -> Touched:
    changes = {"level": said.level, "ttl": said.ttl, "expires_at": expiry(rows.at, said.ttl)}
    rows.alter(said.memory, {**changes, "tags": said.tags, "updated_at": rows.at})
    return Touched(said.workflow, said.memory)


@_on(ev.MemoriesUsed)
def _used(rows: Rows, said: ev.MemoriesUsed) -> Touched:
    for ident in said.memories:
        known = rows.reading.find(USAGES, ident)
        rows.put(USAGES, Usage(ident, known.count + 1 if known else 1, rows.at))
    return Touched(said.workflow, said.memories[0])


@_on(ev.MemoriesForgotten)
def _forgotten(rows: Rows, said: ev.MemoriesForgotten) -> Touched:
    gone = set(said.memories)
    for ident in said.memories:
        for link in rows.reading.many(LINKS, "(t.source = ? or t.target = ?)", (ident, ident)):
            rows.end(LINKS, link.source, link.target, link.type)
        rows.tag(ident, ())
        rows.end(USAGES, ident)
        rows.end(MEMORIES, ident)
    state = rows.reading.find(STATES, said.workflow)
    if state is not None and gone & {*state.working, *state.pinned, state.focal}:
        rest = tuple(one for one in state.working if one not in gone)
        pinned = tuple(one for one in state.pinned if one not in gone)
        focal = "" if state.focal in gone else state.focal
        rows.put(STATES, replace(state, working=rest, pinned=pinned, focal=focal))
    return Touched(said.workflow, said.memories[0])


@_on(ev.MemoriesLinked)
def _linked(rows: Rows, said: ev.MemoriesLinked) -> Touched:
    rows.put(LINKS, said.link)
    return Touched(said.workflow, said.link.source)


@_on(ev.LinksWeakened)
def _weakened(rows: Rows, said: ev.LinksWeakened) -> Touched:
    for link in said.links:
        if link.strength > 0:
            rows.put(LINKS, link)
        else:
            rows.end(LINKS, link.source, link.target, link.type)
    return Touched(said.workflow, said.links[0].source)


@_on(ev.MemoriesConsolidated)
def _consolidated(rows: Rows, said: ev.MemoriesConsolidated) -> Touched:
    until = expiry(rows.at, said.ttl)
    for ident in said.sources:
        (old,) = rows.reading.memories("m.id = ?", (ident,), expired=True)
        times = [one for one in (old.expires_at, until) if one is not None]
        rows.alter(ident, {"consolidated": said.memory, "expires_at": min(times, default=None)})
    return Touched(said.workflow, said.memory)


@_on(ev.MindSet)
def _mind_set(rows: Rows, said: ev.MindSet) -> Touched:
    rows.put(STATES, said.state)
    return Touched(said.state.workflow, said.state.focal or said.state.workflow)


@_on(ev.ReflectionRecorded)
def _reflected(rows: Rows, said: ev.ReflectionRecorded) -> Touched:
    rows.put(REFLECTIONS, said.reflection)
    return Touched(said.reflection.workflow, said.reflection.id)
