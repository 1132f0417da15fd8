"""The lines that an engine and its clients exchange: JSON objects, one a line, in UTF-8.

The client's first line is its hello, the engine's first one the answer; then come requests
`{"id": 1, "ask": NAME, …}` and answers `{"id": 1, "answer": …}` or `{"id": 1, "error": {"code", "message"}}`.
`app/guide/engine.md` describes all of them. Imports little, as `pilothouse do` begins here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

PROTOCOL, OLDEST = 1, 1
"""The newest version of the protocol that this program speaks, and the oldest."""
LINE_BYTES = 1024 * 1024
"""What a line of a client may have."""
ANSWER_BYTES = 64 * 1024 * 1024
"""What a line of an engine may have."""
BEHIND = 5_000
"""Events from which on a follower is told how far behind it is."""

RESTARTING = "the engine starts again"
"""With which an engine ends whose successor answers at the same place in a moment."""


class ProtocolError(Exception):
    """A message that is refused.

    Args:
        code: of the kind of refusal, such as `line.long`.
        message: why, and what to do.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def encode(message: Mapping[str, Any]) -> bytes:
    """A message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def error_line(error: ProtocolError, ident: int | None = None) -> bytes:
    """A refusal as a line."""
    return encode({"id": ident, "error": {"code": error.code, "message": error.message}})


def agreed_protocol(newest: int, oldest: int) -> int:
    """The version that both sides speak.

    Args:
        newest: the newest one that the client speaks.
        oldest: and the oldest.

    Raises:
        ProtocolError: there is none.
    """
    protocol = min(newest, PROTOCOL)
    if protocol >= max(oldest, OLDEST):
        return protocol
    theirs, how = (
        ("an older", "update the client")
        if newest < OLDEST
        else ("a newer", "start this engine again in its version: pilothouse serve --restart")
    )
    raise ProtocolError(
        "hello.protocol",
        f"the client speaks {theirs} protocol ({oldest} to {newest}) than this engine "
        f"({OLDEST} to {PROTOCOL}): {how}",
    )


class LineSplitter:
    """Lines out of the pieces in which they arrive.

    Args:
        limit: bytes that a line may have.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()

    @property
    def partial(self) -> bool:
        """Whether a line has begun and not ended."""
        return bool(self._held)

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that end in this piece, without their ends.

        Raises:
            ProtocolError: a line is too long.
        """
        before = len(self._held)
        self._held += piece
        lines = []
        if (end := self._held.rfind(b"\n", before)) >= 0:
            lines = bytes(self._held[:end]).split(b"\n")
            del self._held[: end + 1]
        if max(map(len, (*lines, self._held))) > self._limit:
            raise ProtocolError("line.long", f"a line has at most {self._limit:,} bytes")
        return lines
