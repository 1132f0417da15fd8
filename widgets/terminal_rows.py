"""Rows of a terminal: from the emulator's cells to text with looks, and on to what the pane draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from widgets.ansi_stream import PLAIN, Color, Sgr, Span
from widgets.session import look_style

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
    """The line goes on in the next row."""


def row_of(cells: Sequence[tuple[Any, str]], wrapped: bool) -> TerminalRow:
    """A row of the library's cells.

    Args:
        cells: style and character each; the second cell of a wide character holds the empty string.
        wrapped: the line goes on in the next row.
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
        if look == PLAIN or len(text) == start:
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
def _look(style: Any) -> Sgr:
    """The library's style as the house's; hidden text is shown, links are not kept."""
    return Sgr(
        fg=_color(style.fg),
        bg=_color(style.bg),
        bold=bool(style.bold),
        dim=bool(style.dim),
        italic=bool(style.italic),
        underline=bool(style.underline),
        reverse=bool(style.reverse),
    )


def _color(color: Any) -> Color:
    if color is None or color.mode == "default" or color.value is None:
        return None
    if color.mode == "indexed":
        return max(0, min(int(color.value), 255))
    red, green, blue = (max(0, min(int(part), 255)) for part in color.value)
    return red, green, blue


def row_strip(row: TerminalRow, base: Style) -> Strip:
    """The row in its colours over the pane's own."""
    segments: list[Segment] = []
    at = 0
    for span in row.spans:
        if span.start > at:
            segments.append(Segment(row.text[at : span.start], base))
        segments.append(Segment(row.text[span.start : span.end], base + look_style(span.look)))
        at = span.end
    if at < len(row.text):
        segments.append(Segment(row.text[at:], base))
    return Strip(segments)


def with_cursor(strip: Strip, column: int, *, block: bool) -> Strip:
    """The strip with the cursor drawn on it: the cell turned, or only underlined.

    Args:
        strip: a row at least `column + 1` cells wide.
        column: the cursor's cell; where a wide character begins, both its cells are marked.
        block: turned; a bar cannot be drawn with cells and is shown so too.
    """
    wide = strip.crop(column, column + 1).text == " " != strip.crop(column, column + 2).text[:1]
    end = column + 1 + wide
    if not block:
        return restyled(strip, column, end, Style(underline=True))
    turned = any(segment.style and segment.style.reverse for segment in strip.crop(column, end))
    return restyled(strip, column, end, Style(reverse=not turned))


def restyled(strip: Strip, start: int, end: int, style: Style) -> Strip:
    """The strip with a style laid over the cells from `start` to before `end`."""
    end = min(end, strip.cell_length)
    if start >= end:
        return strip
    before, middle, after = (
        strip.crop(0, start),
        strip.crop(start, end),
        strip.crop(end, strip.cell_length),
    )
    over = [Segment(each.text, (each.style or Style()) + style) for each in middle]
    return Strip([*before, *over, *after], strip.cell_length)
