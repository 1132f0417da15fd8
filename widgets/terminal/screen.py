"""The screen of a child in a pseudo-terminal: what an emulator is, and the one that is used.

The emulator is the library bittty, behind the filter of `protocol`: it gets nothing but text and
screen controls, and it is plugged into nothing, so that it can answer and change nothing.
Questions that may be answered are answered here, with fixed words and numbers only.

Rows of a terminal: from the emulator's cells to text with looks, and on to what the pane draws.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from engine.value import dataclass
from widgets.terminal.ansi_stream import Span, segments
from widgets.terminal.protocol import OutputFilter, Token

CLUSTER_LIMIT = 16
"""Code points drawn in one cell; a cell with more shows a replacement character."""

_STYLE, _CHAR = itemgetter(0), itemgetter(1)


@dataclass(frozen=True, slots=True)
class TerminalRow:
    """A row of cells, without the blanks at its end."""

    text: str
    """Free of controls; it takes as many cells as the row's columns do, or fewer by trailing blanks."""
    spans: tuple[Span, ...] = ()
    """In order and apart; characters outside them are plain."""
    wrapped: bool = False
    """The line continues in the next row."""


def row_of(cells: Sequence[tuple[Any, str]], wrapped: bool) -> TerminalRow:
    """A row of the library's cells.

    Args:
        cells: style and character each; the second cell of a wide character holds the empty string.
        wrapped: the line continues in the next row.
    """
    chars: Sequence[str] = list(map(_CHAR, cells))
    if not "".join(chars).isascii():
        chars = _fitted(chars)
    text, at = "", 0
    spans: list[Span] = []
    # Styles are shared objects; comparing them by value, cell by cell, would be most of the work.
    for _, group in groupby(map(id, map(_STYLE, cells))):
        count = len(list(group))
        start, look = len(text), _look(cells[at][0])
        text += "".join(chars[at : at + count])
        at += count
        if not look or len(text) == start:
            continue
        if spans and spans[-1].end == start and spans[-1].look == look:
            start = spans.pop().start
        spans.append(Span(start, len(text), look))
    blank = spans[-1].end if spans else 0
    text = text[:blank] + text[blank:].rstrip(" ")
    return TerminalRow(text, tuple(spans), wrapped)


def _fitted(chars: Sequence[str]) -> list[str]:
    """The characters of a row's cells, each as wide on the real screen as on this one.

    The emulator's table of widths and Textual's differ for a few characters, and neighbours may join
    that should not; a cell of another width would shift all that is to its right.

    Args:
        chars: one a cell; the second cell of a wide character holds the empty string.
    """
    widths = [0 if not char else 1 + (chars[at + 1 : at + 2] == [""]) for at, char in enumerate(chars)]
    drawn = [
        char
        if char.isascii() or (len(char) <= CLUSTER_LIMIT and cell_len(char) == width)
        else "�".ljust(width)
        for char, width in zip(chars, widths, strict=True)
    ]
    if cell_len("".join(drawn)) == len(chars):
        return drawn
    return [char if char.isascii() else "�".ljust(width) for char, width in zip(chars, widths, strict=True)]


@lru_cache(4_096)
def _look(style: Any) -> Style:
    """The library's style as Rich's; hidden text is shown, links are not kept."""
    names = ("bold", "dim", "italic", "underline", "reverse")
    flags: dict[str, Any] = {name: bool(getattr(style, name)) or None for name in names}
    return Style(color=_color(style.fg), bgcolor=_color(style.bg), **flags)


def _color(color: Any) -> Color | None:
    if color is None or color.mode == "default" or color.value is None:
        return None
    if color.mode == "indexed":
        return Color.from_ansi(max(0, min(int(color.value), 255)))
    return Color.from_rgb(*(max(0, min(int(part), 255)) for part in color.value))


def row_strip(row: TerminalRow, base: Style) -> Strip:
    """The row in its colours over the pane's own."""
    return Strip(segments(row.text, row.spans, base))


def with_cursor(strip: Strip, column: int, *, block: bool) -> Strip:
    """The strip with the cursor drawn on it: the cell turned, or only underlined.

    Args:
        strip: a row at least `column + 1` cells wide.
        column: the cursor's cell; where a wide character begins, both its cells are marked.
        block: turned.
    """
    wide = strip.crop(column, column + 1).text == " " != strip.crop(column, column + 2).text[:1]
    end = column + 1 + wide
    turned = any(segment.style and segment.style.reverse for segment in strip.crop(column, end))
    return restyled(strip, column, end, Style(reverse=not turned) if block else Style(underline=True))


