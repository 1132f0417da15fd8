"""The log of one stream: events are appended at once and made durable together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from engine.domain.ports import Clock
from engine.journal.errors import JournalError
from engine.journal.event import Event, chain_hash
from engine.journal.events import Payload

Commit = Callable[[Sequence[Event]], Awaitable[Sequence[Event]]]
"""Makes events durable, all or none; raises `JournalError`."""


class StreamLog:
    """Appends to one stream, keeps its hash chain, and commits what is pending.

    What is appended counts for the agent's state at once; it is published, and seen by
    anybody else, only when it is durable. A failed commit keeps the events pending.
    """

    def __init__(self, stream: str, version: int, head: str, clock: Clock, commit: Commit) -> None:
        self.stream = stream
        self.version = version
        self.head = head
        self._clock = clock
        self._commit = commit
        self._pending: list[Event] = []
        self._writing: asyncio.Task[None] | None = None
        self.trouble: Exception | None = None
        """Why the last commit failed, until one succeeds."""

    def append(self, payload: Payload, *, actor: str, causes: tuple[str, ...], tick: int) -> Event:
        """Add an event to the stream; it is pending until `commit`."""
        at = self._clock.now()
        version = self.version + 1
        body, kind = self._body(payload), payload.kind
        digest = chain_hash(self.head, self.stream, version, at, tick, actor, causes, kind, body)
        event = Event(self.stream, version, at, tick, actor, causes, kind, body, digest)
        self.version, self.head = version, digest
        self._pending.append(event)
        return event

    def _body(self, payload: Payload) -> str:
        """The payload as it is stored."""
        return payload.body()

    @property
    def pending(self) -> int:
        """How many events are not durable yet."""
        return len(self._pending)

    async def commit(self) -> None:
        """Make every pending event durable; a cancelled caller does not disturb the writing.

        Raises:
            JournalError: what is still pending was not written; it stays pending.
        """
        while self._pending:
            await asyncio.shield(self.commit_soon())

    def commit_soon(self) -> asyncio.Task[None]:
        """Start writing unless that is under way; failures show in `trouble` until a commit succeeds."""
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name=f"journal {self.stream}")
            # An exception that nobody awaits is not lost: `trouble` holds it.
            self._writing.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._writing

    async def _write(self) -> None:
        while self._pending:
            batch = tuple(self._pending)
            try:
                await self._commit(batch)
            except JournalError as error:
                self.trouble = error
                raise
            del self._pending[: len(batch)]
        self.trouble = None

    async def close(self) -> None:
        """Wait for the writing under way."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)
