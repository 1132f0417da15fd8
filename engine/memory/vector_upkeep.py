"""Embeds the texts of memories in the background, and again where another embedder was chosen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from engine.memory.connection import TablesError
from engine.memory.embedding import OTHER_SIZE, Embedder, EmbedderError, Vector
from engine.memory.vectors import VectorWriter

R = TypeVar("R")
RETRY_S, RETRY_MOST_S = 5.0, 300.0
"""Before what failed is tried again: at first, and at most."""
PROBE = "hello"
"""A text that every model can embed."""


class VectorUpkeep:
    """Gives each text that memory has a vector; `close` it.

    Args:
        make: opens what keeps them.
        embedder: who makes them.
    """

    def __init__(self, make: Callable[[str], VectorWriter], embedder: Embedder) -> None:
        self._embedder = embedder
        self._thread = ThreadPoolExecutor(1, "memory-vectors")
        self._make = partial(make, embedder.id)
        self._writer: VectorWriter | None = None
        """Set, used and closed in the thread."""
        self._woken = asyncio.Event()
        self.waiting = 0
        """About how many texts wait."""
        self.embedded = 0
        """How many have a vector."""
        self.fault = ""
        """Why texts could not be embedded the last time; empty when they were."""
        self._settled = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name="memory vectors")

    def wake(self) -> None:
        """Look again, as there may be new texts."""
        self._settled.clear()
        self._woken.set()

    async def settled(self) -> None:
        """Return once all texts are embedded, or could not be."""
        await self._settled.wait()

    async def close(self) -> None:
        """End; what was not embedded is when the workspace is opened again."""
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._do(lambda: self._writer.close() if self._writer is not None else None)
        self._thread.shutdown(wait=False)

    def _opened(self) -> VectorWriter:
        if self._writer is None:
            self._writer = self._make()
        return self._writer

    async def _do(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _run(self) -> None:
        pause = RETRY_S
        while True:
            self._woken.clear()
            try:
                embedded = await self._page(await self._do(self._opened))
            except (EmbedderError, TablesError, OSError, ImportError) as error:
                self.fault = str(error)
                self._settled.set()
                await asyncio.sleep(pause)
                pause = min(2 * pause, RETRY_MOST_S)
            else:
                self.fault, pause = "", RETRY_S
                if not embedded and not self._woken.is_set():
                    self._settled.set()
                    await self._woken.wait()

    async def _page(self, writer: VectorWriter) -> bool:
        """Embed some texts; whether there were any."""
        lacking = await self._do(writer.lacking)
        self.waiting, self.embedded = await self._do(lambda: writer.rows - writer.row), writer.count
        if not lacking:
            await self._do(writer.drop_others)
            return False
        digests, texts = list(lacking), list(lacking.values())
        try:
            vectors: list[Vector | None] = [*await self._embedder.embed(texts, "passage")]
        except EmbedderError as error:
            if not error.of_text:
                raise
            vectors = [await self._single(text) for text in texts]
        dim = await self._do(lambda: writer.dim) or next((len(each) for each in vectors if each), 0)
        if any(vector is not None and len(vector) != dim for vector in vectors):
            raise EmbedderError(f"{self._embedder.id} {OTHER_SIZE}: {self._embedder.dim} numbers")
        await self._do(partial(writer.keep, dim, dict(zip(digests, vectors, strict=True))))
        return True

    async def _single(self, text: str) -> Vector | None:
        """The vector of a text, or None where it is the text that cannot be embedded.

        That is so where another text can be and it still cannot: the server may have come back in between.
        """
        for _ in range(2):
            try:
                return (await self._embedder.embed([text], "passage"))[0]
            except EmbedderError as error:
                if not error.of_text:
                    raise
            await self._embedder.embed([PROBE], "passage")  # which raises where no text can be
        return None
