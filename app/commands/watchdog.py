"""Two threads beside the event loop: one names what holds it, the other ends the program when it must end.

`LoopWatch` looks every few hundredths of a second whether the loop's thread waits for events. Where it does
not, the loop is asked for a sign; what has kept the loop from giving one for a tenth of a second is noted in
the workspace's `loop.log`, which `pilothouse doctor` reads. A loop that waits is never woken.

`EndGuard` gets each signal as soon as the loop does, whatever the loop is doing. Where the program has not
ended some seconds after it was asked to, it is ended by force: as if by SIGKILL, which journals and jails are
made for.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import termios
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from engine.core.store.places import open_plain
from engine.core.store.port import DATA_DIRECTORY
from engine.core.text import clean_line
from engine.value import dataclass

LOOP_LOG = "loop.log"
LOG_BYTES = 256 * 1024
"""From which size on the log is begun anew."""
HELD_S = 0.1
LOOK_S = 0.03
END_S = 4.5
"""Seconds from the first signal that asks the program to end until it is ended by force."""
ASKS = (signal.SIGTERM, signal.SIGHUP)
_FRAMES = 6
_TOP = Path(__file__).parents[2]
_OURS = tuple(f"{_TOP / package}{os.sep}" for package in ("app", "engine", "widgets"))
_RESET = b"\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?2004l\x1b[<u\x1b[?25h\x1b[?1049l"


@dataclass(frozen=True, slots=True)
class Held:
    """What has held the loop."""

    at: str
    """ISO 8601 UTC."""
    seconds: float
    processor_s: float
    """What the loop's thread computed; much less where it waited, or other programs had the machine."""
    where: tuple[str, ...]
    """Functions with their lines, the innermost first; of ours from the first one on."""

    @property
    def words(self) -> str:
        """In a line."""
        computed = f", {self.processor_s:.2f} s of it computing"
        return clean_line(f"{self.seconds:.2f} s{computed}, in {' < '.join(self.where)}", limit=500)


HELD_KEPT = 100


class LoopWatch:
    """Watches the running loop, from `begin` to `end` or as `with`.

    Args:
        workspace: in whose data directory the log is.
    """

    def __init__(self, workspace: Path) -> None:
        self._log = workspace / DATA_DIRECTORY / LOOP_LOG
        self.held: deque[Held] = deque(maxlen=HELD_KEPT)
        """What has held the loop last."""
        self._over = threading.Event()

    def begin(self) -> None:
        """Watch the loop of this thread."""
        self._loop, self._ident = asyncio.get_running_loop(), threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._ident)
        threading.Thread(target=self._watch, name="loop watch", daemon=True).start()

    def end(self) -> None:
        """Watch no more."""
        self._over.set()

    def __enter__(self) -> LoopWatch:
        self.begin()
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            if (frame := self._frame()) is not None and not _waits(frame):
                del frame
                self._follow()

    def _frame(self) -> FrameType | None:
        return sys._current_frames().get(self._ident)

    def _follow(self) -> None:
        """Wait for a sign of the loop; note what it does where that takes long."""
        sign = threading.Event()
        began, spent = time.monotonic(), time.clock_gettime(self._clock)
        with suppress(RuntimeError):  # it has closed
            self._loop.call_soon_threadsafe(sign.set)
        where: tuple[str, ...] = ()
        if sign.wait(HELD_S - LOOK_S):
            return
        while not (sign.is_set() or self._over.is_set()):
            frame = self._frame()
            where = where or (_places(frame) if frame is not None else ())
            del frame
            sign.wait(HELD_S)
        seconds = time.monotonic() - began
        computed = time.clock_gettime(self._clock) - spent
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._note(Held(at, round(seconds, 3), round(computed, 3), where))

    def _note(self, held: Held) -> None:
        self.held.append(held)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        line = json.dumps([held.at, held.seconds, held.processor_s, *held.where]) + "\n"
        with suppress(OSError):
            if self._log.parent.is_symlink():
                return  # it watches before it is known whether the link is trusted
            end = os.open(self._log, flags, 0o600)
            try:
                if os.fstat(end).st_size > LOG_BYTES:
                    os.ftruncate(end, 0)
                os.write(end, line.encode())
            finally:
                os.close(end)


