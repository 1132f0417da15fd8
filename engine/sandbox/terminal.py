"""The operator's terminal: a pty whose other end is the controlling terminal of a shell in the jail.

What is printed goes to whoever follows, live, and to the action's record. What is typed is recorded too, but
never what is typed while the terminal's echo is off: a pty echoes when it receives, so the flag at the time
of writing says whether the operator could see what they typed.
"""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import os
import signal
import struct
import termios
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable

from engine.core.ports import OutputSink, SessionObserver

STREAM = "terminal"
"""Name of the stream under which an action's output holds what its terminal showed, sequences and all."""
ROWS, COLUMNS = 24, 80
KEPT = 256 * 1024
"""Bytes of what was printed last that a new follower gets."""
TYPED_PERIOD_S = 0.05
"""Seconds between two records of what was typed, at least."""
TYPED_LIMIT = 16 * 1024
"""Characters of one record of what was typed; of a larger paste only the start is kept."""
WAITING_LIMIT = 8 * 1024 * 1024
"""Bytes that may wait for a program that does not read; what would exceed it is not taken."""
_PIECE = 4096
_TURN, _REST_S = 32 * 1024, 0.02
"""Bytes read before the other tasks of the loop get a rest: a flood costs at most 1.6 MB/s."""
_LAST_READS = 64
"""Reads of what was printed last; without a jail a stranger could keep printing."""
_SIDE_LIMIT = 1000
_TIOCGSID, _IUTF8 = 0x5429, 0o40000
"""Linux: the terminal's session; input is UTF-8."""


class OperatorTerminal(ABC):
    """A terminal in the hands of the operator, as it is shown and typed into."""

    def __init__(self) -> None:
        self.open = True
        """False once the shell has ended, or the connection to it."""
        self._printed = bytearray()
        self._sinks: list[Callable[[bytes], None]] = []

    def follow(self, sink: Callable[[bytes], None]) -> Callable[[], None]:
        """Give what was printed so far, the newest of it, then all that comes; returns how to end that.

        An empty piece says that the shell has ended.
        """
        if self._printed:
            sink(bytes(self._printed[-KEPT:]))
        self._sinks.append(sink)

        def leave() -> None:
            if sink in self._sinks:
                self._sinks.remove(sink)

        return leave

    def _show(self, data: bytes) -> None:
        self._printed += data
        if len(self._printed) > 2 * KEPT:
            del self._printed[:-KEPT]
        for sink in tuple(self._sinks):
            sink(data)

    def write(self, data: bytes) -> None:
        """Pass on what the operator typed or pasted."""
        self._send(data, typed=True)

    def answer(self, data: bytes) -> None:
        """Pass on what the terminal emulator replies to the program; it is not recorded."""
        self._send(data, typed=False)

    @abstractmethod
    def _send(self, data: bytes, *, typed: bool) -> None:
        """Pass on what was typed or replied."""

    @abstractmethod
    def resize(self, rows: int, columns: int) -> None:
        """Tell the program how large the screen is."""


