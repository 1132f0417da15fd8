"""Messages of a client, one a line, and what is wrong with a line answered instead of handed on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from acp import RequestError

from engine.core.text import StrictJsonError, clean_line, read_json
from engine.tools.mcp.process import LINE_LIMIT

NOT_JSON, NOT_A_REQUEST = -32700, -32600


class LineTransport:
    """The library's transport over two byte streams; its own answers nothing to lines that it cannot read.

    Args:
        reader: where messages come from; its limit is that of a line.
        writer: where they go.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer, self._lock = reader, writer, asyncio.Lock()

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message.

        Raises:
            OSError: the client has gone.
        """
        async with self._lock:
            self._writer.write(json.dumps(_in_words(message), default=str).encode() + b"\n")
            await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None when the client has gone."""
        while True:
            try:
                line = await self._line()
                if line is None or line.strip():
                    return None if line is None else _message(line)
            except RequestError as refusal:
                await self.send({"jsonrpc": "2.0", "id": None, "error": refusal.to_error_obj()})

    async def _line(self) -> bytes | None:
        """The next line, None at the end.

        Raises:
            RequestError: it was too long, and is left out.
        """
        too_long = False
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                too_long = bool(await self._reader.readexactly(error.consumed))
            except (asyncio.IncompleteReadError, OSError):
                return None
            else:
                if too_long:
                    raise RequestError(NOT_JSON, f"a message has at most {LINE_LIMIT:,} bytes")
                return line

    async def close(self) -> None:
        """Send nothing more."""
        self._writer.close()


def _message(line: bytes) -> dict[str, Any]:
    """A line as a message.

    Raises:
        RequestError: it is none; the message says why.
    """
    try:
        value = read_json(line.decode())
    except (StrictJsonError, UnicodeDecodeError) as error:
        raise RequestError(NOT_JSON, clean_line(f"the line is no JSON: {error}", limit=300)) from None
    if not isinstance(value, dict):
        raise RequestError(NOT_A_REQUEST, "a message is a JSON object, and batches are none of this protocol")
    kinds = {"id": str | int | None, "method": str | None, "error": dict | None}
    for name, kind in kinds.items():
        if not isinstance(value.get(name), kind):
            raise RequestError(NOT_A_REQUEST, f"{name} is of a wrong type: see JSON-RPC 2.0")
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
