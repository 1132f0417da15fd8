"""Terminal output made into lines: colours are kept, everything else a sequence could do is not.

This is not a terminal emulator. Behind the filter that the operator's shell has too, it honours SGR colours
and attributes, newline, carriage return (rewriting the line), backspace, tab and CSI K, and passes over all
else. Columns are characters: a progress bar of wide characters is rewritten a little off; lines are correct.
"""

from __future__ import annotations

import re
from collections import deque

from rich.ansi import AnsiDecoder
from rich.segment import Segment
from rich.style import Style

from engine.core.text import clean
from engine.value import dataclass
from widgets.terminal.protocol import OutputFilter, Token

LINES_KEPT = 5_000
LINE_LIMIT = 4_000
"""Characters kept of a line; the rest of it is dropped."""
STRING_LIMIT = 65_536
"""Characters after which an unfinished OSC or DCS string is given up; else it could hide all that follows."""
TAB = 8

PLAIN = Style.null()
LEAD = Style(dim=True)
"""The look of a line's source before it."""
SHOWN = Style(conceal=False, blink=False, blink2=False)
"""Laid over looks, so that no text hides or blinks."""


@dataclass(frozen=True, slots=True)
class Span:
    """The look of the characters from `start` to before `end`."""

    start: int
    end: int
    look: Style


@dataclass(frozen=True, slots=True)
class AnsiLine:
    """A line of output without control characters."""

    text: str
    spans: tuple[Span, ...] = ()
    """In order and apart; characters outside them are plain."""
    kind: str = "out"


_SPECIAL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_C1 = {
    0x9B: "\x1b[",
    0x9D: "\x1b]",
    0x90: "\x1bP",
    0x98: "\x1bX",
    0x9E: "\x1b^",
    0x9F: "\x1b_",
    0x9C: "\x1b\\",
}
"""Controls of one character, as the sequences that they stand for."""