def restyled(strip: Strip, start: int, end: int, style: Style) -> Strip:
    """The strip with a style laid over the cells from `start` to before `end`."""
    end = min(end, strip.cell_length)
    if start >= end:
        return strip
    before, middle, after = (strip.crop(0, start), strip.crop(start, end), strip.crop(end, strip.cell_length))
    over = [Segment(each.text, (each.style or Style()) + style) for each in middle]
    return Strip([*before, *over, *after], strip.cell_length)


LINES_KEPT = 5_000
"""Lines of scrollback."""
SIZE_LIMITS = (2, 1_000), (1, 500)
"""The least and the most columns, and rows. In one column no wide character has a place."""
ANSWERS_LIMIT = 16
"""Answers a child gets between two looks at `take_answers`; more questions than that go unanswered."""
COLORS_LIMIT = 1_000
"""Colour changes carried over a skipped flood; with more of them nothing is skipped."""

_FLOOD = re.compile(rb"(?:[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]++|\x1b\[[0-9;:]*+m)*+")
"""Output that only prints, ends lines and changes colours."""
_COLORS = re.compile(rb"\x1b\[[0-9;:]*m")
_ANSWERS = {
    "attributes": b"\x1b[?62;22c",  # a VT220 with colours
    "more attributes": b"\x1b[>0;277;0c",  # an xterm that knows the SGR mouse
    "status": b"\x1b[0n",
}
_RESETS = frozenset(("\x1bc", "\x1b[!p"))
_TO_ALTERNATE = "\x1b[?1049h"
_LIBRARY_FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
_RESTARTED = "[the screen was cleared: its emulator failed]"


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the next character goes."""

    row: int
    """0 at the top of the screen."""
    column: int
    """In cells, 0 at the left."""
    visible: bool = True
    shape: Literal["block", "underline", "bar"] = "block"


class BitttyEmulator:
    """The library's board behind the gate, with scrollback.

    Lines are numbered for good: a number stays with its line as older ones are dropped. The screen's
    rows are the lines from `screen_top` to before `end`.

    Args:
        columns: within `SIZE_LIMITS`.
        rows: within `SIZE_LIMITS`.
        lines_kept: lines of scrollback.
    """

    keeps_scrollback = True
    """The board asks this of what it is plugged into."""

    def __init__(self, columns: int = 80, rows: int = 24, *, lines_kept: int = LINES_KEPT) -> None:
        self._gate = OutputFilter()
        self.modes = self._gate.modes
        self._lines: deque[TerminalRow] = deque(maxlen=lines_kept)
        self._first = 0
        self._seen_page: Any = None
        self._seen = 0
        self._answers: list[bytes] = []
        self._plug_in(*_clamped(columns, rows))

    def _plug_in(self, columns: int, rows: int) -> None:
        # The library takes a tenth of a second to load, and most sessions never take a shell over.
        from bittty import Board  # type: ignore[import-untyped]

        self._board: Any = Board(width=columns, height=rows)
        self._board.attach_display(self)
        self._join_characters()

    def _join_characters(self) -> None:
        """Accents and emoji take the cells of what they join; a reset of the board ends that."""
        self._board.modes.set_mode(2027, True, private=True)

    # State

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return self._board.width, self._board.height

    @property
    def first(self) -> int:
        """The number of the oldest line kept."""
        return self._first

    @property
    def screen_top(self) -> int:
        """The number of the screen's first row."""
        return self._first + len(self._lines)

    @property
    def end(self) -> int:
        """The number after that of the screen's last row."""
        return self.screen_top + int(self._board.height)

    @property
    def cursor(self) -> Cursor:
        """The cursor on the screen."""
        cursor = self._board.cursor
        return Cursor(cursor.y, cursor.display_x, self._board.modes.cursor_visible, cursor.shape)

    @property
    def alternate_screen(self) -> bool:
        """Whether the child uses the screen without scrollback."""
        return bool(self._board.blitter.in_alt_screen)

    # Output of the child

    def feed(self, data: bytes | str) -> None:
        """Take output, cut anywhere."""
        for token in self._gate.tokens(data):
            try:
                self._take(token)
            except _LIBRARY_FAILURES:
                self._restart()

    def _take(self, token: Token) -> None:
        board = self._board
        if token.kind == "text":
            board.print_text(token.text)
        elif token.kind == "ask":
            self._answer(token.text)
        else:
            board.parser.feed(token.text)
            if token.text == _TO_ALTERNATE:
                board.parser.feed("\x1b[2J")  # xterm clears it on entering; the library does not
            elif token.text in _RESETS:
                self._join_characters()

    def _restart(self) -> None:
        """Go on with an empty screen: no child may end the cockpit by confusing a library."""
        self._plug_in(*self.size)
        self._board.print_text(_RESTARTED)
        self._board.parser.feed("\r\n")

    def _answer(self, question: str) -> None:
        if len(self._answers) >= ANSWERS_LIMIT:
            return
        if question == "cursor":
            cursor = self.cursor
            self._answers.append(b"\x1b[%d;%dR" % (cursor.row + 1, cursor.column + 1))
        else:
            self._answers.append(_ANSWERS[question])

    def take_answers(self) -> bytes:
        """What is to be sent to the child, once."""
        answers, self._answers = b"".join(self._answers), []
        return answers

    def skim(self, data: bytes) -> bytes:
        """Less output with the same end: without what a flood would scroll out of reach anyway.

        Only what prints, ends lines and changes colours is ever left out, only when the whole
        screen scrolls, and only before so many lines that nothing older stays on the screen or
        in the scrollback. The colours in force are carried over.
        """
        blitter, (_, rows) = self._board.blitter, self.size
        if not self._gate.resting or (blitter.scroll_top, blitter.scroll_bottom) != (0, rows - 1):
            return data
        # The first screenful after the gap may land on old text; it must scroll out as well.
        keep = 2 * rows + 2 + (0 if self.alternate_screen else self._lines.maxlen or 0)
        match = _FLOOD.match(data)
        flood = match.group() if match else b""
        if flood.count(b"\n") <= keep:
            return data
        cut = flood.rfind(b"\r\n", 0, len(flood.rsplit(b"\n", keep)[0])) + 2
        skipped = data[:cut]
        colors = _COLORS.findall(skipped)
        if cut < 2 or len(colors) > COLORS_LIMIT:
            return data
        self._gate.forget_character()
        if not self.alternate_screen:
            self._first += skipped.count(b"\n")
        return b"".join(colors) + b"\r\n" + data[cut:]

    def present(self, event: object) -> None:
        """Called by the board when rows scroll out of its screen, and for much that is of no use here."""
        # By name, so that the library's own types stay behind its lazy import.
        name = type(event).__name__
        if name == "RowsScrolledOff":
            for line in event.lines:  # type: ignore[attr-defined]  # as the name says
                self._keep(row_of(line.cells, line.wrapped))
        elif name == "ScrollbackCleared":
            self._first += len(self._lines)
            self._lines.clear()

    def _keep(self, row: TerminalRow) -> None:
        if len(self._lines) == self._lines.maxlen:
            self._first += 1
        self._lines.append(row)

    # The screen

    def resize(self, columns: int, rows: int) -> None:
        """Change the size; it is kept within `SIZE_LIMITS`. Wrapped lines wrap anew."""
        columns, rows = _clamped(columns, rows)
        old, _ = self.size
        if (columns, rows) == self.size:
            return
        self._board.resize(columns, rows)
        # New columns have tab stops too; the library gives them none.
        self._board.cursor.tab_stops.update(range(-(-old // 8) * 8, columns, 8))

    def rows(self, first: int, last: int) -> list[TerminalRow]:
        """The lines numbered from `first` to before `last`; none for those no longer kept."""
        page, top = self._board.blitter.main_page, self.screen_top
        rows: list[TerminalRow] = []
        for number in range(max(first, self._first), min(last, self.end)):
            if number < top:
                rows.append(self._lines[number - self._first])
            else:
                rows.append(row_of(page.grid[number - top], page.is_line_wrapped(number - top)))
        return rows

    def take_dirty(self) -> list[int]:
        """The screen's rows that changed since the last call, 0 at the top."""
        page = self._board.blitter.main_page
        dirty: list[int] = (
            page.dirty_rows(self._seen) if page is self._seen_page else list(range(page.height))
        )
        self._seen_page, self._seen = page, page.observe()
        return dirty


def _clamped(columns: int, rows: int) -> tuple[int, int]:
    (least_columns, most_columns), (least_rows, most_rows) = SIZE_LIMITS
    return max(least_columns, min(columns, most_columns)), max(least_rows, min(rows, most_rows))
