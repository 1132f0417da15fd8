"""The driver of the operator's terminal, which may go away at any moment."""

from __future__ import annotations

import os
import re
import select
import signal
import termios
import threading
from codecs import getincrementaldecoder
from contextlib import suppress
from typing import Any, TextIO

from textual import constants
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.drivers.web_driver import WebDriver


class _Lossy:
    """A terminal's file; once writing to it fails, what is written is dropped.

    Textual's writer thread would end by the error, and the first full queue after it would hold the
    application for ever, with the workspace locked.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._gone = False

    def write(self, text: str) -> int:
        """Write, or drop."""
        if not self._gone:
            try:
                self._file.write(text)
            except OSError:
                self._gone = True
        return len(text)

    def flush(self) -> None:
        """Flush, where there is something to flush to."""
        if not self._gone:
            try:
                self._file.flush()
            except OSError:
                self._gone = True

    def fileno(self) -> int:
        """The terminal's file descriptor."""
        return self._file.fileno()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._file.isatty()


ESCAPE = "\x1b[27u"
"""The key in a spelling that is no beginning of another one."""
_PASTED = re.compile(r"\x1b\[201~")
_PART = re.compile(r"\x1b(\[(2(01?)?)?)?\Z")
_ESCAPES = re.compile(r"\x1b\[200~|\x1b(?=([^\[\]OP_\\]))", re.DOTALL)


class EscapeReader:
    """Tells the key escape from what begins like it, also where the next key comes right behind it.

    Textual's parser takes escape and a letter, typed fast or sent late, for one key that nothing is bound to.

    Args:
        alt: characters that are bound to be pressed with alt.
    """

    def __init__(self, alt: frozenset[str] = frozenset()) -> None:
        self._alt = alt
        self._pasting = False
        self.held = ""
        """An escape, or the end of what is pasted, of which it is not known yet what it is."""

    def read(self, text: str) -> str:
        """The text with each escape that is a key in its own spelling."""
        early, text, self.held = len(self.held), self.held + text, ""
        if self._pasting:
            if (end := _PASTED.search(text)) is None:
                part = _PART.search(text)
                self.held = part[0] if part else ""
                return text[: len(text) - len(self.held)]
            self._pasting = False
            return text[: end.end()] + self.read(text[end.end() :])
        read, at = "", 0
        for match in _ESCAPES.finditer(text):
            if not match[1]:
                self._pasting = True
                return read + text[at : match.end()] + self.read(text[match.end() :])
            known = "\x1b" + match[1] in ANSI_SEQUENCES_KEYS or match[1] in self._alt
            if not known or match[1] == "\x1b" or match.start() < early:
                read, at = read + text[at : match.start()] + ESCAPE, match.end()
        read += text[at:]
        self.held = "\x1b" if read.endswith("\x1b") else ""
        return read.removesuffix("\x1b")

    def wait_over(self) -> str:
        """Nothing came behind an escape: it was the key."""
        held, self.held = self.held, ""
        return ESCAPE if held and not self._pasting else held


class TerminalDriver(LinuxDriver):
    """Textual's driver, which survives the loss of the terminal long enough to close in good order."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._file: Any = _Lossy(self._file)
        self._state: list[Any] = []
        """How the terminal is while the screen is there."""
        self._over = -1
        """Tells the thread that waits for the terminal's end that the screen is not there any more."""
        self._waits = threading.Thread()

    def start_application_mode(self) -> None:
        """Begin, and see the end of a terminal that does not say it by SIGHUP, as not its session leader."""
        super().start_application_mode()  # type: ignore[no-untyped-call]
        with suppress(termios.error):
            self._state = termios.tcgetattr(self.fileno)
        self._over = os.eventfd(0)
        self._waits = threading.Thread(target=self._await_hangup, name="hangup", daemon=True)
        self._waits.start()

    def stop_application_mode(self) -> None:
        """End; a terminal that a shell has set anew since, as the launcher was killed, is left as it is."""
        if self._over >= 0:
            os.eventfd_write(self._over, 1)
            self._waits.join()  # as long as it waits the terminal is in use, even where it was closed
            os.close(self._over)
            self._over = -1
        with suppress(termios.error):
            if termios.tcgetattr(self.fileno) != self._state:
                self.attrs_before = None
        super().stop_application_mode()

    def suspend_application_mode(self) -> None:
        """Leave the terminal to others for a time: unlike at the end, this program takes it again."""
        self.stop_application_mode()
        super().close()

    def close(self) -> None:
        """End for good: a program that goes on without its screen takes no terminal when it is continued."""
        for number in (signal.SIGTSTP, signal.SIGCONT):
            signal.signal(number, signal.SIG_DFL)
        super().close()

    def run_input_thread(self) -> None:
        """Read what is typed until the screen is taken down."""
        parser, escapes = (
            XTermParser(self._debug),
            EscapeReader(getattr(self._app, "alt_characters", frozenset())),
        )
        decode = getincrementaldecoder("utf-8")("replace").decode
        while not self.exit_event.is_set():
            if select.select([self.fileno], [], [], constants.ESCAPE_DELAY)[0]:
                if not (data := os.read(self.fileno, 4096)):
                    break
                text = escapes.read(decode(data))
            else:
                text = escapes.wait_over()
            for event in parser.feed(text) if text else parser.tick():
                self.process_message(event)

    def _await_hangup(self) -> None:
        """Wait in a thread for the terminal's end; Textual would read its end again and again."""
        _await_end(self.fileno, signal.SIGHUP, self._over)


class BrowserDriver(WebDriver):
    """Textual's driver of a browser's page, which ends with the program that serves the page."""

    def start_application_mode(self) -> None:
        """Begin, and see the other end of standard input go."""
        super().start_application_mode()
        threading.Thread(target=_await_end, args=(0, signal.SIGTERM), name="hangup", daemon=True).start()


def _await_end(file: int, number: signal.Signals, over: int = -1) -> None:
    """Wait until the other end of a file has gone, then send this program a signal; not once `over` ends."""
    end = select.poll()
    end.register(file, 0)
    if over >= 0:
        end.register(over, select.POLLIN)
    if over not in dict(end.poll()):
        os.kill(os.getpid(), number)
