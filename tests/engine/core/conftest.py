"""Real chains of events and real journals on disk."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.core.journal import GENESIS, Event, canonical, chain_hash
from engine.core.ports import SystemClock
from engine.core.store.opening import open_journal
from engine.core.store.sqlite import SqliteJournal
from engine.core.store.stored import StoredJournal


class Chain:
    """Builds the events of one stream, each following the one before."""

    def __init__(self, stream: str = "a") -> None:
        self.stream, self.version, self.hash = stream, 0, GENESIS

    def next(self, *, kind: str = "noted", causes: tuple[str, ...] = (), body: str | None = None) -> Event:
        at, tick, actor = "2026-01-01T00:00:00.000000Z", self.version // 3, "agent"
        self.version += 1
        body = canonical({"n": self.version}) if body is None else body
        place = (self.stream, self.version, at, tick, actor, causes, kind, body)
        self.hash = chain_hash(self.hash, *place)
        return Event(*place, self.hash)

    def take(self, count: int, **more: str) -> list[Event]:
        return [self.next(**more) for _ in range(count)]


@pytest.fixture
def new_chain() -> type[Chain]:
    return Chain


@pytest.fixture
async def open_store() -> AsyncIterator[Callable[..., Awaitable[StoredJournal]]]:
    """Opens journals, and closes them however the test ends: an open one would keep pytest alive."""
    opened: list[StoredJournal] = []

    async def open_(directory: Path, **how: object) -> StoredJournal:
        opening = SqliteJournal.open if "synchronous" in how else open_journal
        opened.append(await opening(directory, **{"clock": SystemClock(), **how}))
        return opened[-1]

    yield open_
    for store in opened:
        await store.close()


@pytest.fixture
async def store(tmp_path: Path, open_store) -> StoredJournal:
    return await open_store(tmp_path)


@pytest.fixture
def full_disk():
    """Lets a store's database grow no further, so that SQLite itself answers SQLITE_FULL."""

    @asynccontextmanager
    async def no_more_pages(store: SqliteJournal) -> AsyncIterator[None]:
        # the limit belongs to the connection, so it must be set on the one that writes
        connection = store._writer.ledger.connection
        ((pages,),) = await connection.execute_fetchall("pragma page_count")
        await connection.execute_fetchall(f"pragma max_page_count = {pages}")
        yield
        await connection.execute_fetchall("pragma max_page_count = 1073741823")

    return no_more_pages
