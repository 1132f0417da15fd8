"""Capturing a program's output: its head and tail are kept, the rest is counted.

What a program prints, brought to the journal in bounded pieces.
"""

from __future__ import annotations

import asyncio
import codecs
from collections import deque
from collections.abc import Callable

from engine.sandbox.policy import SandboxPolicy

_FLUSH_S = 0.03
_PORTIONS = 64
"""All that a stream may pass on passes in so many portions, or more smaller ones: in about two seconds."""


class Capture(asyncio.Protocol):
    """Receives one stream in bounded memory and passes it on live in portions.

    Args:
        name: `stdout` or `stderr`, as the sink is told.
        policy: how much is kept and passed on, and after how much `overflow` is called, once.
        sink: called on the event loop, at most every 30 ms.
        overflow: ends the program.
    """

    def __init__(
        self, name: str, policy: SandboxPolicy, sink: Callable[[str, str], None], overflow: Callable[[], None]
    ) -> None:
        self._name = name
        self._head_size, self._tail_size = policy.output_head_bytes, policy.output_tail_bytes
        self._stream_left, self._portion = policy.streamed_bytes, max(1, policy.streamed_bytes // _PORTIONS)
        self._limit = policy.output_bytes
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
        if answer := "".join(portion):
            self._sink(self._name, answer)

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


PERIOD_S = 0.05
"""Seconds between two pieces of one stream, at least."""
PIECE_LIMIT = 64 * 1024
"""Characters of one piece; of more only the end is kept."""
TOTAL_LIMIT = 4 * 1024 * 1024
"""Characters in all after which pieces become short."""
PIECE_LIMIT_AFTER = 4 * 1024


class OutputPump:
    """Collects output and passes it on in pieces: `(stream, text, skipped)`.

    A command that prints without end costs the journal at most about 80 KiB a second and stream after its
    first 4 MiB; what is left out is counted in `skipped`, never dropped silently.

    Args:
        emit: takes a piece; called on the event loop.
        period_s: seconds between two pieces of one stream, at least.
    """

    def __init__(self, emit: Callable[[str, str, int], None], period_s: float = PERIOD_S) -> None:
        self._emit = emit
        self._period_s = period_s
        self._waiting: dict[str, list[str]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._total = 0

    def __call__(self, stream: str, text: str) -> None:
        """Take a piece of output; called in the event loop."""
        if not text:
            return
        self._waiting.setdefault(stream, []).append(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._period_s, self._due)

    def _due(self) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> None:
        """Pass on what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, {}
        limit = PIECE_LIMIT if self._total < TOTAL_LIMIT else PIECE_LIMIT_AFTER
        for stream, texts in waiting.items():
            text = "".join(texts)
            skipped = max(0, len(text) - limit)
            self._total += len(text)
            self._emit(stream, text[skipped:], skipped)
