"""The journal over a database: what is asked of it, who follows it, and the way to its writer.

The newest events are kept in memory, so that those who follow the journal need not read them from disk.
What differs between databases is in `Database`, and in the few pieces of SQL of its `Dialect`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from engine import __version__
from engine.core.journal import Event, JournalClosed, JournalCorrupt, JournalError, JournalReadError
from engine.core.store.database import Database, Tail
from engine.core.store.port import START, Head, Row, StoredSnapshot, parse_ref
from engine.core.store.schema import COLUMNS, to_event
from engine.core.store.writer import GroupWriter, Ledger

_LARGEST = 2**63 - 1
UNSAID_VERSION = "0.1"
"""Wrote the journals that do not say which version wrote them."""

_NOTE_WRITERS = """
insert into meta values('written_by', ?) on conflict(key) do update set value = excluded.value
"""
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


PAGE = 256
"""Events read or handed on at a time; making that many takes about a millisecond."""

TAIL = 2_048
"""Newest events kept in memory for those who follow."""

KEEP_SNAPSHOTS = 8
"""Snapshots kept a stream."""
SNAPSHOT_DISTANCE = 500
"""Of the snapshots of so many newest events only the newest and the oldest are kept, so that many short
sessions leave one from which the state before the newest events is soon had."""


class StoredJournal:
    """The one durable record of a workspace; always `close` it.

    Reading works whether or not it is open for writing. Each answer is of one moment and has committed events
    only, which never change.
    """

    def __init__(self, database: Database) -> None:
        self.torn = 0
        self.notes: tuple[str, ...] = ()
        self.writers: tuple[str, ...] = ()
        self._database = database
        self._writer: GroupWriter | None = None
        self._tail = Tail(0, TAIL)
        self._news = asyncio.Event()
        self._closed = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def path(self) -> Path:
        """The database file.

        Raises:
            JournalError: it is in no file.
        """
        if self._database.path is None:
            raise not_in_a_file(self._database.place)
        return self._database.path

    async def fetch(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """All rows of a query; see `Database`."""
        return await self._database.fetch(sql, parameters)

    async def _select(self, condition: str, *parameters: Any) -> list[Event]:
        """The events that a condition (with its order and limit) selects."""
        return self._made(await self.fetch(f"select {COLUMNS} from events {condition}", *parameters))

    def _made(self, rows: Iterable[tuple[Any, ...]]) -> list[Event]:
        try:
            return [to_event(cast("Row", row)) for row in rows]
        except ValueError as error:
            raise JournalCorrupt(self._database.place, str(error)) from error

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
        self, stream: str, from_version: int = 1, to_version: int | None = None, limit: int = _LARGEST
    ) -> list[Event]:
        """Events of a stream, from one version to another, both included."""
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
        # For many kinds a scan by place is quicker than the index of kinds.
        column = self._database.dialect.kind if len(kinds) > 1 else "kind"
        return await self._select(
            f"where seq > ? and {column} in ({marks}) order by seq limit ?", after, *kinds, limit
        )

    async def places(self, stream: str, kinds: Sequence[str], first: int, last: int) -> list[tuple[int, str]]:
        """Version and kind of a stream's events of these kinds, in order, from one version to another."""
        marks = ", ".join("?" * len(kinds))
        sql = (
            "select version, kind from events where stream = ? and version between ? and ? "
            f"and {self._database.dialect.kind} in ({marks}) order by version"
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
        if self._writer is not None:
            return dict(sorted(self._writer.heads.items()))
        return {name: Head(version, digest) for name, version, digest in await self.fetch(_STREAMS)}

    async def head(self, stream: str) -> Head:
        """Version and hash of a stream's last event; version 0 when it has none."""
        if self._writer is not None:
            return self._writer.heads.get(stream, START)
        rows = await self.fetch(
            "select version, hash from events where stream = ? order by version desc limit 1", stream
        )
        return Head(*rows[0]) if rows else START

    async def head_seq(self) -> int:
        """The place of the last durable event, 0 when there is none."""
        if self._writer is not None:
            return self._writer.last_seq
        ((seq,),) = await self.fetch("select coalesce(max(seq), 0) from events")
        return int(seq)

    async def last_given_seq(self) -> int:
        """The last place ever given out; 0 when it is not remembered."""
        return await self._database.last_given_seq()

    async def count(self) -> int:
        """How many events there are."""
        ((count,),) = await self.fetch("select count(*) from events")
        return int(count)

    async def read_writers(self) -> tuple[str, ...]:
        """The versions that wrote to a journal that has events, as far as they said so."""
        rows = await self.fetch("select value from meta where key = 'written_by'")
        return tuple(str(rows[0][0]).split()) if rows else (UNSAID_VERSION,)

    async def damage(self) -> str:
        """What is wrong with the database beside its events; empty when it is sound."""
        return await self._database.damage()

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
        """Version and state of the newest snapshot up to a version; see `JournalStore`."""
        rows = await self._fetch_kept(
            f"""select version, {self._database.dialect.state} from snapshots s
            where stream = ? and version <= ? and format = ?
            and exists(select 1 from events e where e.stream = ? and e.version = s.version)
            order by version desc limit 1""",
            stream,
            _LARGEST if at_or_before is None else at_or_before,
            format,
            stream.partition("@")[0],
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
            f"""select e.stream, s.version, e.hash, {self._database.dialect.state}
            from {self._database.dialect.names}
            cross join snapshots s join events e on e.stream = names.value and e.version = s.version
            where s.stream = names.value || ? and s.format = ? and s.version = (
                select max(version) from snapshots where stream = names.value || ? and format = ?
            )""",
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
            f"select {COLUMNS} from {self._database.dialect.places} cross join events "
            "where stream = places.key and version > cast(places.value as bigint) order by stream, version",
            json.dumps(dict(places)),
        )
        return self._made(rows)

    async def begin_writing(self, ledger: Ledger) -> None:
        """Let this be the one that writes here, behind what is in the database, through its ledger."""
        heads, last_seq = await self.streams(), await self.head_seq()
        self.writers = await self.read_writers() if last_seq else ()
        if self.writers[-1:] != (__version__,):
            self.writers += (__version__,)
            await ledger.execute(((_NOTE_WRITERS, (" ".join(self.writers),)),))
        self._tail = Tail(last_seq, TAIL)
        self._writer = GroupWriter(ledger, heads, last_seq, self._publish)

    @property
    def read_only(self) -> bool:
        """True when this store cannot write."""
        return self._writer is None

    async def close(self) -> None:
        """Commit what waits, end every thread, and give up the lock; see `JournalStore`."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="journal close")
        try:
            await asyncio.shield(self._closing)
        except asyncio.CancelledError:
            await asyncio.wait([self._closing])
            raise

    async def _close(self) -> None:
        try:
            if self._writer is not None:
                await self._writer.stop()
        finally:
            self._closed = True
            self._news.set()
            await self._database.resources.aclose()

    # -------------------------------------------------------------- writing

    async def commit(self, events: Sequence[Event]) -> list[Event]:
        """Make events durable, all or none; see `JournalStore`."""
        writer = self._writing()
        return await writer.append(tuple(events)) if events else []

    async def save_snapshot(self, stream: str, version: int, format: int, state: str) -> None:  # noqa: A002
        """Keep the state of a stream after an event; see `JournalStore`."""
        await self._writing().write(
            (
                (
                    """insert into snapshots values(?, ?, ?, ?) on conflict(stream, version)
                    do update set format = excluded.format, state = excluded.state""",
                    (stream, version, format, state),
                ),
                (
                    """with near as (select version from snapshots where stream = ? and version > (
                        select max(version) from snapshots where stream = ?) - ?)
                    delete from snapshots where stream = ? and version > (select min(version) from near)
                        and version < (select max(version) from near)""",
                    (stream, stream, SNAPSHOT_DISTANCE, stream),
                ),
                (
                    """delete from snapshots where stream = ? and version not in (
                        select version from snapshots where stream = ? order by version desc limit ?)""",
                    (stream, stream, KEEP_SNAPSHOTS),
                ),
            )
        )

    async def replace_bodies(self, bodies: Mapping[int, str]) -> None:
        """Put others in the place of bodies that an event seals; see `JournalStore`."""
        if bodies:
            places = self._database.dialect.places
            sql = (
                f"update events set body = places.value from {places} where seq = cast(places.key as bigint)"
            )
            await self._writing().write(((sql, (json.dumps(bodies),)),))

    async def shrink(self) -> None:
        """Give the room within the database back to the disk; takes as long as all is large.

        Raises:
            JournalError: as `commit`; the journal is as it was.
        """
        await self._writing().write((("vacuum", ()),))

    def _writing(self) -> GroupWriter:
        if self._writer is None:
            raise JournalClosed("The journal is open for reading only.")
        return self._writer

    def _publish(self, events: list[Event]) -> None:
        """Hand on what has become durable."""
        self._tail.extend(events)
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def tell(self) -> None:
        """Say that another process may have written."""
        if self._writer is None:
            self._wake()
        elif not self._closed:
            self._writer.look()

    # -------------------------------------------------------------- reading

    async def events(
        self, since: int = 0, *, stream: str | None = None, follow: bool = False
    ) -> AsyncIterator[Event]:
        """Events behind a place, in order, each once; see `JournalStore`."""
        async for page in self.pages(since, stream=stream, follow=follow):
            for event in page:
                yield event

    async def pages(
        self, since: int = 0, *, stream: str | None = None, follow: bool = False
    ) -> AsyncIterator[list[Event]]:
        """The same, as many at a time as are at hand; see `JournalStore`."""
        place = since
        until = None if follow else await self.head_seq()
        while until is None or place < until:
            news = self._news
            page, reached = await self._page(place, stream)
            if until is not None and reached > until:
                page = [event for event in page if event.seq <= until]
            if page:
                yield page
            if reached > place:
                place = reached
                # A page from memory costs no wait, so others would not get their turn.
                await asyncio.sleep(0)
            elif self._closed or not await self._more(news):
                return

    async def _page(self, place: int, stream: str | None) -> tuple[list[Event], int]:
        """The next events behind a place, and the place up to which there is nothing else."""
        durable = await self.head_seq()
        if place >= durable:
            return [], place
        recent = None if self._writer is None else self._tail.after(place, PAGE)
        if recent:
            return [event for event in recent if stream is None or event.stream == stream], recent[-1].seq
        page = await self.page(place, PAGE, stream)
        if len(page) == PAGE:
            return page, page[-1].seq
        return page, max(durable, page[-1].seq if page else 0)

    async def _more(self, news: asyncio.Event) -> bool:
        """Wait until there may be more; False when the store was closed meanwhile."""
        if self._writer is not None:
            await news.wait()
            return True
        await self._database.news(news)
        return not self._closed

    @property
    def names(self) -> tuple[str, ...]:
        """The streams of a journal that is open for writing, sorted; see `JournalStore`."""
        return tuple(sorted(self._writing().heads))

    @property
    def last_seq(self) -> int:
        """The place of the last durable event; see `JournalStore`."""
        return self._writing().last_seq


def not_in_a_file(place: str, workspace: Path | None = None) -> JournalError:
    """What works on files is not to be had for a journal that is in none."""
    return JournalError(
        f"This works on a journal in a file, and this one is at {place}: copy it to a file first, with: "
        f"pilothouse journal copy URL {workspace or 'WORKSPACE'}"
    )


def _text(state: bytes | str) -> str:
    """A kept state; its checksum shows where it is damaged."""
    return state if isinstance(state, str) else state.decode(errors="replace")
