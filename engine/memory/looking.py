"""Memory as it is read: by words, by likeness, as it is or as it was, without changing anything.

This is all of memory that a workspace has whose journal another process writes. Where its tables are missing
or of another format, they are made for the moment, in a place of their own, from the journal.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from engine.domain.memory import Content
from engine.domain.ports import Clock
from engine.journal.blobs import BlobStore
from engine.journal.store import DATA_DIRECTORY, JournalStore
from engine.memory import actions, history, keeping, memories, mind, searching, upkeep, workflows
from engine.memory.embedding import Embedder, EmbedderUnavailable, HashEmbedder, Vector
from engine.memory.errors import MemoryInputError, MemoryRefused, MemoryUnavailable
from engine.memory.finding import Finder
from engine.memory.fold import seconds
from engine.memory.memory import MemoryStatus
from engine.memory.projection import STREAM, Projection, readable
from engine.memory.reading import Reading
from engine.memory.requests import Request, View, handler_of, named

R = TypeVar("R")

DATABASE = "memory.db"
"""The tables, in the data directory."""
PAGE = 1_000
"""Events folded at a time where there are no tables."""

_ASKED_IN = (actions, history, keeping, memories, mind, searching, upkeep, workflows)
"""The modules whose requests are answered; importing them is what makes them known."""


class ReadMemory:
    """What a workspace's agents remember, to be read; open it with `look`, and always `close` it."""

    def __init__(
        self,
        store: JournalStore,
        blobs: BlobStore,
        embedder: Embedder,
        clock: Clock,
        thread: ThreadPoolExecutor,
        connection: sqlite3.Connection,
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._embedder = embedder
        self._clock = clock
        self._reading_thread = thread
        self._connection = connection
        self._finder = Finder(embedder.id)
        self._closed = False
        self.note = ""
        """What the answers may lack, in a sentence; empty when they are of the newest event."""

    @classmethod
    async def look(cls, directory: Path, store: JournalStore, *, clock: Clock) -> Self:
        """Look into the memory of a workspace, also while another process writes to it.

        Args:
            directory: the workspace.
            store: its journal, open for reading.
            clock: what time it is.

        Raises:
            MemoryUnavailable: there is no room to make the tables that are missing.
            JournalError: the journal could not be read, or holds what this version does not know.
        """
        path = directory / DATA_DIRECTORY / DATABASE
        thread = ThreadPoolExecutor(1, "memory-read")
        loop = asyncio.get_running_loop()
        memory: Self | None = None
        try:
            last = (await store.head(STREAM)).version
            found = await loop.run_in_executor(thread, readable, path)
            note = ""
            if found is not None and found[1][1] == await hash_of(store, found[1][0]):
                connection = found[0]
                if found[1][0] < last:
                    note = f"the newest {last - found[1][0]} writes are not in {DATABASE} yet"
            else:
                connection = await _made_for_now(store, last, thread)
                note = (
                    f"there is no {DATABASE} to be read, so this was folded from the journal" if last else ""
                )
            blobs = BlobStore(directory / DATA_DIRECTORY / "blobs")
            memory = cls(store, blobs, HashEmbedder(), clock, thread, connection)
            memory.note = note
            await memory._read(memory._finder.load)
        except BaseException:
            if memory is not None:
                await memory.close()
            thread.shutdown(wait=False)
            raise
        return memory

    async def close(self) -> None:
        """Give up thread and connection; may be called again."""
        if self._closed:
            return
        self._closed = True
        await self._close_reading()

    async def _close_reading(self) -> None:
        loop = asyncio.get_running_loop()
        for closing in (self._finder.close, self._connection.close):
            await loop.run_in_executor(self._reading_thread, closing)
        self._reading_thread.shutdown(wait=False)

    # -------------------------------------------------------------- requests

    async def ask(self, request: Request[R], *, as_of: int | None = None) -> R:
        """Answer a request that only reads; see `Memory.do`."""
        if request.writes:
            raise MemoryRefused(f"{request.verb} writes, and memory is read here.")
        vector = await self._vector_for(request)
        view = partial(self._answer, handler_of(request), request, vector)
        return await self._read(view, *(await self._moment(as_of)))

    async def ask_by_name(self, verb: str, arguments: Mapping[str, Any], *, as_of: int | None = None) -> Any:
        """Answer a request by its name, ours or the seed's, and its arguments; see `Memory.call`."""
        return await self.ask(named(verb, arguments), as_of=as_of)

    async def whole(self, content: Content) -> str:
        """The whole text of a result or an artifact, byte for byte.

        Raises:
            BlobError: its blob is missing or damaged.
        """
        if not content.blob:
            return content.text
        return (await self._blobs.get(content.blob)).decode()

    @property
    def status(self) -> MemoryStatus:
        """How memory is doing."""
        return MemoryStatus(self._embedder.id, len(self._finder.index), note=self._embedder.note)

    # -------------------------------------------------------------- inside

    async def _vector_for(self, request: Request[Any]) -> Vector | None:
        """The vector of the text that is looked for; None where there is none to be had."""
        if not request.searches:
            return None
        try:
            (vector,) = await self._embedder.embed([getattr(request, request.searches)], kind="query")
        except EmbedderUnavailable:
            return None
        return vector if any(vector) else None

    async def _moment(self, as_of: int | None) -> tuple[float, int | None]:
        """The time, and the place in the journal, at which memory is read."""
        if as_of is None:
            return seconds(self._clock.now()), None
        event = await self._store.get(as_of)
        if event is None:
            head = await self._store.head_seq()
            raise MemoryInputError("as_of", f"as_of: there is no event {as_of}; the newest is {head}.")
        return seconds(event.at), as_of

    def _answer(
        self,
        handler: Callable[[Any, Any], Any],
        request: Request[Any],
        vector: Vector | None,
        reading: Reading,
    ) -> Any:
        return handler(View(reading, self._finder, vector), request)

    async def _read(self, work: Callable[[Reading], R], now: float = 0.0, seq: int | None = None) -> R:
        """Run something in the reading thread, on one state of the database."""
        if self._closed:
            raise MemoryUnavailable("Memory is closed: open the workspace again.")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reading_thread, self._at_once, work, now, seq)

    def _at_once(self, work: Callable[[Reading], R], now: float, seq: int | None) -> R:
        connection = self._connection
        try:
            connection.execute("begin")
            try:
                as_of = None if seq is None else _version_at(connection, seq)
                return work(Reading(connection, now, as_of))
            finally:
                connection.execute("rollback")
        except sqlite3.Error as error:
            raise MemoryUnavailable(
                f"Memory cannot be read just now ({error}): open the workspace again, and what is damaged is "
                "built again from the journal."
            ) from error


def _version_at(connection: sqlite3.Connection, seq: int) -> int:
    """The last event of memory's stream up to a place in the journal."""
    (number,) = connection.execute(
        "select coalesce(max(number), 0) from operations where seq <= ?", (seq,)
    ).fetchone()
    return int(number)


async def hash_of(store: JournalStore, version: int) -> str:
    """The hash of an event of memory's stream; that of the beginning for 0, no hash where there is none."""
    if not version:
        return ""
    event = await store.get(f"{STREAM}:{version}")
    return event.hash if event is not None else "none"


async def _made_for_now(store: JournalStore, last: int, thread: ThreadPoolExecutor) -> sqlite3.Connection:
    """Tables folded from the journal, which go with the connection."""
    loop = asyncio.get_running_loop()
    projection = await loop.run_in_executor(thread, Projection.passing)
    for first in range(1, last + 1, PAGE):
        page = await store.read(STREAM, first, min(last, first + PAGE - 1))
        await loop.run_in_executor(thread, projection.apply, page)
    return projection.connection
