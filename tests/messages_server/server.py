"""The server: plain HTTP/1.1 over asyncio streams, one request a connection."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tests.messages_server.replies import Reply, failure
from tests.patience import PATIENCE_S


@dataclass(frozen=True)
class Seen:
    """A request as it came."""

    path: str
    headers: Mapping[str, str]
    """By lower-case name."""
    body: dict[str, Any]

    def said(self) -> str:
        """All text of the request, for looking up what a model was told."""
        return json.dumps(self.body, ensure_ascii=False)


Script = Iterable[Reply | Callable[[Seen], Reply]]


class MessagesServer:
    """Answers requests by a script and keeps what it saw."""

    def __init__(self, script: Script = (), *, repeat: bool = False) -> None:
        self.replies = list(script)
        self.repeat = repeat
        """Whether the script begins again after its last reply."""
        self.requests: list[Seen] = []
        """Requests for messages, in order."""
        self.held = asyncio.Event()
        """Set when a reply holds: all before the hold was sent."""
        self.url = ""
        self._given = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> MessagesServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        """Listen on loopback."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Close all connections."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def emptied(self) -> None:
        """Return when no connection is open any more; fails after ten seconds."""
        async with asyncio.timeout(PATIENCE_S):
            while self._tasks:
                await asyncio.wait(self._tasks)

    def then(self, *replies: Reply | Callable[[Seen], Reply]) -> None:
        """Add to the script."""
        self.replies += replies

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._serve(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen = await self._read(reader)
        path = seen.path.partition("?")[0]
        if path == "/v1/messages/count_tokens":
            _send(writer, 200, {}, json.dumps({"input_tokens": 100}))
        elif path == "/v1/messages":
            self.requests.append(seen)
            await self._answer(self._next(seen), seen, reader, writer)
        else:
            error = {"type": "not_found_error", "message": seen.path}
            _send(writer, 404, {}, json.dumps({"error": error}))
        await writer.drain()

    async def _read(self, reader: asyncio.StreamReader) -> Seen:
        """The next request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in head[1:-2])
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        return Seen(head[0].split(" ")[1], headers, json.loads(raw) if raw else {})

    def _next(self, seen: Seen) -> Reply:
        if self.repeat and self._given == len(self.replies):
            self._given = 0
        if self._given == len(self.replies):
            return failure(400, "invalid_request_error", "the script has no reply left")
        reply = self.replies[self._given]
        self._given += 1
        return reply if isinstance(reply, Reply) else reply(seen)

    async def _answer(
        self, reply: Reply, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if reply.silent:
            await self._hold(reader)
            return
        await asyncio.sleep(reply.head_delay_ms / 1000)
        if reply.body is not None:
            _send(writer, reply.status, reply.headers, reply.body)
            return
        headers = {"content-type": "text/event-stream", "request-id": "req_1", **reply.headers}
        writer.write(_head(reply.status, {**headers, "transfer-encoding": "chunked"}))
        await writer.drain()
        await asyncio.sleep(reply.first_byte_delay_ms / 1000)
        for number, event in enumerate(reply.events(str(seen.body.get("model")))):
            if number == reply.after and not await self._fault(reply, reader, writer):
                return
            if number and reply.event_delay_ms:
                await writer.drain()
                await asyncio.sleep(reply.event_delay_ms / 1000)
            writer.write(_chunk(event))
        writer.write(b"0\r\n\r\n")

    async def _fault(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Let happen what is scripted; False when nothing more is to be sent."""
        await writer.drain()
        match reply.then:
            case "hold":
                await self._hold(reader)
                return False
            case "drop":
                # Closed behind all that was sent: a reset might take that along, now and then.
                return False
            case "end":
                writer.write(b"0\r\n\r\n")
                return False
            case "error":
                error = {"type": "error", "error": {"type": reply.error, "message": "scripted"}}
                writer.write(_chunk(f"event: error\ndata: {json.dumps(error)}\n\n".encode()))
                writer.write(b"0\r\n\r\n")
                return False
            case "garbage":
                writer.write(_chunk(b'event: content_block_delta\ndata: {"type": "content_\n\n'))
            case "binary":
                writer.write(_chunk(b"data: \xff\xfe\n\n"))
            case "endless":
                with suppress(ConnectionError):
                    while not reader.at_eof():
                        writer.write(_chunk(b"data: " + b"x" * 1_000_000))
                        await writer.drain()
                return False
            case "go on":
                pass
        return True

    async def _hold(self, reader: asyncio.StreamReader) -> None:
        self.held.set()
        with suppress(ConnectionError):
            await reader.read()


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Scripted", "connection: close", *(f"{k}: {v}" for k, v in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _send(writer: asyncio.StreamWriter, status: int, headers: Mapping[str, str], body: str) -> None:
    content = body.encode()
    fixed = {"content-type": "application/json", "content-length": str(len(content))}
    writer.write(_head(status, {**fixed, **headers}) + content)


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


@contextmanager
def serving(
    answer: Callable[[Seen], Reply], made: Callable[[Script], MessagesServer] | None = None
) -> Iterator[str]:
    """A server in a thread of its own, whose every reply a function gives; its address."""
    url: list[str] = []
    ready, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with made([answer]) if made else MessagesServer([answer], repeat=True) as server:
            url.append(server.url)
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_S)
    try:
        yield url[0]
    finally:
        over.set()
        thread.join(10)
