"""Memory once it is open: one writer and one reader, each with a connection and a thread of its own.

So nothing waits on the event loop, and a search never waits for a write.
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
from engine.memory.embedding import Embedder, HashEmbedder
from engine.memory.embedding_queue import EmbeddingQueue
from engine.memory.errors import MemoryInputError, MemoryRefused, MemoryUnavailable
from engine.memory.looking import DATABASE, ReadMemory, hash_of
from engine.memory.memory import MemoryStatus
from engine.memory.projection import Projection, connect
from engine.memory.requests import Request, handler_of, named
from engine.memory.writing import Unit, Writer, Written

R = TypeVar("R")

SPILL_BYTES = 16_384
"""Bytes from which a result or an artifact becomes a blob."""
HEAD_CHARACTERS = 2_000
"""Characters of a blob that stay in its event."""


class OpenedMemory(ReadMemory):
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
        super().__init__(store, blobs, embedder, clock, threads[1], reader)
        self._writing_thread = threads[0]
        self._projection = projection
        self._writer = Writer(store, projection, threads[0], clock)
        self._queue = EmbeddingQueue(embedder, self._writer, self._read, self._finder)

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
        path = directory / DATA_DIRECTORY / DATABASE
        blobs = BlobStore(directory / DATA_DIRECTORY / "blobs")
        threads = (ThreadPoolExecutor(1, "memory-write"), ThreadPoolExecutor(1, "memory-read"))

        def known(version: int) -> str:
            return asyncio.run_coroutine_threadsafe(hash_of(store, version), loop).result()

        memory: Self | None = None
        try:
            projection = await _finished(loop.run_in_executor(threads[0], Projection.open, path, known))
            reader = await loop.run_in_executor(threads[1], partial(connect, path, writing=False))
            memory = cls(store, blobs, embedder or HashEmbedder(), clock, threads, projection, reader)
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
        try:
            await self._queue.stop()
            await self._writer.close()
        finally:
            await self._close_reading()
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._writing_thread, self._projection.close)
            self._writing_thread.shutdown(wait=False)

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
        if not request.writes:
            return await self.ask(request, as_of=as_of)
        if as_of is not None:
            raise MemoryInputError("as_of", "as_of: the past can be read and not written.")
        return (await self.write(request, actor=actor, causes=causes, tick=tick)).answer

    async def write(
        self, request: Request[R], *, actor: str, causes: tuple[str, ...] = (), tick: int = 0
    ) -> Written[R]:
        """See `Memory.write`."""
        if not request.writes:
            raise MemoryInputError("", f"{request.verb} only reads: ask for it, there is nothing to write.")
        handler = handler_of(request)
        contents = {name: await self.spill(getattr(request, name)) for name in request.big}
        return await self.work(
            lambda unit: handler(unit, request), actor=actor, causes=causes, tick=tick, contents=contents
        )

    async def work(
        self,
        work: Callable[[Unit], R],
        *,
        actor: str,
        causes: tuple[str, ...] = (),
        tick: int = 0,
        at: str = "",
        contents: Mapping[str, Content] | None = None,
    ) -> Written[R]:
        """See `Memory.work`."""
        written = await self._writer.write(
            work, actor=actor, causes=causes, tick=tick, at=at, contents=contents
        )
        self._queue.wake()
        return written

    async def call(self, verb: str, arguments: Mapping[str, Any], **how: Any) -> Any:
        """Answer a request by name and arguments, as a model or a person gives them.

        Raises:
            MemoryInputError: there is no such request, or its arguments do not fit.
            MemoryFault, JournalError: as `do`.
        """
        return await self.do(named(verb, arguments), **how)

    async def recall(self, request: Request[R], *, as_of: int | None = None) -> R:
        """See `Memory.recall`."""
        if request.writes:
            raise MemoryRefused(f"{request.verb} writes: submit the command Remember for that.")
        return await self.ask(request, as_of=as_of)

    async def spill(self, text: str) -> Content:
        """A text as memory keeps it; blobs are durable before any event names them."""
        whole = text.encode()
        if len(whole) <= SPILL_BYTES:
            return Content(text, "", len(whole))
        return Content(text[:HEAD_CHARACTERS], await self._blobs.put(whole), len(whole))

    @property
    def status(self) -> MemoryStatus:
        """How memory is doing."""
        note = self._queue.trouble or self._embedder.note
        return MemoryStatus(self._embedder.id, len(self._finder.index), self._queue.waiting, note)

    async def embedded(self) -> None:
        """Wait until every text has its vector, or the embedder cannot answer."""
        await self._queue.idle()


async def _finished(work: asyncio.Future[Projection]) -> Projection:
    """What a thread answers; where nobody waits for it any more it is let finish, and closed."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        if work.exception() is None:
            work.result().close()
        raise
