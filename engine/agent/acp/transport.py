"""Messages of a program that may send anything: each is bounded, well formed and not too many at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from engine.core.text import StrictJsonError, clean_line, read_json

BURST, REST_S = 20, 0.01
"""So many messages are read at once, then others have their turn: about 2,000 a second at most. A program
that sends more waits for its pipe."""
NOT_JSON, NOT_A_MESSAGE = -32700, -32600
"""The protocol's codes of what is wrong with a line."""


class InvalidLineError(ValueError):
    """A line is no message; the text says why.

    Args:
        code: the protocol's code.
        words: what is wrong.
        endless: whether the line is too long.
    """

    def __init__(self, code: int, words: str, *, endless: bool = False) -> None:
        super().__init__(clean_line(words, limit=300))
        self.code, self.endless = code, endless


Refuse = Callable[[InvalidLineError], Awaitable[bool]]
"""Is told what is wrong with a line; whether more is to be read."""


class LineTransport:
    """JSON-RPC messages, one a line; the protocol's own reader would stumble over what is refused here.

    Args:
        reader: where they come from; its limit is that of a line.
        writer: where they go.
        limit: bytes of a line, for words about it.
        refuse: see `Refuse`.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int, refuse: Refuse
    ) -> None:
        self._reader, self._writer, self._limit, self._refuse = reader, writer, limit, refuse
        self._count = 0

    async def send(self, message: dict[str, Any]) -> None:
        """Send one message; waits while the other side does not read.

        Raises:
            ConnectionError: the other side has gone.
        """
        try:
            self._writer.write(json.dumps(_in_words(message), default=str).encode() + b"\n")
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
                if (line := await self._line()) is None:
                    return None
                if line.strip():
                    return read_message(line)
            except InvalidLineError as error:
                if not await self._refuse(error):
                    return None

    async def _line(self) -> bytes | None:
        """The next line, without those that are too long; None at the end."""
        too_long = False
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                words = f"a message has at most {self._limit:,} bytes"
                if not too_long and not await self._refuse(InvalidLineError(NOT_JSON, words, endless=True)):
                    return None
                too_long = bool(await self._reader.readexactly(error.consumed))
            except (asyncio.IncompleteReadError, OSError):
                return None
            else:
                if not too_long:
                    return line
                too_long = False

    async def close(self) -> None:
        """Send nothing more."""
        self._writer.close()


def read_message(line: bytes) -> dict[str, Any]:
    """A line as a message.

    Raises:
        InvalidLineError: it is none.
    """
    try:
        value = read_json(line.decode())
    except (StrictJsonError, UnicodeDecodeError) as error:
        raise InvalidLineError(NOT_JSON, f"the line is no JSON: {error}") from None
    if not isinstance(value, dict):
        words = "a message is a JSON object, and batches are none of this protocol"
        raise InvalidLineError(NOT_A_MESSAGE, words)
    kinds = {"id": str | int | None, "method": str | None, "error": dict | None}
    wrong = [name for name, kind in kinds.items() if not isinstance(value.get(name), kind)]
    if not wrong and value.get("method") is None:
        fault = value.get("error") or {"code": 0, "message": ""}
        wrong += [] if isinstance(value.get("id"), int) else ["id"]
        wrong += [] if isinstance(fault.get("code"), int) else ["error.code"]
        wrong += [] if isinstance(fault.get("message"), str) else ["error.message"]
    if wrong:
        raise InvalidLineError(NOT_A_MESSAGE, f"{wrong[0]} is of a wrong type: see JSON-RPC 2.0")
    return value


def _in_words(message: dict[str, Any]) -> dict[str, Any]:
    """An answer that says of wrong parameters what is wrong, and does not send back all that came."""
    error = message.get("error") or {}
    data = error.get("data")
    if not isinstance(data, dict) or not data.get("errors"):
        return message
    problem = data["errors"][0]
    words = f"{'.'.join(map(str, problem['loc'])) or 'params'}: {problem['msg']}"
    return {**message, "error": {"code": error["code"], "message": clean_line(words, limit=300)}}
