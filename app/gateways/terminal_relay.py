"""The operator's terminal in an agent's sandbox, between the engine that has it and a cockpit elsewhere.

The terminal stays the engine's, which records what is typed and printed. On a connection of its own lines
go both ways: `{"out"}` what was printed, and at the end of the shell `{"end"}`; `{"typed"}`, `{"reply"}`
what the emulator answers, and the size as `{"rows", "columns"}`. Bytes are in base64.
"""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import Callable
from typing import Any

from app.gateways.engine_client import EngineLostError, Wire
from app.gateways.protocol import LINE_BYTES, LineSplitter, ProtocolError, encode
from engine.sandbox.terminal import KEPT, OperatorTerminal

PIECE_BYTES = 64 * 1024
"""What is sent in one line."""
WAITING_BYTES = 8 * 1024 * 1024
"""What may wait to be taken by an engine; more is not sent."""


async def serve_terminal(
    terminal: OperatorTerminal,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    take: Callable[[bytes], None],
) -> None:
    """Show a terminal to a client until the shell ends or the client has gone, which ends nothing else.

    A client that is slow is not waited for: of a flood it misses the oldest part.

    Args:
        terminal: whose.
        reader: what the client sends.
        writer: to the client.
        take: does what a line of the client says.

    Raises:
        ProtocolError: the client sent what cannot be understood.
    """
    waiting, came, over = bytearray(), asyncio.Event(), False

    def show(data: bytes) -> None:
        nonlocal over
        over = over or not data
        waiting.extend(data)
        del waiting[:-KEPT]
        came.set()

    leave = terminal.follow(show)
    listening = asyncio.create_task(_listen(reader, take), name="keys from afar")
    listening.add_done_callback(lambda _task: show(b""))
    try:
        while waiting or not over:
            await came.wait()
            came.clear()
            while waiting:
                piece = bytes(waiting[:PIECE_BYTES])
                del waiting[:PIECE_BYTES]
                writer.write(encode({"out": _text(piece)}))
                await writer.drain()
        if listening.done():
            await listening
        writer.write(encode({"end": True}))
    finally:
        leave()
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


async def _listen(reader: asyncio.StreamReader, take: Callable[[bytes], None]) -> None:
    splitter = LineSplitter(LINE_BYTES)
    while piece := await reader.read(PIECE_BYTES):
        for line in splitter.feed(piece):
            take(line)


def _text(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def bytes_of(text: str) -> bytes:
    """Bytes in base64.

    Raises:
        ProtocolError: it is none.
    """
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        raise ProtocolError("terminal", "what is typed is given in base64") from None


class RemoteTerminal(OperatorTerminal):
    """A terminal that the engine of another process has, as a pane uses it; always `close` it.

    Args:
        wire: the connection that carries it.
        watching: whether nothing is sent.
    """

    def __init__(self, wire: Wire, *, watching: bool) -> None:
        super().__init__()
        self._wire, self._watching = wire, watching
        self._reading = asyncio.create_task(self._read(), name="terminal from afar")

    async def _read(self) -> None:
        try:
            while "end" not in (message := await self._wire.next()):
                self._show(bytes_of(str(message.get("out", ""))))
        except (EngineLostError, ProtocolError):
            pass  # what holds it says so
        finally:
            self.open = False
            self._wire.close()

    def resize(self, rows: int, columns: int) -> None:
        """Say how large the screen is."""
        self._tell({"rows": rows, "columns": columns})

    def _send(self, data: bytes, *, typed: bool) -> None:
        if self._wire.writer.transport.get_write_buffer_size() + len(data) > WAITING_BYTES:
            self._show(b"\a")
            return
        for at in range(0, len(data), PIECE_BYTES):
            self._tell({"typed" if typed else "reply": _text(data[at : at + PIECE_BYTES])})

    def _tell(self, message: dict[str, Any]) -> None:
        if self.open and not self._watching:
            self._wire.writer.write(encode(message))

    async def close(self) -> None:
        """Show it no longer; the shell goes on."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
