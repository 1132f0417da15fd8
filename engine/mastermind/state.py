"""Mastermind's stream while it is open: events in, state folded at once, durable by `commit`."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Self

from engine.domain.mastermind import MastermindState
from engine.domain.ports import Clock
from engine.journal.errors import JournalError
from engine.journal.event import MASTERMIND, Event
from engine.journal.events import payload_of
from engine.journal.log import StreamLog
from engine.journal.payload import Payload
from engine.journal.store import JournalStore
from engine.mastermind.fold import apply, fold


class Spine:
    """The one place that writes to the stream; `state` is the fold of all that was appended."""

    def __init__(self, log: StreamLog, state: MastermindState) -> None:
        self.log = log
        self.state = state
        self._news = asyncio.Event()

    @classmethod
    async def open(cls, store: JournalStore, clock: Clock) -> Self:
        """Read the stream.

        Raises:
            JournalError: it cannot be read, or holds what this version does not know.
        """
        events = await store.read(MASTERMIND)
        state = await asyncio.to_thread(fold, events)
        return cls(StreamLog(MASTERMIND, state.version, state.hash, clock, store.commit), state)

    def append(self, payload: Payload, *, actor: str = "system", causes: tuple[str, ...] = ()) -> Event:
        """Add an event and fold it, as the journal will give it back; it is pending until `commit`."""
        event = self.log.append(payload, actor=actor, causes=causes, tick=0)
        apply(self.state, event, payload_of(event))
        news, self._news = self._news, asyncio.Event()
        news.set()
        return event

    async def write(self, payload: Payload, *, actor: str = "system", causes: tuple[str, ...] = ()) -> Event:
        """Add an event and make it durable.

        Raises:
            JournalError: the journal refused; the event stays pending.
        """
        event = self.append(payload, actor=actor, causes=causes)
        await self.log.commit()
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
        with suppress(JournalError):
            await self.log.commit()
        await self.log.close()

    def tell(
        self, topic: str, text: str, data: dict[str, Any] | None = None, *, actor: str = "system"
    ) -> Event:
        """A line of the log that no other event says."""
        from engine.journal.mastermind_events import Noted

        return self.append(Noted(topic=topic, text=text, data=data or {}), actor=actor)