class Terminal(OperatorTerminal):
    """A pseudo-terminal; lives on the event loop.

    Args:
        observer: records what is typed, and sizes.
        action: the action that the terminal belongs to.
        output: receives what is printed, as text of the stream `terminal`.

    Raises:
        OSError: there is no pseudo-terminal to be had.
    """

    def __init__(self, observer: SessionObserver, action: str, output: OutputSink) -> None:
        super().__init__()
        self._output = output
        self._loop = asyncio.get_running_loop()
        self._master, self.slave = os.openpty()
        os.set_blocking(self._master, False)
        attributes = termios.tcgetattr(self.slave)
        attributes[0] |= _IUTF8  # so that backspace takes a whole letter away
        termios.tcsetattr(self.slave, termios.TCSANOW, attributes)
        self._shown = codecs.getincrementaldecoder("utf-8")("replace")
        self._left, self._rest = _TURN, self._loop.call_soon(self._read_on)
        self._waiting: deque[tuple[bytes, bool]] = deque()
        self._size = (0, 0)
        self._record = _TypedRecord(observer, action)
        self.resize(ROWS, COLUMNS)

    # Towards the program

    def resize(self, rows: int, columns: int) -> None:
        """Tell the program how large the screen is; sizes out of 1 to 1000 are brought into it."""
        size = (min(max(rows, 1), _SIDE_LIMIT), min(max(columns, 1), _SIDE_LIMIT))
        if self.open and size != self._size:
            self._size = size
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            self._record.resized(*size)

    def hang_up(self) -> None:
        """Ask the shell and what runs in its foreground to end, as a terminal that goes away does."""
        leader = self.leader
        foreground = os.tcgetpgrp(self._master) if leader else 0
        for number in (signal.SIGHUP, signal.SIGCONT):
            _send_signal(os.killpg, foreground, number)
            if leader != foreground:  # asked twice, a shell would not end in good order
                _send_signal(os.kill, leader, number)

    @property
    def leader(self) -> int:
        """Process id of the shell; 0 when it has no terminal yet, or no longer."""
        answer = bytearray(4)
        if not self.open:
            return 0
        try:
            fcntl.ioctl(self._master, _TIOCGSID, answer)
        except OSError:
            return 0
        return int.from_bytes(answer, "little")

    def _send(self, data: bytes, *, typed: bool) -> None:
        if not self.open or not data:
            return
        if self._waiting and typed and self._interrupts(data):
            self._waiting.clear()
            termios.tcflush(self._master, termios.TCOFLUSH)  # what is on its way
            termios.tcflush(self.slave, termios.TCIFLUSH)  # what has arrived
        if len(self._waiting) * _PIECE + len(data) > WAITING_LIMIT:
            self._show(b"\a")  # as the kernel rings when a line is full
            return
        self._waiting.extend((data[at : at + _PIECE], typed) for at in range(0, len(data), _PIECE))
        self._write_on()

    def _interrupts(self, data: bytes) -> bool:
        """Whether this is a key that must not wait behind a paste that nobody reads."""
        flags, characters = self._attributes()
        ending = [characters[at] for at in (termios.VINTR, termios.VQUIT, termios.VSUSP)] if flags else []
        return bool(flags & termios.ISIG) and data in ending

    def _attributes(self) -> tuple[int, list[bytes]]:
        """The terminal's local flags and control characters."""
        try:
            attributes = termios.tcgetattr(self._master)
        except termios.error:
            return 0, []
        return attributes[3], attributes[6]

    def _echoes(self) -> bool:
        return bool(self._attributes()[0] & termios.ECHO)

    def _write_on(self) -> None:
        while self._waiting:
            data, typed = self._waiting[0]
            echoed = self._echoes()
            try:
                taken = os.write(self._master, data)
            except BlockingIOError:
                taken = 0
            if typed and taken:
                # The program may have switched the echo off in this very moment.
                self._record.typed(data[:taken], shown=echoed and self._echoes())
            if taken < len(data):
                self._waiting[0] = (data[taken:], typed)
                self._loop.add_writer(self._master, self._write_on)
                return
            self._waiting.popleft()
        self._loop.remove_writer(self._master)

    # From the program

    def _read_on(self) -> None:
        self._left = _TURN
        self._loop.add_reader(self._master, self._readable)

    def _readable(self) -> None:
        data = self._read()
        self._left -= len(data)
        if self._left <= 0 or not data:
            self._loop.remove_reader(self._master)
            self._rest = self._loop.call_later(_REST_S, self._read_on)

    def _read(self) -> bytes:
        """Take and pass on what is there; empty when nothing is."""
        try:
            data = os.read(self._master, _TURN)
        except OSError:  # nothing yet, or the terminal was hung up
            return b""
        self._output(STREAM, self._shown.decode(data))
        self._show(data)
        return data

    def close(self) -> None:
        """Take what is still there, record it, and give the terminal up; harmless when done twice."""
        if not self.open:
            return
        for _ in range(_LAST_READS):
            if not self._read():
                break
        self.open = False
        self._output(STREAM, self._shown.decode(b"", final=True))
        self._record.flush()
        self._rest.cancel()
        self._loop.remove_reader(self._master)
        self._loop.remove_writer(self._master)
        self._waiting.clear()
        self._show(b"")
        self._sinks.clear()
        os.close(self._master)
        os.close(self.slave)


class _TypedRecord:
    """What was typed, and sizes, brought to the observer in batches."""

    def __init__(self, observer: SessionObserver, action: str) -> None:
        self._observer, self._action = observer, action
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text, self._hidden, self._told = "", False, False
        self._size: tuple[int, int] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def typed(self, data: bytes, *, shown: bool) -> None:
        """Note keys; those that were not shown leave nothing but that there were some."""
        if shown:
            self._text += self._decoder.decode(data)
        else:
            self._decoder.reset()
            self._hidden = True
        self._soon()

    def resized(self, rows: int, columns: int) -> None:
        """Note a size; of several in a short time the last counts."""
        self._size = (rows, columns)
        self._soon()

    def _soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TYPED_PERIOD_S, self.flush)

    def flush(self) -> None:
        """Pass on what was noted."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        text, hidden, size = self._text, self._hidden, self._size
        self._text, self._hidden, self._size = "", False, None
        if size is not None:
            self._observer.resized(self._action, *size)
        if len(text) > TYPED_LIMIT:
            text = f"{text[:TYPED_LIMIT]}… ({len(text):,} characters)"
        if text:
            self._observer.typed(self._action, text)
            self._told = False
        if hidden and not self._told:  # told once in a row: one for each key would tell how many there were
            self._observer.typed(self._action, None)
            self._told = True


def _send_signal(send: Callable[[int, int], None], target: int, number: int) -> None:
    if target > 1:  # 0 would be the cockpit's own group
        try:
            send(target, number)
        except (ProcessLookupError, PermissionError):
            return
