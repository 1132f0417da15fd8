"""What a program prints, brought to the journal in bounded pieces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PERIOD_S = 0.05
"""Seconds between two pieces of one stream, at least."""
PIECE_LIMIT = 64 * 1024
"""Characters of one piece; of more only the end is kept."""
TOTAL_LIMIT = 4 * 1024 * 1024
"""Characters in all after which pieces become short."""
PIECE_LIMIT_AFTER = 4 * 1024


class OutputPump:
    """Collects output and passes it on in pieces: `(stream, text, skipped)`.

    A command that prints without end costs the journal at most about 80 KiB a second and stream after its
    first 4 MiB; what is left out is counted in `skipped`, never dropped silently.

    Args:
        emit: takes a piece; called on the event loop.
        period_s: seconds between two pieces of one stream, at least.
    """

    def __init__(self, emit: Callable[[str, str, int], None], period_s: float = PERIOD_S) -> None:
        self._emit = emit
        self._period_s = period_s
        self._waiting: dict[str, list[str]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._total = 0

    def __call__(self, stream: str, text: str) -> None:
        """Take a piece of output; called in the event loop."""
        if not text:
            return
        self._waiting.setdefault(stream, []).append(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._period_s, self._due)

    def _due(self) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> None:
        """Pass on what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, {}
        limit = PIECE_LIMIT if self._total < TOTAL_LIMIT else PIECE_LIMIT_AFTER
        for stream, texts in waiting.items():
            text = "".join(texts)
            skipped = max(0, len(text) - limit)
            self._total += len(text)
            self._emit(stream, text[skipped:], skipped)
