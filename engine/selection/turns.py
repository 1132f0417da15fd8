"""Who writes to a graph: one at a time, and nobody past a transaction that is open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.selection.errors import GraphFault


class Turns:
    """A lock that says so where a task would wait for itself."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._holder: asyncio.Task[object] | None = None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the turn to write, and hold it.

        Raises:
            GraphFault: this task holds it already, by a transaction.
        """
        here = asyncio.current_task()
        if here is not None and self._holder is here:
            raise GraphFault("A transaction is open here: write to what it gave, or end it first.")
        async with self._lock:
            self._holder = here
            try:
                yield
            finally:
                self._holder = None
