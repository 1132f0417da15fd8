"""The record of a journal that is kept in its index: looked up where it is asked for, not read as a whole.

What is newer than the index is taken in as by any `Record` and stays in memory; whoever writes the index
flushes it. Source: spec steering §6 idea 6.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import weakref
from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any, cast

from engine.inquiry.index import INDEX, as_json, open_index
from engine.inquiry.naming import Basis, Names, Relation, StreamNames
from engine.inquiry.record import Record
from engine.journal.errors import JournalReadError
from engine.journal.event import Event
from engine.journal.rows import COLUMNS, Row, parse_ref, to_event
from engine.journal.store import JournalStore

CACHED = 20_000
"""Values of one kind that the writer of an index keeps in memory."""
GUESSED = 2_000
"""Names among which a mistyped one is looked for, newest first."""
_GONE = object()
_ALL = "from held where sort = ?1 and (?2 is null or owner = ?2)"

_FOLLOWERS = """
select e.stream || ':' || e.version, l.relation from links l join journal.events e on e.seq = l.seq
where l.basis = ? order by l.seq
"""
_BASES = """
select l.basis, l.relation from journal.events e join links l on l.seq = e.seq
where e.stream = ? and e.version = ? order by l.place
"""


def _rows(connection: sqlite3.Connection, sql: str, *values: object) -> list[Any]:
    """What a question to the index gives.

    Raises:
        JournalReadError: the index is damaged.
    """
    try:
        return connection.execute(sql, values).fetchall()
    except sqlite3.Error as error:
        raise JournalReadError(
            f"The index of the journal cannot be read ({error}): remove .pilothouse/{INDEX}, it is made anew."
        ) from error


class Held(MutableMapping[Any, Any]):
    """Values by their key, in the index; changes stay in memory until they are flushed.

    Args:
        connection: the index.
        sort: which table of values.
        owner: whose; None where a key is owner and name.
    """

    def __init__(self, connection: sqlite3.Connection, sort: str, owner: str | None) -> None:
        self._connection = connection
        self._sort = sort
        self._owner = owner
        self._changed: dict[Any, Any] = {}
        self._seen: dict[Any, Any] = {}

    def _place(self, key: Any) -> tuple[str, str, str]:
        return (self._sort, *key) if self._owner is None else (self._sort, self._owner, key)

    def __getitem__(self, key: Any) -> Any:
        value = self._changed.get(key, self._seen.get(key))
        if value is None:
            found = _rows(
                self._connection,
                "select value from held where sort = ? and owner = ? and key = ?",
                *self._place(key),
            )
            value = self._seen[key] = json.loads(found[0][0]) if found else _GONE
        if value is _GONE:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        self._changed[key] = value

    def __delitem__(self, key: Any) -> None:
        self[key]
        self._changed[key] = _GONE

    def __iter__(self) -> Iterator[Any]:
        rows = _rows(self._connection, f"select owner, key {_ALL}", self._sort, self._owner)
        kept = dict.fromkeys((owner, key) if self._owner is None else key for owner, key in rows)
        kept.update(dict.fromkeys(self._changed))
        return (key for key in kept if self._changed.get(key) is not _GONE)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def items(self) -> ItemsView[Any, Any]:
        """All of them at once, in the order of their keys, then those that changed."""
        return self._all().items()

    def _all(self) -> dict[Any, Any]:
        rows = _rows(self._connection, f"select owner, key, value {_ALL}", self._sort, self._owner)
        kept = {
            ((owner, key) if self._owner is None else key): json.loads(value) for owner, key, value in rows
        }
        kept.update(self._changed)
        return {key: value for key, value in kept.items() if value is not _GONE}

    def flush(self) -> None:
        """Write what changed."""
        changed = self._changed
        gone = [self._place(key) for key, value in changed.items() if value is _GONE]
        new = [(*self._place(key), as_json(value)) for key, value in changed.items() if value is not _GONE]
        self._connection.executemany("delete from held where sort = ? and owner = ? and key = ?", gone)
        self._connection.executemany("insert or replace into held values(?, ?, ?, ?)", new)
        self._seen.update(changed)
        changed.clear()
        if len(self._seen) > CACHED:
            self._seen.clear()


class KeptNames(Names):
    """Names whose values are held in an index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__()
        self._connection = connection
        self._held: list[Held] = []
        self._here = self._hold("here", "")
        self.beliefs = self._hold("belief", None)
        self.files = self._hold("file", "")

    def _hold(self, sort: str, owner: str | None) -> Any:
        held = Held(self._connection, sort, owner)
        self._held.append(held)
        return held

    def of(self, stream: str) -> StreamNames:
        """What is known of an agent, its values looked up where they are needed."""
        known = self.streams.get(stream)
        if known is None:
            here = self._here.get(stream, {})
            known = self.streams[stream] = StreamNames(
                goals=self._hold("goal", stream),
                plans=self._hold("plan", stream),
                steps=self._hold("step", stream),
                done=self._hold("done", stream),
                facts=self._hold("fact", stream),
                told=list(here.get("told", ())),
                news=list(here.get("news", ())),
                cwd=here.get("cwd", "."),
                action=here.get("action", {}),
            )
        return known

    def flush(self) -> None:
        """Write what changed."""
        for stream, known in self.streams.items():
            here = {"told": known.told, "news": known.news, "cwd": known.cwd, "action": known.action}
            self._here[stream] = here
        for held in self._held:
            held.flush()


