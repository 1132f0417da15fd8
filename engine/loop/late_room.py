"""A room with a stream of its own is opened when it is first needed: a start that needs none imports none."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from engine.journal.errors import JournalError
from engine.journal.log import StreamLog


class _Spine(Protocol):
    @property
    def log(self) -> StreamLog:
        """What it appends to."""

    async def commit(self) -> None:
        """Make what was appended durable."""


class _Room(Protocol):
    @property
    def spine(self) -> _Spine:
        """Its stream."""

    async def close(self) -> None:
        """End what runs."""


R = TypeVar("R", bound=_Room)


class LateRoom(ABC, Generic[R]):
    """A room with a stream of its own, once somebody needs it.

    Args:
        name: what it is called among the tasks.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._opening: asyncio.Task[R] | None = None

    async def opened(self) -> R:
        """The room, open.

        Raises:
            JournalError: its stream cannot be read.
        """
        return await asyncio.shield(self.begin())

    def begin(self) -> asyncio.Task[R]:
        """Begin to open it, where nobody has, or it failed."""
        begun = self._opening
        if begun is None or (begun.done() and (begun.cancelled() or begun.exception() is not None)):
            begun = asyncio.create_task(self._open(), name=f"{self._name} opening")
            # Whoever asks is told.
            begun.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._opening = begun
        return begun

    @abstractmethod
    async def _open(self) -> R:
        """Open it."""

    @property
    def _here(self) -> R | None:
        """The room, where it is open by now."""
        begun = self._opening
        if begun is None or not begun.done() or begun.cancelled() or begun.exception() is not None:
            return None
        return begun.result()

    @property
    def trouble(self) -> Exception | None:
        """Why its stream could not be written last; None where it could."""
        return self._here.spine.log.trouble if self._here is not None else None

    async def try_again(self) -> None:
        """Write what the journal refused, where there is such."""
        if self._here is not None and self.trouble is not None:
            with suppress(JournalError):
                await self._here.spine.commit()

    async def close(self) -> None:
        """End what runs; may be called again."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
            if self._here is not None:
                await self._here.close()
