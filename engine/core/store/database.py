"""What a journal needs of a database, and the newest events that it keeps in memory beside it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from engine.core.journal import Event


class Dialect(NamedTuple):
    """The SQL that databases have different words for; `?` is a parameter in all of them."""

    names: str
    """The values of a JSON list, as rows `names(value)`."""
    places: str
    """The members of a JSON object, as rows `places(key, value)`."""
    kind: str
    """The column `kind`, so that its index is not used."""
    state: str
    """A kept state `s.state`, however damaged it is."""


class Database(Protocol):
    """Where a journal is kept."""

    dialect: Dialect
    resources: AsyncExitStack
    """What is let go with it, the last of it first."""

    @property
    def place(self) -> str:
        """Where that is, in words."""

    @property
    def path(self) -> Path | None:
        """The file; None where it is none of this machine."""

    async def fetch(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """All rows of a query.

        Raises:
            JournalCorrupt: the data are damaged.
            JournalReadError: they cannot be read just now.
            JournalClosed: the journal was closed.
        """

    async def news(self, told: asyncio.Event) -> None:
        """Wait until another process may have written, or until this is told so."""

    async def last_given_seq(self) -> int:
        """The last place ever given out, as remembered apart from the events; 0 when it is not."""

    async def damage(self) -> str:
        """What is wrong beside the events; empty when all is sound."""


class Tail:
    """A ring of the last committed events, shared by all who follow; each keeps only its own place."""

    def __init__(self, last_seq: int, size: int) -> None:
        """Begin after `last_seq`, with room for `size` events."""
        self._ring: deque[Event] = deque(maxlen=size)
        self._last = last_seq

    def extend(self, events: Iterable[Event]) -> None:
        """Add events that follow the last one without a gap."""
        self._ring.extend(events)
        if self._ring:
            self._last = self._ring[-1].seq

    def after(self, seq: int, limit: int) -> list[Event] | None:
        """Up to `limit` events that follow `seq`, or None when some of them are only on disk."""
        first = self._last - len(self._ring) + 1
        if seq + 1 < first:
            return None
        start = seq + 1 - first
        return list(islice(self._ring, start, start + limit))