class _Events(Mapping[str, Event]):
    """Events of the journal, each looked up when it is asked for."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.known: dict[str, Event] = {}
        """Those that were taken in or looked up."""

    def __getitem__(self, ref: str) -> Event:
        event = self.known.get(ref)
        if event is None:
            found = self.where("stream = ? and version = ?", *(parse_ref(ref) or ("", 0)))
            event = next(iter(found), None)
            if event is None or event.ref != ref:
                raise KeyError(ref)
            self.known[ref] = event
        return event

    def where(self, condition: str, *values: object) -> Iterable[Event]:
        """The journal's events that a condition selects."""
        rows = _rows(self._connection, f"select {COLUMNS} from journal.events where {condition}", *values)
        return (to_event(cast("Row", row)) for row in rows)

    def __iter__(self) -> Iterator[str]:
        for event in self.where("true order by seq"):
            yield event.ref

    def __len__(self) -> int:
        ((count,),) = self._connection.execute("select count(*) from journal.events").fetchall()
        return int(count)


class KeptRecord(Record):
    """A record whose older part stands in the index of a journal.

    Args:
        connection: the index, with the journal attached; it is closed with the record.
        below: the place of the first event that the index does not have.
    """

    def __init__(self, connection: sqlite3.Connection, below: int) -> None:
        super().__init__(KeptNames(connection))
        self.below = below
        self._connection = connection
        self._events = _Events(connection)
        self._seqs: dict[str, int] = {}
        """The place of each event that was taken in here."""
        self._kept_bases: dict[str, tuple[Basis, ...]] = {}
        self._kept_followers: dict[str, tuple[Basis, ...]] = {}
        weakref.finalize(self, connection.close)

    @property
    def events(self) -> Mapping[str, Event]:
        """All events of the journal."""
        return self._events

    def add(self, event: Event) -> None:
        """Take the next event in; one that the index has changes nothing."""
        if event.seq >= self.below and event.ref not in self._seqs:
            self._seqs[event.ref] = event.seq
            self._events.known[event.ref] = event
            self._take(event)

    def bases(self, ref: str) -> tuple[Basis, ...]:
        """What an event stands on: recorded causes first."""
        if ref in self._seqs:
            return super().bases(ref)
        if ref not in self._kept_bases:
            rows = _rows(self._connection, _BASES, *(parse_ref(ref) or ("", 0)))
            self._kept_bases[ref] = tuple(Basis(basis, Relation(relation)) for basis, relation in rows)
        return self._kept_bases[ref]

    def followers(self, ref: str) -> tuple[Basis, ...]:
        """What stands on an event, in the order of the record."""
        if ref not in self._kept_followers:
            rows = _rows(self._connection, _FOLLOWERS, ref)
            self._kept_followers[ref] = tuple(Basis(one, Relation(relation)) for one, relation in rows)
        return self._kept_followers[ref] + super().followers(ref)

    def newest(self, kind: str, agent: str = "") -> Event | None:
        """The newest event of a kind, or of any where it is empty; of one agent, or of all."""
        chosen = "(?1 = '' or kind = ?1) and (?2 = '' or stream = ?2)"
        by_kind = f"seq = (select max(seq) from journal.events where kind = ?1) and {chosen}"
        taken = [one for one in map(self._events.known.get, reversed(self._seqs)) if one is not None]
        for event in taken:
            if (not kind or event.kind == kind) and (not agent or event.stream == agent):
                return event
        first = list(self._events.where(by_kind, kind, agent))
        return (
            first[0]
            if first
            else next(iter(self._events.where(f"{chosen} order by seq desc limit 1", kind, agent)), None)
        )

    def of_kind(self, kind: str) -> Iterable[Event]:
        """All events of a kind, oldest first."""
        return self._events.where("kind = ? order by seq", kind)

    def _find(self, agent: str, name: str) -> list[str]:
        rows = _rows(
            self._connection,
            "select owner, ref from named where name = ?1 and (?2 = '' or owner = ?2) order by seq",
            name,
            agent,
        )
        found: dict[str, list[str]] = {}
        for owner, ref in rows:
            found.setdefault(owner, []).append(ref)
        for (owner, known), refs in self._names.named.items():
            if known == name and agent in ("", owner):
                found.setdefault(owner, []).extend(refs)
        return next(iter(found.values())) if len(found) == 1 else []

    def _known_names(self) -> Iterable[tuple[str, str]]:
        rows = _rows(
            self._connection,
            "select distinct owner, name from (select owner, name from named order by seq desc limit ?)",
            GUESSED,
        )
        return [*rows, *self._names.named]

    def _owners(self, names: Iterable[str]) -> list[str]:
        rows = _rows(self._connection, "select distinct owner from named where name in (?, ?)", *names)
        return list(dict.fromkeys([*(owner for (owner,) in rows if owner), *super()._owners(names)]))

    def flush(self) -> None:
        """Write what was taken in to the index, within its writer's transaction, and forget it here."""
        links = [
            (seq, place, basis.ref, basis.relation.value)
            for ref, seq in self._seqs.items()
            for place, basis in enumerate(super(KeptRecord, self).bases(ref))
        ]
        self._connection.executemany("insert into links values(?, ?, ?, ?)", links)
        named = [
            (name, owner, self._seqs[ref], ref)
            for (owner, name), refs in self._names.named.items()
            for ref in refs
        ]
        self._connection.executemany("insert or ignore into named values(?, ?, ?, ?)", named)
        assert isinstance(self._names, KeptNames)
        self._names.flush()
        self._names.named.clear()
        self.below = max(self._seqs.values(), default=self.below - 1) + 1
        for store in (self._seqs, self._events.known, self._bases, self._followers):
            store.clear()


async def record_of(workspace: Path, store: JournalStore) -> Record:
    """The record of a workspace as of now: its index, and what the journal has besides.

    Raises:
        JournalError: the journal cannot be read.
    """
    found = await asyncio.to_thread(open_index, workspace)
    record = KeptRecord(*found) if found is not None else Record()
    events = [event async for event in store.events(max(0, found[1] - 1) if found else 0, follow=False)]
    await asyncio.to_thread(record.take_in, events)
    return record