def _waits(frame: FrameType) -> bool:
    """Whether a thread waits for events in its selector."""
    return frame.f_code.co_name == "select" and frame.f_code.co_filename.endswith("selectors.py")


def _places(frame: FrameType | None) -> tuple[str, ...]:
    """The functions that a thread is in."""
    places: list[str] = []
    while frame is not None and len(places) < _FRAMES:
        file = frame.f_code.co_filename
        ours = file.startswith(_OURS)
        if ours or not places:
            short = file.removeprefix(f"{_TOP}{os.sep}") if ours else Path(file).name
            places.append(f"{frame.f_code.co_qualname} ({short}:{frame.f_lineno})")
        frame = frame.f_back
    return tuple(places)


def read_held(workspace: Path) -> list[Held]:
    """What has held the loops of a workspace, the oldest first; lines that are none are passed over."""
    held: list[Held] = []
    log = workspace / DATA_DIRECTORY / LOOP_LOG
    with suppress(OSError), open_plain(log, links=False) as file:
        for line in file.read(2 * LOG_BYTES).splitlines():
            with suppress(ValueError, TypeError, RecursionError):
                at, seconds, computed, *where = json.loads(line)
                held.append(Held(str(at), float(seconds), float(computed), tuple(map(str, where))))
    return held


class EndGuard:
    """Ends the program by force where it does not end by itself; installed behind the loop's own handlers.

    Args:
        seconds: that it has.
        end: ends the program with an exit code.
    """

    def __init__(self, seconds: float = END_S, end: Callable[[int], object] = os._exit) -> None:
        self._seconds, self._end = seconds, end
        self.asks: set[int] = {*ASKS}
        """Signals that ask the program to end."""
        self.terminal: list[Any] | None = None
        """How the terminal is left, as `termios.tcgetattr` gave it; None leaves it as it is."""
        self._hear, self._tell = socket.socketpair()
        self._tell.setblocking(False)
        self._before = signal.set_wakeup_fd(self._tell.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._watch, name="end guard", daemon=True).start()

    def close(self) -> None:
        """Watch no more; where the program was asked to end, that stands."""
        with suppress(ValueError):
            now = signal.set_wakeup_fd(-1)
            if now not in (-1, self._tell.fileno()):
                signal.set_wakeup_fd(now)  # somebody else's since
            elif now != -1 and self._before != -1:
                with suppress(OSError):
                    signal.set_wakeup_fd(self._before)
        self._tell.close()

    def ask(self, number: int) -> None:
        """Have the program ended, as by this signal."""
        self.asks.add(number)
        with suppress(OSError):
            self._tell.send(bytes((number,)))

    def _watch(self) -> None:
        asked = 0
        until = 0.0
        while True:
            if asked:
                self._hear.settimeout(max(0.001, until - time.monotonic()))
            try:
                numbers = self._hear.recv(4096)
            except TimeoutError:
                break
            if not numbers:
                if not asked:
                    self._hear.close()
                    return
                time.sleep(max(0.0, until - time.monotonic()))
                break
            with suppress(OSError):  # full: the loop has enough to read
                os.write(self._before, numbers)
            number = next((number for number in numbers if number in self.asks), 0)
            if number and not asked:
                asked, until = number, time.monotonic() + self._seconds
        if self.terminal is not None:
            with suppress(termios.error, OSError):
                os.write(1, _RESET)
                termios.tcsetattr(0, termios.TCSANOW, self.terminal)
        self._end(128 + asked)


@contextmanager
def ending_on(numbers: Sequence[int], then: Callable[[int], object]) -> Iterator[None]:
    """Signals call a function while the block runs; SIGTERM and SIGHUP end the program in any case."""
    loop = asyncio.get_running_loop()
    guard: EndGuard | None = None
    try:
        for number in numbers:
            loop.add_signal_handler(number, then, number)
        guard = EndGuard()
    except (NotImplementedError, RuntimeError, ValueError):
        pass  # not the main thread: its signals are the host's
    try:
        yield
    finally:
        if guard is not None:
            guard.close()
        for number in numbers:
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(number)
