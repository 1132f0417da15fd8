"""Capturing a program's output: its head and tail are kept, the rest is counted."""

from __future__ import annotations

import asyncio
import codecs
from collections import deque
from collections.abc import Callable

_FLUSH_S = 0.03
_PORTIONS = 64
"""All that a stream may pass on passes in so many portions, or more smaller ones: in about two seconds."""


class Capture(asyncio.Protocol):
    """Receives one stream in bounded memory and passes it on live in portions.

    Args:
        name: `stdout` or `stderr`, as the sink is told.
        head: bytes kept from the start.
        tail: bytes kept from the end.
        stream: bytes passed to the sink in all; after these it is told that there is more.
        limit: bytes after which `overflow` is called, once.
        sink: called on the event loop, at most every 30 ms.
        overflow: ends the program.
    """

    def __init__(
        self,
        name: str,
        *,
        head: int,
        tail: int,
        stream: int,
        limit: int,
        sink: Callable[[str, str], None],
        overflow: Callable[[], None],
    ) -> None:
        self._name = name
        self._head_size, self._tail_size = head, tail
        self._stream_left, self._portion = stream, max(1, stream // _PORTIONS)
        self._limit = limit
        self._sink, self._overflow = sink, overflow
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0
        """Bytes received."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending: deque[str] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done when the stream is closed."""

    @property
    def dropped(self) -> int:
        """Bytes that were received and not kept."""
        return max(0, self.total - self._head_size - self._tail_size)

    @property
    def text(self) -> str:
        """What was kept, undecodable bytes replaced, without white space at the end."""
        tail = bytes(self._tail[-self._tail_size :])
        if not self.dropped:
            return (bytes(self._head) + tail).decode("utf-8", "replace").rstrip()
        head = bytes(self._head).decode("utf-8", "replace")
        note = f"\n… {self.dropped:,} bytes dropped …\n"
        return (head + note + tail.decode("utf-8", "replace")).rstrip()

    def data_received(self, data: bytes) -> None:
        """Keep, count and pass on a chunk."""
        before = self.total
        self.total += len(data)
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += data[:room]
        if len(data) > room:
            self._tail += data[max(room, 0) :]
            if len(self._tail) > 2 * self._tail_size + len(data):
                del self._tail[: -self._tail_size]
        self._pass_on(data)
        if before <= self._limit < self.total:
            self._overflow()

    def _pass_on(self, data: bytes) -> None:
        if self._stream_left <= 0:
            return
        text = self._decoder.decode(data[: self._stream_left])
        self._stream_left -= len(data)
        if self._stream_left <= 0:
            text += "\n… more output follows and is not shown live …\n"
        self._pending.append(text)
        if self._timer is None:
            self._timer = self._loop.call_later(_FLUSH_S, self._flush)

    def _flush(self) -> None:
        self._timer = None
        portion, room = [], self._portion
        while self._pending and room > 0:
            text = self._pending.popleft()
            if len(text) > room:
                self._pending.appendleft(text[room:])
            portion.append(text[:room])
            room -= len(text)
        if self._pending:
            self._timer = self._loop.call_later(_FLUSH_S, self._flush)
        if said := "".join(portion):
            self._sink(self._name, said)

    def connection_lost(self, exc: Exception | None) -> None:
        """The last holder of the pipe is gone."""
        self.finish()

    def finish(self) -> None:
        """Pass on what is pending and declare the stream ended; harmless when done twice."""
        if self.ended.done():
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        text = "".join(self._pending) + self._decoder.decode(b"", final=True)
        self._pending.clear()
        if text:
            self._sink(self._name, text)
        self.ended.set_result(None)
