"""The newest events, kept in memory so that those who follow the journal need not read them from disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

from engine.journal.event import Event


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
