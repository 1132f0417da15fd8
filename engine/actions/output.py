"""What a running action prints, brought to the journal in bounded pieces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PERIOD_S = 0.05
"""Pieces are journaled at most this often, for each stream."""
PIECE_LIMIT = 64 * 1024
"""Characters of one piece; of more only the end is kept."""
TOTAL_LIMIT = 4 * 1024 * 1024
"""Characters of one action after which pieces become short."""
PIECE_LIMIT_AFTER = 4 * 1024


class OutputPump:
    """Collects output and passes it on in pieces: `(stream, text, skipped)`.

    A command that prints without end costs the journal at most about 80 KiB a second after its
    first 4 MiB; what is left out is counted in `skipped`, never dropped silently.
    """

    def __init__(self, emit: Callable[[str, str, int], None]) -> None:
        self._emit = emit
        self._waiting: list[tuple[str, str]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._total = 0

    def __call__(self, stream: str, text: str) -> None:
        """Take a piece of output; called in the event loop."""
        if not text:
            return
        self._waiting.append((stream, text))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PERIOD_S, self._due)

    def _due(self) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> None:
        """Pass on what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        limit = PIECE_LIMIT if self._total < TOTAL_LIMIT else PIECE_LIMIT_AFTER
        for stream, text in _joined(waiting):
            skipped = max(0, len(text) - limit)
            self._total += len(text)
            self._emit(stream, text[skipped:], skipped)


def _joined(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Neighbouring pieces of one stream made one."""
    out: list[tuple[str, list[str]]] = []
    for stream, text in pieces:
        if out and out[-1][0] == stream:
            out[-1][1].append(text)
        else:
            out.append((stream, [text]))
    return [(stream, "".join(texts)) for stream, texts in out]
