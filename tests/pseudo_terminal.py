"""A cockpit on a pseudo-terminal whose output is read all the time, so that it never waits for a reader."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

from tests.benchmarks.cockpit import Screen, pilothouse
from tests.patience import PATIENCE_S

KEPT = 1 << 20
"""Bytes of output that are looked through."""
KEY_S = 0.15
"""Between keys of which one may open or close what the next one goes to."""
ESCAPE = b"\x1b[27u"
"""Escape as the kitty keyboard protocol has it: a bare one and the next key may be taken for a single key."""
LOOK_S = 0.2
"""How often the reader looks whether it is to end."""
ECHOED = 40
"""Characters at the end of a line by which it is known that the bar has it."""
LOST_S = 5.0
"""When a key counts as lost."""


class Cockpit:
    """The program in a process of its own: keys in, output out.

    Args:
        workspace: its directory.
        arguments: behind those that name it.
        columns: of the terminal.
        lines: of the terminal.
    """

    def __init__(self, workspace: Path, *arguments: str, columns: int = 100, lines: int = 30) -> None:
        command = pilothouse("--workspace", str(workspace), *arguments)
        self._screen = Screen(command, columns=columns, lines=lines)
        self.ended = False
        """Whether its terminal was closed."""
        self._seen = b""
        self._came = threading.Condition()
        self._status: int | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The cockpit's process, for which the one that was started holds the terminal."""
        return self._screen.cockpit

    @property
    def launcher(self) -> int:
        """The process that was started."""
        return self._screen.pid

    def _read(self) -> None:
        while not self.ended:
            if not select.select([self._screen.fd], [], [], LOOK_S)[0]:
                continue
            try:
                piece = os.read(self._screen.fd, 1 << 16)
            except OSError:
                piece = b""
            with self._came:
                self.ended = self.ended or not piece
                self._seen = (self._seen + piece)[-KEPT:]
                self.take(piece)
                self._came.notify_all()

    def take(self, piece: bytes) -> None:
        """Do something with what came."""

    def shows(self, *texts: bytes, limit_s: float = PATIENCE_S) -> float:
        """Wait until all texts were printed since the last key; the moment when they were."""
        with self._came:
            self._came.wait_for(lambda: self.ended or all(text in self._seen for text in texts), limit_s)
            if not all(text in self._seen for text in texts):
                raise TimeoutError(f"{texts!r} did not appear; the last output: {self._seen[-2000:]!r}")
            return time.monotonic()

    def press(self, keys: bytes) -> float:
        """Type keys, with what came before them forgotten; the moment of doing so."""
        with self._came:
            self._seen = b""
        now = time.monotonic()
        os.write(self._screen.fd, keys)
        return now

    def enter(self, line: str) -> None:
        """Type a line into the command bar and leave it."""
        self._type(line)
        self.press(b"\r")
        time.sleep(2 * KEY_S)
        os.write(self._screen.fd, ESCAPE)  # and what the line has shown is not forgotten
        time.sleep(KEY_S)

    def latency_s(self, word: str) -> tuple[float, int]:
        """From typing a word into the command bar to its being on the screen, and how often that was in vain.

        It is where a dialog opens meanwhile, which takes the keys.
        """
        waited, lost = self._type(word)
        self.press(b"\x15" + ESCAPE)
        time.sleep(KEY_S)
        return waited, lost

    def _type(self, text: str) -> tuple[float, int]:
        """Type into the command bar until that shows the text; see `latency_s`."""
        for lost in range(int(PATIENCE_S / LOST_S)):
            self._go_to_bar(hindered=lost > 0)
            began = self.press(text.encode())
            with suppress(TimeoutError):
                return self.shows(text.encode()[-ECHOED:], limit_s=LOST_S) - began, lost
        raise TimeoutError(f"no key is answered; the last output: {self._seen[-2000:]!r}")

    def _go_to_bar(self, *, hindered: bool) -> None:
        # A dialog that opens meanwhile may have taken a letter for its key that takes the shell. Else nothing
        # is to be closed: an escape that waits while the cockpit opens would leave the bar behind the colon.
        for keys in (*((b"\x1d", ESCAPE) if hindered else ()), b":\x15"):
            self.press(keys)
            time.sleep(KEY_S)

    def close_terminal(self) -> None:
        """Close the terminal under the cockpit; `end` still waits for the started process."""
        self.ended = True
        self._reader.join(PATIENCE_S)  # a terminal that somebody reads is not closed
        os.close(self._screen.fd)
        self._screen.fd = -1

    def end(self, number: int = signal.SIGKILL) -> int:
        """Send a signal and wait for the end; its exit code, or the negative number of the signal."""
        if self._status is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)
            if number == signal.SIGKILL:
                with suppress(ProcessLookupError):
                    os.kill(self.launcher, signal.SIGCONT)  # it stops with a cockpit that was stopped
            end = time.monotonic() + PATIENCE_S
            while not (waited := os.waitpid(self.launcher, os.WNOHANG))[0]:
                if time.monotonic() > end:
                    os.kill(self.pid, signal.SIGKILL)
                time.sleep(0.01)
            self._status = os.waitstatus_to_exitcode(waited[1])
            self._reader.join(PATIENCE_S)
            if self._screen.fd >= 0:
                os.close(self._screen.fd)
        return self._status