class AnsiStream:
    """Takes output in pieces of any size and gives lines; the last one may still grow."""

    def __init__(self, *, lines_kept: int = LINES_KEPT, line_limit: int = LINE_LIMIT) -> None:
        self._lines: deque[AnsiLine] = deque(maxlen=lines_kept)
        self._first = 0
        self._limit = line_limit
        self._filter, self._swallowed = OutputFilter(clusters=True), 0
        self._reset_line()
        self._decoder, self._look = AnsiDecoder(), PLAIN
        self._kind, self._source = "out", ""

    # Lines

    @property
    def first(self) -> int:
        """The absolute number of the oldest line kept."""
        return self._first

    @property
    def end(self) -> int:
        """The absolute number after the newest line, the unfinished one included."""
        return self._first + len(self._lines) + bool(self._length)

    @property
    def closed(self) -> int:
        """The absolute number after the newest finished line; lines before it never change."""
        return self._first + len(self._lines)

    def line(self, number: int) -> AnsiLine:
        """The line with this absolute number.

        Raises:
            IndexError: it is no longer kept, or not there yet.
        """
        at = number - self._first
        if at == len(self._lines) and self._length:
            return self._open_line()
        if at < 0:
            raise IndexError(f"line {number} is no longer kept; the oldest is {self._first}")
        return self._lines[at]

    # Input

    def feed(self, text: str, kind: str = "out", source: str = "") -> None:
        """Take some output; a change of kind or source begins a new line, and the source leads its lines."""
        if (kind, source) != (self._kind, self._source):
            self.end_line()
            self._kind, self._source = kind, source
        if self._filter.resting and not _SPECIAL.search(text):
            self._feed_plain(text)
            return
        for token in self._filter.tokens(text.translate(_C1)):
            self._take(token)
        self._swallowed = 0 if self._filter.resting else self._swallowed + len(text)
        if self._swallowed > STRING_LIMIT:
            self._forget_sequence()

    def end_line(self) -> None:
        """Finish the unfinished line and forget unfinished sequences and the look; a command ended here."""
        if self._length:
            self._close_line()
        self._decoder, self._look = AnsiDecoder(), PLAIN
        self._forget_sequence()

    def _forget_sequence(self) -> None:
        self._filter, self._swallowed = OutputFilter(clusters=True), 0

    def clear(self) -> None:
        """Forget all lines; numbers continue."""
        self.end_line()
        self._first += len(self._lines)
        self._lines.clear()

    def _feed_plain(self, text: str) -> None:
        head, *rest = text.split("\n")
        self._write(head)
        for part in rest:
            self._close_line()
            self._write(part)

    def _take(self, token: Token) -> None:
        body, final = token.text[2:-1], token.text[-1]
        if token.kind == "text":
            self._write(token.text)
        elif token.text in ("\n", "\r\n"):
            self._close_line()
        elif token.text == "\r":
            self._column = 0
        elif token.text == "\b":
            self._column = max(0, self._column - 1)
        elif token.text == "\t":
            self._write(" " * (TAB - self._column % TAB))
        elif token.text.startswith("\x1b[") and final == "m":
            self._decoder.decode_line(token.text)
            look = self._decoder.style
            self._look = look + SHOWN if look.conceal or look.blink or look.blink2 else look
        elif token.text.startswith("\x1b[") and final == "K" and body in ("", "0", "1", "2"):
            self._erase(body or "0")

    # The unfinished line

    def _reset_line(self) -> None:
        self._runs: list[tuple[str, Style]] = []
        self._length = 0
        self._column = 0

    def _write(self, text: str) -> None:
        if not text:
            return
        if not (text.isascii() and text.isprintable()):
            text = clean(text, limit=len(text) + 1)
        room = self._limit - self._column
        text = text[: max(0, room)]
        if not text:
            return
        if self._column == self._length:
            if self._runs and self._runs[-1][1] == self._look:
                self._runs[-1] = self._runs[-1][0] + text, self._look
            else:
                self._runs.append((text, self._look))
        else:
            before = self._cut(0, self._column)
            after = self._cut(self._column + len(text), self._length)
            self._runs = [*before, (text, self._look), *after]
        self._column += len(text)
        self._length = max(self._length, self._column)

    def _cut(self, start: int, end: int) -> list[tuple[str, Style]]:
        """The runs between two columns."""
        spans: list[tuple[str, Style]] = []
        at = 0
        for text, look in self._runs:
            part = text[max(0, start - at) : max(0, end - at)]
            if part:
                spans.append((part, look))
            at += len(text)
        return spans

    def _erase(self, what: str) -> None:
        """CSI K: to the end of the line, to its beginning, or all of it; the column stays."""
        if what == "0":
            self._runs = self._cut(0, self._column)
            self._length = min(self._length, self._column)
        elif what == "1":
            blank = min(self._column + 1, self._length)
            self._runs = [(" " * blank, PLAIN), *self._cut(blank, self._length)]
        else:
            self._runs = [(" " * self._column, PLAIN)] if self._column else []
            self._length = self._column

    def _open_line(self) -> AnsiLine:
        lead = f"{self._source}│ " if self._source else ""
        text = lead + "".join(run for run, _ in self._runs)
        spans = [Span(0, len(lead), LEAD)] if lead else []
        at = len(lead)
        for run, look in self._runs:
            if look:
                spans.append(Span(at, at + len(run), look))
            at += len(run)
        return AnsiLine(text, tuple(spans), self._kind)

    def _close_line(self) -> None:
        if len(self._lines) == self._lines.maxlen:
            self._first += 1
        self._lines.append(self._open_line())
        self._reset_line()


def segments(text: str, spans: tuple[Span, ...], base: Style) -> list[Segment]:
    """A text in its looks over a style."""
    pieces: list[Segment] = []
    at = 0
    for span in (*spans, Span(len(text), len(text), PLAIN)):
        pieces.append(Segment(text[at : span.start], base))
        pieces.append(Segment(text[span.start : span.end], base + span.look))
        at = span.end
    return [piece for piece in pieces if piece.text]
