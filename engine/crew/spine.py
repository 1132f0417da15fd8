"""The crew's stream while it is open: events in, state folded at once, durable by `commit`."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Self

from engine.crew.fold import apply, fold
from engine.crew.state import CrewState
from engine.domain.ports import Clock
from engine.journal.errors import JournalError
from engine.journal.event import CREW, Event
from engine.journal.events import payload_of
from engine.journal.log import StreamLog
from engine.journal.payload import Payload
from engine.journal.store import JournalStore


class Spine:
    """The one place that writes to the stream; `state` is the fold of all that was appended."""

    def __init__(self, log: StreamLog, state: CrewState) -> None:
        self.log = log
        self.state = state
        self._news = asyncio.Event()
        self.closed = False

    @classmethod
    async def open(cls, store: JournalStore, clock: Clock) -> Self:
        """Read the stream.

        Raises:
            JournalError: it cannot be read, or holds what this version does not know.
        """
        events = await store.read(CREW)
        state = await asyncio.to_thread(fold, events)
        return cls(StreamLog(CREW, state.version, state.hash, clock, store.commit), state)

    def append(self, payload: Payload, *, actor: str = "system") -> Event:
        """Add an event and fold it, as the journal will give it back; it becomes durable soon."""
        event = self.log.append(payload, actor=actor, causes=(), tick=0)
        apply(self.state, event, payload_of(event))
        self.log.commit_soon()
        news, self._news = self._news, asyncio.Event()
        news.set()
        return event

    async def commit(self) -> None:
        """Make all that is pending durable.

        Raises:
            JournalError: the journal refused.
        """
        await self.log.commit()

    async def changed(self) -> None:
        """Wait for the next event."""
        await self._news.wait()

    async def close(self) -> None:
        """Make what is pending durable where that can be done."""
        self.closed = True
        with suppress(JournalError):
            await self.log.commit()
        await self.log.close()
