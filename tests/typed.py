"""A cockpit in a pseudo-terminal whose screen is read as text, to type into it what a page shows."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pyte

from tests.patience import PATIENCE_S
from tests.pseudo_terminal import Cockpit

COLUMNS, LINES = 120, 36
REFUSED = "✗ error:"
UNKNOWN = re.compile(rb"\x1b(?:\[[<>=][0-9;]*[a-z]|\[\?[0-9;]*\$p|[P_][^\x1b]*\x1b\\)")
"""What pyte would print instead of ignoring it."""
KEYS = {
    **dict(space=" ", tab="\t", esc="\x1b[27u", home="\x1b[H", end="\x1b[F", f1="\x1bOP"),
    "⏎": "\r",
    "↑": "\x1b[A",
    "↓": "\x1b[B",
    "del": "\x1b[3~",
    "ctrl+]": "\x1d",
    **{name: f"\x1b[{code}~" for name, code in dict(ins=2, pgup=5, pgdn=6, f6=17, f7=18, f8=19).items()},
    **{f"ctrl+{chr(code + 96)}": chr(code) for code in range(1, 27)},
}
"""What a terminal sends, by the names that the guide has; a single character sends itself."""
STEADY_S = 0.1
"""A screen that has been the same for so long shows what a key has led to, unless more is waited for."""


class TypedCockpit(Cockpit):
    """The program with the screen that a person would read."""

    def __init__(self, workspace: Path, *arguments: str) -> None:
        self._shown = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._shown)
        self._rest = b""
        self._rows = [""] * LINES
        super().__init__(workspace, *arguments, columns=COLUMNS, lines=LINES)

    def take(self, piece: bytes) -> None:
        """Draw what came; a sequence that is cut off waits for its end."""
        text = self._rest + piece
        cut = text.rfind(b"\x1b", -64)
        self._rest = text[cut:] if cut >= 0 and not re.search(rb"[A-Za-z~\\]", text[cut + 2 :]) else b""
        self._stream.feed(UNKNOWN.sub(b"", text[: len(text) - len(self._rest)]))

    @property
    def text(self) -> str:
        """The screen as text."""
        with self._came:
            for row in self._shown.dirty:  # pyte's own `display` draws all rows each time, which is slow
                line = self._shown.buffer[row]
                self._rows[row] = "".join(line[column].data for column in range(COLUMNS))
            self._shown.dirty.clear()
            return "\n".join(self._rows)

    def until(self, holds: Callable[[str], object], what: str) -> str:
        """Wait until something holds of the screen; the screen.

        Raises:
            TimeoutError: it never does.
        """
        end = time.monotonic() + PATIENCE_S
        while not holds(text := self.text):
            if time.monotonic() > end or self.ended:
                raise TimeoutError(f"never: {what}\n{text}")
            with self._came:
                self._came.wait(STEADY_S)
        return text

    def steady(self) -> str:
        """Wait until the screen is the same for a moment; the screen."""
        end, text, since = time.monotonic() + PATIENCE_S, self.text, time.monotonic()
        while time.monotonic() < end and time.monotonic() - since < STEADY_S:
            with self._came:
                self._came.wait(STEADY_S)
            if (now := self.text) != text:
                text, since = now, time.monotonic()
        return text

    def changes(self, keys: str) -> str:
        """Type, and wait until the screen is another one and steady; the screen.

        Raises:
            TimeoutError: nothing changed.
        """
        before = self.text, self._cursor
        self.press(keys.encode())
        self.until(lambda text: (text, self._cursor) != before, f"{keys!r} does something")
        return self.steady()

    @property
    def _cursor(self) -> tuple[int, int]:
        return self._shown.cursor.x, self._shown.cursor.y
