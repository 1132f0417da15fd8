"""Embedding what was stored, behind the writes: search works before a vector is there, and better after.

Vectors are no events. They follow from texts that are in the journal, and lie in the database as a cache.
Source: spec data-stack §2 (embed after commit); spec master-loop-and-memory §1.9 U19.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from engine.journal.errors import JournalError
from engine.memory.embedding import Embedder, EmbedderUnavailable, Vector
from engine.memory.errors import MemoryFault
from engine.memory.finding import Finder
from engine.memory.reading import Reading
from engine.memory.scoring import embedded_text
from engine.memory.vectors import Entry, pack, signature
from engine.memory.writing import Unit, Writer

BATCH = 64
"""Texts that are embedded at a time."""
GATHER_S = 0.02
"""How long news gather before they are embedded, so that one write after another is not held up."""

_Read = Callable[[Callable[[Reading], Any]], Awaitable[Any]]


class EmbeddingQueue:
    """Sees to it that every live text has a vector."""

    def __init__(self, embedder: Embedder, writer: Writer, read: _Read, finder: Finder) -> None:
        self._embedder = embedder
        self._writer = writer
        self._read = read
        self._finder = finder
        self._place = 0
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.trouble = ""
        """Why the last attempt failed, until one succeeds."""

    @property
    def waiting(self) -> bool:
        """Whether texts may wait to be embedded."""
        return not self._idle.is_set()

    async def start(self) -> None:
        """Take up the vectors that are there, and begin."""
        if not self._embedder.id:
            self._idle.set()
            return
        await self._read(self._finder.load)
        self._news.set()
        self._task = asyncio.create_task(self._run(), name="memory embedding")

    async def stop(self) -> None:
        """End; what has no vector yet gets one after the next opening."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        self._idle.set()

    def wake(self) -> None:
        """Something was written."""
        if self._task is not None:
            self._idle.clear()
            self._news.set()

    async def idle(self) -> None:
        """Wait until nothing waits."""
        await self._idle.wait()

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            await asyncio.sleep(GATHER_S)
            self._news.clear()
            try:
                while await self._some():
                    pass
                self.trouble = ""
            except (EmbedderUnavailable, MemoryFault, JournalError) as error:
                # Tried again with the next write; until then search goes by what there is.
                self.trouble = f"texts are not embedded just now: {error}"
            if not self._news.is_set():
                self._idle.set()

    async def _some(self) -> bool:
        """Embed the next few texts; False when there are none."""
        rows = await self._read(self._next)
        if not rows:
            return False
        texts = {row[1]: embedded_text(row[2], row[3]) for row in rows if row[1] not in self._finder.index}
        if texts:
            vectors = await self._embedder.embed(list(texts.values()), kind="passage")
            entries = await asyncio.to_thread(self._entries, list(texts), vectors)

            def keep(unit: Unit) -> None:
                unit.keep_vectors(entries)

            await self._writer.write(keep, actor="background:embedding")
            await self._read(lambda _: self._finder.take(entries))
        self._place = rows[-1][0]
        return True

    def _entries(self, digests: Sequence[str], vectors: Sequence[Vector]) -> list[Entry]:
        """Vectors as the database keeps them."""
        name, size = self._embedder.id, self._embedder.dimension // 8
        return [
            (name, digest, signature(one).to_bytes(size, "big"), pack(one))
            for digest, one in zip(digests, vectors, strict=True)
        ]

    def _next(self, reading: Reading) -> list[tuple[int, str, str, str]]:
        rows = reading.rows(
            """select row, digest, description, content from memories
            where row > ? and died is null order by row limit ?""",
            self._place,
            BATCH,
        )
        return [tuple(row) for row in rows]
