"""What a supervisor says of its command on its status pipe: `up`, `started`, and in the end a report."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable
from typing import Any

_MOST_BYTES = 64 * 1024


class Status(asyncio.Protocol):
    """Receives what the supervisor says; only the supervisor holds the pipe, so its end is the supervisor's.

    Args:
        started: called once, when the program has replaced the supervisor's child.
    """

    def __init__(self, started: Callable[[], None]) -> None:
        self._started: Callable[[], None] | None = started
        self._said = b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the pipe is closed."""

    @property
    def up(self) -> bool:
        """Whether the supervisor came to life."""
        return self._said.startswith(b"up\n")

    @property
    def report(self) -> dict[str, Any] | None:
        """The supervisor's last word, or None when it died before."""
        try:
            report = ast.literal_eval(self._said.rpartition(b"\n")[2].decode("utf-8", "replace"))
        except (SyntaxError, ValueError):
            return None
        return report if isinstance(report, dict) else None

    def data_received(self, data: bytes) -> None:
        """Keep it, and pass on that the program has started."""
        self._said = (self._said + data)[:_MOST_BYTES]
        if self._started is not None and b"\nstarted\n" in self._said:
            told, self._started = self._started, None
            told()

    def connection_lost(self, exc: Exception | None) -> None:
        """The supervisor has ended."""
        self.finish()

    def finish(self) -> None:
        """Expect nothing more; harmless when done twice."""
        if not self.ended.done():
            self.ended.set_result(None)
