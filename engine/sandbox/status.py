"""What a supervisor says of its command on its status pipe, line by line.

`up`, `started`, an `answer` to each letter on its life line, `ending` before it ends the command because that
line was cut, and in the end a report.
"""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable
from typing import Any

_MOST_BYTES = 64 * 1024
Look = dict[str, Any]
"""What `engine.sandbox.freezing.Frost.look` found."""


class Status(asyncio.Protocol):
    """Receives what the supervisor says; only the supervisor holds the pipe, so its end is the supervisor's.

    Args:
        started: called once, when the program has replaced the supervisor's child.
        told: called with each look at the processes, and whether it answers a letter.
    """

    def __init__(self, started: Callable[[], None], told: Callable[[Look, bool], None]) -> None:
        self._started = started
        self._told = told
        self._rest = b""
        self.up = False
        """Whether the supervisor came to life."""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the pipe is closed."""

    @property
    def report(self) -> dict[str, Any] | None:
        """The supervisor's last word, or None when it died before."""
        return _read(self._rest)

    def data_received(self, data: bytes) -> None:
        """Take whole lines in, and keep what follows the last."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[:_MOST_BYTES]
        for line in lines:
            kind, _, words = line.partition(b" ")
            if line == b"up":
                self.up = True
            elif line == b"started":
                self._started()
            elif kind in (b"answer", b"ending") and (look := _read(words)) is not None:
                self._told(look, kind == b"answer")

    def connection_lost(self, exc: Exception | None) -> None:
        """The supervisor has ended."""
        self.finish()

    def finish(self) -> None:
        """Expect nothing more; harmless when done twice."""
        if not self.ended.done():
            self.ended.set_result(None)


def _read(text: bytes) -> dict[str, Any] | None:
    try:
        said = ast.literal_eval(text.decode("utf-8", "replace"))
    except (SyntaxError, ValueError):
        return None
    return said if isinstance(said, dict) else None
