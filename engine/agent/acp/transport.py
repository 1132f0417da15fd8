"""Messages of a program that may send anything: each is bounded, well formed and not too many at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

MESSAGE_LIMIT = 8 * 1024 * 1024
"""Bytes of one message."""
INVALID_MOST = 20
"""Lines that are no messages, after which nothing more is read."""
BURST, REST_S = 20, 0.01
"""So many messages are read at once, then others have their turn: about 2,000 a second at most. A program
that sends more waits for its pipe."""


class BoundedTransport:
    """JSON-RPC messages, one a line; what the protocol's own reader would stumble over ends the connection.

    Args:
        reader: where they come from; its limit is that of a line.
        writer: where they go.
        failed: told once, in words, why nothing more is read.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, failed: Callable[[str], None]
    ) -> None:
        self._reader, self._writer, self._failed = reader, writer, failed
        self._invalid = self._count = 0

    async def send(self, message: dict[str, Any]) -> None:
        """Send one message; waits while the program does not read.

        Raises:
            ConnectionError: the program has gone.
        """
        try:
            self._writer.write(json.dumps(message).encode() + b"\n")
            await self._writer.drain()
        except (OSError, RuntimeError) as error:
            raise ConnectionError(str(error)) from None

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None where there is none any more."""
        while True:
            self._count += 1
            if self._count % BURST == 0:
                await asyncio.sleep(REST_S)
            try:
                line = await self._reader.readline()
            except ValueError:
                self._failed(f"it sent a message of more than {MESSAGE_LIMIT // 2**20} MiB")
                return None
            except OSError:
                return None
            if not line:
                return None
            if (message := read_message(line)) is not None:
                return message
            self._invalid += bool(line.strip())
            if self._invalid > INVALID_MOST:
                self._failed(f"it sent more than {INVALID_MOST} lines that are no messages of the protocol")
                return None

    async def close(self) -> None:
        """Close the program's input."""
        self._writer.close()


def read_message(line: bytes) -> dict[str, Any] | None:
    """A line as a message of JSON-RPC; None where it is none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not isinstance(message.get("id"), int | str | None):
        return None
    if "method" in message:
        good = isinstance(message["method"], str)
    else:
        error = message.get("error")
        good = isinstance(message.get("id"), int) and (error is None or _is_error(error))
    return message if good else None


def _is_error(error: Any) -> bool:
    return (
        isinstance(error, dict)
        and isinstance(error.get("code"), int)
        and isinstance(error.get("message"), str)
    )
