"""The memory of a workspace, as everybody else sees it.

One writer and one reader, each with a connection and a thread of its own, so that nothing waits on the event
loop and a search never waits for a write.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from engine.domain.memory import Content
from engine.domain.ports import Clock
from engine.journal.blobs import BlobStore
from engine.journal.store import DATA_DIRECTORY, JournalStore
from engine.memory import actions, memories, mind, searching, upkeep, workflows
from engine.memory.embedding import Embedder, EmbedderUnavailable, HashEmbedder, Vector
from engine.memory.embedding_queue import EmbeddingQueue
from engine.memory.errors import MemoryInputError, MemoryUnavailable
from engine.memory.finding import Finder
from engine.memory.fold import seconds
from engine.memory.projection import STREAM, Projection, connect
from engine.memory.reading import Reading
from engine.memory.requests import Request, View, build, every_request, handler_of
from engine.memory.writing import Writer

R = TypeVar("R")

SPILL_BYTES = 16_384
"""Bytes from which a result or an artifact becomes a blob."""
HEAD_CHARACTERS = 2_000
"""Characters of a blob that stay in its event."""

_ASKED_IN = (actions, memories, mind, searching, upkeep, workflows)
"""The modules whose requests are answered; importing them is what makes them known."""


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """How memory is doing."""

    embedder: str
    """Whose vectors are compared; empty for none."""
    vectors: int
    """Texts that have one."""
    waiting: bool
    """Whether texts wait to be embedded."""
    note: str
    """Why likeness says less than it could; empty when all is well."""

    @property
    def degraded(self) -> bool:
        """True when a search goes by words and spelling alone."""
        return bool(self.note)


class Memory:
    """What a workspace's agents remember; open it with `open`, and always `close` it."""

    def __init__(
        self,
        store: JournalStore,
        blobs: BlobStore,
        embedder: Embedder,
        clock: Clock,
        threads: tuple[ThreadPoolExecutor, ThreadPoolExecutor],
        projection: Projection,
        reader: sqlite3.Connection,
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._embedder = embedder
        self._clock = clock
        self._threads = threads
        self._projection = projection
        self._connection = reader
        self._finder = Finder(embedder.id)
        self._writer = Writer(store, projection, threads[0], clock)
        self._queue = EmbeddingQueue(embedder, self._writer, self._read, self._finder)
        self._closed = False

    @classmethod
    async def open(
        cls, directory: Path, store: JournalStore, *, clock: Clock, embedder: Embedder | None = None
    ) -> Self:
        """Open the memory of a workspace whose journal is open for writing.

        Args:
            directory: the workspace; the tables are `.pilothouse/memory.db` in it.
            store: its journal.
            clock: what time it is.
            embedder: makes vectors; by hashing unless something better is given.

        Raises:
            MemoryUnavailable: the journal is open for reading only, or the database cannot be made.
            JournalError: the journal could not be read, or holds what this version does not know.
        """
        if store.read_only:
            raise MemoryUnavailable("Memory needs a journal that is open for writing: open the workspace so.")
        loop = asyncio.get_running_loop()
        path = directory / DATA_DIRECTORY / "memory.db"
        threads = (ThreadPoolExecutor(1, "memory-write"), ThreadPoolExecutor(1, "memory-read"))

        def known(version: int) -> str:
            return asyncio.run_coroutine_threadsafe(_hash_of(store, version), loop).result()

        memory: Self | None = None
        try:
            projection = await loop.run_in_executor(threads[0], Projection.open, path, known)
            reader = await loop.run_in_executor(threads[1], partial(connect, path, writing=False))
            memory = cls(
                store, BlobStore(directory), embedder or HashEmbedder(), clock, threads, projection, reader
            )
            await memory._writer.catch_up()
            await memory._queue.start()
        except BaseException:
            if memory is not None:
                await memory.close()
            for thread in threads:
                thread.shutdown(wait=False)
            raise
        return memory

    async def close(self) -> None:
        """Finish what waits, and give up threads and connections; may be called again."""
        if self._closed:
            return
        self._closed = True
        loop = asyncio.get_running_loop()
        try:
            await self._queue.stop()
            await self._writer.close()
        finally:
            writer, reader = self._threads
            for thread, closing in (
                (reader, self._finder.close),
                (reader, self._connection.close),
                (writer, self._projection.close),
            ):
                await loop.run_in_executor(thread, closing)
            writer.shutdown(wait=False)
            reader.shutdown(wait=False)

    # -------------------------------------------------------------- requests

    async def do(
        self,
        request: Request[R],
        *,
        actor: str = "agent",
        causes: tuple[str, ...] = (),
        tick: int = 0,
        as_of: int | None = None,
    ) -> R:
        """Answer a request.

        Args:
            request: what is asked.
            actor: who asks, for the journal.
            causes: references of the events that a write follows from.
            tick: the agent's tick.
            as_of: the place in the journal (`seq`) of the last event that counts, for reading only.

        Raises:
            MemoryInputError: something in the request does not fit; nothing was written.
            MemoryRefused: it is not allowed as things stand; nothing was written.
            MemoryUnavailable: the database could not be read or written just now.
            JournalError: the journal refused; nothing was written.
        """
        handler = handler_of(request)
        if not request.writes:
            vector = await self._vector_for(request)
            view = partial(self._answer, handler, request, vector)
            return await self._read(view, *(await self._moment(as_of)))
        if as_of is not None:
            raise MemoryInputError("as_of", "as_of: the past can be read and not written.")
        contents = await self._spill(request)
        answer: R = await self._writer.write(
            lambda unit: handler(unit, request), actor=actor, causes=causes, tick=tick, contents=contents
        )
        self._queue.wake()
        return answer

    async def call(self, verb: str, arguments: Mapping[str, Any], **how: Any) -> Any:
        """Answer a request by name and arguments, as a model or a person gives them.

        Raises:
            MemoryInputError: there is no such request, or its arguments do not fit.
            MemoryFault, JournalError: as `do`.
        """
        kind = every_request().get(verb)
        if kind is None:
            raise MemoryInputError(
                "", f"Memory has no request {verb!r}: it has {', '.join(every_request())}."
            )
        return await self.do(build(kind, arguments), **how)

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
        note = self._queue.trouble or self._embedder.note
        return MemoryStatus(self._embedder.id, len(self._finder.index), self._queue.waiting, note)

    async def embedded(self) -> None:
        """Wait until every text has its vector, or the embedder cannot answer."""
        await self._queue.idle()

    # -------------------------------------------------------------- inside

    async def _spill(self, request: Request[Any]) -> dict[str, Content]:
        """The request's big texts as blobs, so that they are durable before any event names them."""
        contents = {}
        for name in request.big:
            text: str = getattr(request, name)
            if len(text) * 4 > SPILL_BYTES and len(whole := text.encode()) > SPILL_BYTES:
                digest = await self._blobs.put(whole)
                contents[name] = Content(text[:HEAD_CHARACTERS], digest, len(whole))
        return contents

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
        return await loop.run_in_executor(self._threads[1], self._at_once, work, now, seq)

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


async def _hash_of(store: JournalStore, version: int) -> str:
    """The hash of an event of memory's stream; empty where there is none."""
    event = await store.get(f"{STREAM}:{version}") if version else None
    return event.hash if event is not None else ""
