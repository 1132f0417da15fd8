"""Messages of a client, one a line, and what is wrong with a line answered instead of handed on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from engine.core.text import StrictJsonError, clean_line, read_json

NOT_JSON, NOT_A_REQUEST = -32700, -32600


class LineTransport:
    """The library's transport over two byte streams; its own answers nothing to lines that it cannot read.

    Args:
        reader: where messages come from; its limit is that of a line.
        writer: where they go.
        limit: bytes of a line, for the words.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int) -> None:
        self._reader, self._writer, self._limit = reader, writer, limit
        self._lock = asyncio.Lock()

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message.

        Raises:
            ConnectionError: the client has gone.
        """
        line = json.dumps(_in_words(message), separators=(",", ":"), default=str).encode() + b"\n"
        try:
            async with self._lock:
                self._writer.write(line)
                await self._writer.drain()
        except OSError as error:
            raise ConnectionError("the client has gone") from error

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None when the client has gone."""
        while True:
            try:
                line = await self._line()
                if line is None:
                    return None
                if line.strip():
                    return _message(line)
            except ValueError as error:
                code = NOT_A_REQUEST if isinstance(error, NoMessageError) else NOT_JSON
                refusal = {"code": code, "message": clean_line(str(error), limit=300)}
                await self.send({"jsonrpc": "2.0", "id": None, "error": refusal})
            except OSError:
                return None

    async def _line(self) -> bytes | None:
        """The next line, None at the end.

        Raises:
            ValueError: it was too long, and is left out.
        """
        too_long = False
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                too_long = True
                await self._reader.readexactly(error.consumed)
            except asyncio.IncompleteReadError:
                return None
            else:
                if too_long:
                    raise ValueError(f"a message has at most {self._limit:,} bytes")
                return line

    async def close(self) -> None:
        """Send nothing more."""
        self._writer.close()


class NoMessageError(ValueError):
    """A JSON value that is no message; its text says why."""


def _message(line: bytes) -> dict[str, Any]:
    """A line as a message.

    Raises:
        ValueError: it is none; the message says why.
    """
    try:
        value = read_json(line.decode())
    except (StrictJsonError, UnicodeDecodeError) as error:
        raise ValueError(f"the line is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise NoMessageError("a message is a JSON object, and batches are none of this protocol")
    if not isinstance(value.get("id"), str | int | None) or not isinstance(value.get("method", ""), str):
        raise NoMessageError("an id is a number or a text, and a method a text")
    if not isinstance(value.get("error", {}), dict):
        raise NoMessageError("an error is an object with code and message")
    return value


def _in_words(message: dict[str, Any]) -> dict[str, Any]:
    """An answer that says of wrong parameters what is wrong, and not all that was sent."""
    error = message.get("error") or {}
    problems = (error.get("data") or {}).get("errors") if isinstance(error.get("data"), dict) else None
    if not problems:
        return message
    first = problems[0]
    where = ".".join(map(str, first.get("loc", ()))) or "params"
    words = clean_line(f"{where}: {first.get('msg', 'wrong')}", limit=300)
    return {**message, "error": {"code": error["code"], "message": words}}
