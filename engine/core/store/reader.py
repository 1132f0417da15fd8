"""Questions to the journal on disk, asked through a connection that cannot write."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import aiosqlite

from engine.core.journal import Event, JournalClosed, JournalCorrupt, JournalReadError
from engine.core.store.port import START, Head, Row, StoredSnapshot, parse_ref
from engine.core.store.schema import COLUMNS, to_event

_LARGEST = 2**63 - 1
UNSAID_VERSION = "0.1"
"""Wrote the journals that do not say which version wrote them."""

_STREAMS = """
with recursive names(stream) as (
    select min(stream) from events
    union all
    select (select min(stream) from events where stream > names.stream) from names
    where names.stream is not null
)
select e.stream, e.version, e.hash from names join events e on e.stream = names.stream
where e.version = (select max(version) from events where stream = names.stream)
order by e.stream
"""
"""Heads of all streams; stepping from name to name on the index, it costs by streams and not by events."""


class JournalReader:
    """Reads events; each answer is of one moment, and events once read never change."""

    def __init__(self, connection: aiosqlite.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path
        """The database file."""

    async def fetch(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """All rows of a query.

        Raises:
            JournalCorrupt: the file is damaged.
            JournalReadError: it cannot be read just now.
            JournalClosed: the journal was closed.
        """
        try:
            rows: Iterable[Any] = await self._connection.execute_fetchall(sql, parameters)
        except sqlite3.OperationalError as error:
            raise JournalReadError(f"{self.path} cannot be read ({error}).") from error
        except sqlite3.DatabaseError as error:
            raise JournalCorrupt(self.path, str(error)) from error
        except ValueError as error:  # what aiosqlite raises once closed
            raise JournalClosed(f"The journal is closed ({self.path}).") from error
        return cast("list[tuple[Any, ...]]", rows)

    async def _select(self, condition: str, *parameters: Any) -> list[Event]:
        """The events that a condition (with its order and limit) selects."""
        return self._made(await self.fetch(f"select {COLUMNS} from events {condition}", *parameters))

    def _made(self, rows: Iterable[tuple[Any, ...]]) -> list[Event]:
        try:
            return [to_event(cast("Row", row)) for row in rows]
        except ValueError as error:
            raise JournalCorrupt(self.path, str(error)) from error

    async def rows(self, after: int, limit: int) -> list[Row]:
        """Up to `limit` rows as they are stored, behind place `after`."""
        rows = await self.fetch(
            f"select {COLUMNS} from events where seq > ? order by seq limit ?", after, limit
        )
        return cast("list[Row]", rows)

    async def page(self, after: int, limit: int, stream: str | None) -> list[Event]:
        """Up to `limit` events behind place `after`, in order, of one stream or of all."""
        if stream is None:
            return await self._select("where seq > ? order by seq limit ?", after, limit)
        # Within a stream versions grow with seq, and versions are what the index has in order.
        version = await self.version_at(stream, after) if after > 0 else 0
        return await self.read(stream, version + 1, None, limit)

    async def read(
        self, stream: str, from_version: int = 1, to_version: int | None = None, limit: int = -1
    ) -> list[Event]:
        """Events of a stream, from one version to another, both included; a negative limit means all."""
        last = _LARGEST if to_version is None else to_version
        condition = "where stream = ? and version between ? and ? order by version limit ?"
        return await self._select(condition, stream, from_version, last, limit)

    async def get(self, ref: str | int) -> Event | None:
        """The event with this place or reference, or None when there is none."""
        if isinstance(ref, int):
            events = await self._select("where seq = ?", ref) if 0 < ref <= _LARGEST else []
        else:
            named = parse_ref(ref)
            events = await self._select("where stream = ? and version = ?", *named) if named else []
        return events[0] if events else None

    async def last(
        self, n: int, stream: str | None = None, *, kind: str | None = None, before: int | None = None
    ) -> list[Event]:
        """The newest `n` events (before a place), of one stream or kind or of all, oldest of them first."""
        conditions = [("stream = ?", stream), ("kind = ?", kind), ("seq < ?", before)]
        given = [(text, value) for text, value in conditions if value is not None]
        where = "where " + " and ".join(text for text, _ in given) if given else ""
        order = "version" if stream is not None and kind is None else "seq"
        values = [value for _, value in given]
        newest = await self._select(f"{where} order by {order} desc limit ?", *values, max(n, 0))
        return newest[::-1]

    async def of_kinds(self, kinds: Sequence[str], after: int, limit: int) -> list[Event]:
        """Up to `limit` events of these kinds behind place `after`, in order."""
        marks = ", ".join("?" * len(kinds))
        # For many kinds a scan by place is quicker than the index of kinds: a plus keeps SQLite from it.
        column = "+kind" if len(kinds) > 1 else "kind"
        return await self._select(
            f"where seq > ? and {column} in ({marks}) order by seq limit ?", after, *kinds, limit
        )

    async def places(self, stream: str, kinds: Sequence[str], first: int, last: int) -> list[tuple[int, str]]:
        """Version and kind of a stream's events of these kinds, in order, from one version to another."""
        marks = ", ".join("?" * len(kinds))
        # Within a stream, not by kind: a plus keeps SQLite from the other index.
        sql = (
            "select version, kind from events where stream = ? and version between ? and ? "
            f"and +kind in ({marks}) order by version"
        )
        rows = await self.fetch(sql, stream, first, last, *kinds)
        return cast("list[tuple[int, str]]", rows)

    async def version_at(self, stream: str, seq: int) -> int:
        """The newest version of a stream at a place; 0 where it had not begun."""
        sql = "select version from events where stream = ? and seq <= ? order by version desc limit 1"
        rows = await self.fetch(sql, stream, min(seq, _LARGEST))
        return int(rows[0][0]) if rows else 0

    async def streams(self) -> dict[str, Head]:
        """The head of every stream, by name in order."""
        return {name: Head(version, digest) for name, version, digest in await self.fetch(_STREAMS)}

    async def head(self, stream: str) -> Head:
        """The head of a stream; version 0 and the genesis hash when it has no event."""
        rows = await self.fetch(
            "select version, hash from events where stream = ? order by version desc limit 1", stream
        )
        return Head(*rows[0]) if rows else START

    async def head_seq(self) -> int:
        """The place of the last event, 0 when there is none."""
        ((seq,),) = await self.fetch("select coalesce(max(seq), 0) from events")
        return int(seq)

    async def last_given_seq(self) -> int:
        """The last place ever given out, as SQLite remembers it apart from the events; 0 when it does not."""
        # The table is SQLite's own, and a journal from before it was asked for may not have it.
        if not await self.fetch("select 1 from sqlite_schema where name = 'sqlite_sequence'"):
            return 0
        rows = await self.fetch("select seq from sqlite_sequence where name = 'events'")
        return int(rows[0][0]) if rows else 0

    async def count(self) -> int:
        """How many events there are."""
        ((count,),) = await self.fetch("select count(*) from events")
        return int(count)

    async def read_writers(self) -> tuple[str, ...]:
        """The versions that wrote to a journal that has events, as far as they said so."""
        rows = await self.fetch("select value from meta where key = 'written_by'")
        return tuple(str(rows[0][0]).split()) if rows else (UNSAID_VERSION,)

    async def damage(self) -> str:
        """What SQLite finds wrong with the file and its indexes, in its words; empty when it is sound."""
        ((verdict,),) = await self.fetch("pragma integrity_check(1)")
        return "" if verdict == "ok" else str(verdict)

    async def _fetch_kept(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """As `fetch`, of kept states: a cache that cannot be read is an empty one."""
        try:
            return await self.fetch(sql, *parameters)
        except (JournalReadError, JournalCorrupt):
            return []

    async def load_snapshot(
        self,
        stream: str,
        at_or_before: int | None,
        format: int,  # noqa: A002
    ) -> tuple[int, str] | None:
        """Version and state of the newest snapshot up to a version whose event is in the journal.

        What is kept beside a stream is named after it and a word: `pilot@mind`.
        """
        rows = await self._fetch_kept(
            """select version, cast(state as blob) from snapshots s
            where stream = ? and version <= ? and format = ?
            and exists(
                select 1 from events e
                where e.stream = substr(s.stream, 1, instr(s.stream || '@', '@') - 1)
                and e.version = s.version
            )
            order by version desc limit 1""",
            stream,
            _LARGEST if at_or_before is None else at_or_before,
            format,
        )
        return (rows[0][0], _text(rows[0][1])) if rows else None

    async def load_snapshots(
        self,
        streams: Sequence[str],
        format: int,  # noqa: A002
        *,
        beside: str = "",
    ) -> list[StoredSnapshot]:
        """The newest snapshot of each of these streams that has one, or of what is kept beside it."""
        rows = await self._fetch_kept(
            """select e.stream, s.version, e.hash, cast(s.state as blob) from json_each(?) names
            cross join snapshots s on s.stream = names.value || ? and s.format = ? and s.version = (
                select max(version) from snapshots where stream = names.value || ? and format = ?
            )
            join events e on e.stream = names.value and e.version = s.version""",
            json.dumps(streams),
            beside,
            format,
            beside,
            format,
        )
        return [
            StoredSnapshot(stream, version, digest, _text(state)) for stream, version, digest, state in rows
        ]

    async def since(self, places: Mapping[str, int]) -> list[Event]:
        """Events of several streams, each behind a version of its own, by stream and in order."""
        rows = await self.fetch(
            f"select {COLUMNS} from json_each(?) places "
            "cross join events on stream = places.key and version > places.value order by stream, version",
            json.dumps(dict(places)),
        )
        return self._made(rows)


def _text(state: bytes) -> str:
    """A kept state; its checksum shows where it is damaged."""
    return state.decode(errors="replace")
