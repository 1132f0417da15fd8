"""Styled runs of text and the cell arithmetic panes share: cut, fit, wrap, bars and intervals.

A piece names its style by the short name of a component class (`dim`, `error`, …), never by a colour, so
that one theme change restyles everything. Widths are terminal cells.

Untrusted text is cleaned where it enters a view model. `CONTROL_FILTER` is the second net against escape
sequences: it makes sure that a text which was not cleaned, or one the operator pasted, cannot act on the
terminal either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from zlib import crc32

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.dom import DOMNode
from textual.filter import LineFilter
from textual.strip import Strip
from textual.widget import Widget

from engine.core.text import clean_line

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def _harmless(match: re.Match[str]) -> str:
    """As many replacement characters as the control took cells, so that columns stay aligned."""
    return "�" * cell_len(match.group())


class ControlCharacterFilter(LineFilter):
    """Takes C0, C1 and bidirectional controls out of whatever any widget renders.

    Append `GUARD` to what `App.get_line_filters` returns. Cursor movement and colours are not
    affected: Textual adds those after the filters.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments without control characters; clean ones are passed through as they are."""
        return [
            segment
            if segment.text.isascii() and segment.text.isprintable()
            else Segment(_UNSAFE.sub(_harmless, segment.text), segment.style, segment.control)
            for segment in segments
        ]


CONTROL_FILTER = ControlCharacterFilter()
"""The one to append: Textual remembers what each filter made of a line, so there must be one of it."""


ELLIPSIS = "…"


class Piece(NamedTuple):
    """A run of text in one style."""

    text: str
    style: str | Style = "text"
    """Short name of a component class of the pane, or a ready style for coloured tool output."""


Pieces = tuple[Piece, ...]

_SOURCE = re.compile(
    r"""(?P<success>"(?:[^"\\]|\\.)*")|(?P<accent>(?<![\w)\]])(?:\.[a-z]\w*|!!?|\?|-\+|[+-](?=[a-z~]))|\b(?:if|elif|else|while|for|not)\b)
    |(?P<warning>\b[A-Z_]\w*)""",
    re.VERBOSE,
)
"""Texts; internal actions, signs and words of the language; variables."""


def source_pieces(text: str, style: str) -> Pieces:
    """A step of an AgentSpeak(L) program with its parts told apart; the rest in a style."""
    pieces, at = [], 0
    for match in _SOURCE.finditer(text):
        pieces += [Piece(text[at : match.start()], style), Piece(match[0], match.lastgroup or style)]
        at = match.end()
    return (*pieces, Piece(text[at:], style))


OPERATOR_STYLES = tuple(f"operator-{number}" for number in range(1, 5))
"""Styles of operators' names; the name itself always stands there, too."""


def operator_style(name: str) -> str:
    """The style of an operator, the same for a name everywhere."""
    return OPERATOR_STYLES[crc32(name.encode()) % len(OPERATOR_STYLES)]


def visible(text: str) -> str:
    """The text with unprintable characters written as JSON escapes, so that nothing hides in it."""
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def escape_unprintable(text: str) -> str:
    """The text with each unprintable character but the line's end as an escape, and tabs as blanks."""
    lines = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
    return "\n".join(line if line.isprintable() else visible(line) for line in lines)


def plain(pieces: Iterable[Piece]) -> str:
    """The text of the pieces without their styles."""
    return "".join(piece.text for piece in pieces)


def width_of(pieces: Iterable[Piece]) -> int:
    """The cells the pieces take on one line."""
    return sum(cell_len(piece.text) for piece in pieces)


def cut_text(text: str, width: int) -> str:
    """The text in at most `width` cells; a longer one ends in `…`."""
    return plain(cut((Piece(text),), width))


def pad(text: str, cells: int, *, gap: int = 0) -> str:
    """The text in exactly so many cells, the last `gap` of them blank."""
    text = cut_text(text, cells - gap)
    return text + " " * (cells - cell_len(text))


def cut(pieces: Pieces, width: int) -> Pieces:
    """The pieces in at most `width` cells; the last one kept ends in `…` when something was lost."""
    if width_of(pieces) <= width:
        return pieces
    if width < 1:
        return ()
    kept: list[Piece] = []
    left = width - 1
    for piece in pieces:
        size = cell_len(piece.text)
        if size > left:
            return (*kept, Piece(set_cell_size(piece.text, left).rstrip() + ELLIPSIS, piece.style))
        kept.append(piece)
        left -= size
    return tuple(kept)


def fit(pieces: Pieces, tail: Pieces, width: int) -> Pieces:
    """The pieces at the left and the tail at the right end of exactly `width` cells.

    The tail keeps its room as long as it takes no more than half the line; it is cut first.
    """
    if tail:
        tail = cut(tail, max(0, width // 2))
    tail_width = width_of(tail)
    room = width - tail_width - (1 if tail_width else 0)
    pieces = cut(pieces, max(0, room))
    gap = width - width_of(pieces) - tail_width
    return (*pieces, Piece(" " * gap), *tail) if gap > 0 else (*pieces, *tail)


def _words(pieces: Pieces) -> Iterator[Piece]:
    """The pieces split after each blank, each word in the style of its piece."""
    for text, style in pieces:
        start = 0
        for at, char in enumerate(text):
            if char == " ":
                yield Piece(text[start : at + 1], style)
                start = at + 1
        if start < len(text):
            yield Piece(text[start:], style)


def wrap(pieces: Pieces, width: int, *, indent: int = 0, most: int = 1, first: int = 0) -> tuple[Pieces, ...]:
    """The pieces broken at blanks into lines of at most `width` cells.

    Args:
        pieces: what to break; a word longer than a line is broken where the line ends.
        width: cells of a line, at least 1.
        indent: cells of hanging indent from the second line on.
        most: lines kept, at least 1; the last one ends in `…` when something was lost.
        first: cells of the first line, where it has fewer.
    """
    room = first or width
    if most <= 1 or width_of(pieces) <= room:
        return (cut(pieces, room),)
    indent = indent if width - indent >= 8 else 0
    lines: list[list[Piece]] = [[]]
    used = 0
    for word in _words(pieces):
        for part in _parts(word, width - indent if used else room):
            size = cell_len(part.text)
            if used + cell_len(part.text.rstrip()) > room and used:
                if len(lines) == most:
                    return (*map(_trimmed, lines[:-1]), cut((*lines[-1], part), width))
                lines.append([Piece(" " * indent)] if indent else [])
                used, room = indent, width
            lines[-1].append(part)
            used += size
    return tuple(_trimmed(line) for line in lines)


def break_line(text: str, width: int) -> list[str]:
    """A text of one line in lines of at most `width` cells, broken after blanks; nothing of it is lost.

    It takes time linear in the text, so that a megabyte can be laid out at once.
    """
    if not text.isascii():
        return [plain(line) for line in wrap((Piece(text),), width, most=len(text) + 1)]
    lines: list[str] = []
    start = 0
    while len(text) - start > width:
        # The blank a line is broken at may stand beyond its end.
        blank = text.rfind(" ", start, start + width + 1)
        end = start + width if blank < start else blank + 1
        lines.append(text[start:end].rstrip(" "))
        start = end
    return [*lines, text[start:]]


def _trimmed(line: list[Piece]) -> Pieces:
    """The line without the blank it was broken at."""
    if not line:
        return ()
    *rest, last = line
    return (*rest, Piece(last.text.rstrip(), last.style))


def _parts(word: Piece, width: int) -> tuple[Piece, ...]:
    """The word in parts of at most `width` cells."""
    if cell_len(word.text.rstrip()) <= width:
        return (word,)
    return tuple(Piece(part, word.style) for part in chop_cells(word.text, max(1, width)))


def labelled(label: str, text: str, width: int, *, style: str = "text", most: int = 12) -> tuple[Pieces, ...]:
    """A label of nine cells and a text with a hanging indent; nothing when there is no text."""
    if not text:
        return ()
    return wrap((Piece(f"{label:<9}", "dim"), Piece(text, style)), width, indent=9, most=most)


def bar(part: float, cells: int, *, style: str = "text") -> Pieces:
    """A share as a bar of so many cells, full ones first; what is not nothing shows at least one.

    Args:
        part: between 0 and 1; what lies outside is taken as the nearer of the two.
        cells: width of the bar.
        style: of its full cells.
    """
    part = max(0.0, min(1.0, part))
    full = max(round(part * cells), 1 if part and cells else 0)
    return tuple(
        piece for piece in (Piece("▓" * full, style), Piece("░" * (cells - full), "dim")) if piece.text
    )


class LinePainter:
    """Draws the lines of one pane in the styles that its style sheet has for `.line--NAME`.

    Component classes would be resolved, all of them, whenever any style of the pane changes: a fifth of what
    opening the cockpit takes. These are resolved when they are first drawn.
    """

    def __init__(self, pane: Widget) -> None:
        self._pane = pane
        self._styles: dict[str, Style] = {}

    def forget(self) -> None:
        """Forget resolved styles, as the theme or the focus has changed."""
        self._styles = {}

    def named(self, name: str) -> Style:
        """The resolved style of `.line--NAME`."""
        if name not in self._styles:
            node = DOMNode(classes=f"line--{name}")
            node._attach(self._pane)
            self._pane.app.stylesheet.apply(node)
            self._styles[name] = node.rich_style
        return self._styles[name]

    def bar(self) -> Style:
        """The style of the cursor's bar."""
        return self.named("cursor" if self._pane.has_focus else "cursor-blurred")

    def piece(self, style: str | Style, bar: Style | None) -> Style:
        """The style of a piece, on the cursor's bar where it is given."""
        if bar is None:
            return self.named(style) if isinstance(style, str) else self.named("text") + style
        if bar.reverse:
            # Reversed colours would turn the cursor's bar into a patchwork.
            return self.named("text") + bar
        # Secondary text would lose its contrast on the cursor's bar.
        name = "text" if style in ("dim", "heading") else style
        own = self.named(name) if isinstance(name, str) else name
        return own + Style(bgcolor=bar.bgcolor, bold=bar.bold, reverse=bar.reverse)

    def line(self, number: int, pieces: Pieces, mark: Piece, width: int, *, under: bool) -> Strip:
        """A line as a strip of the pane's width without the scroll bar.

        Args:
            number: absolute number of the line, which a mouse selection goes by.
            pieces: the line.
            mark: what stands in the gutter; without a character where the pane has no marks.
            width: cells of the line without the gutter.
            under: whether the cursor is on it.
        """
        bar = self.bar() if under else None
        body = Strip([Segment(text, self.piece(style, bar)) for text, style in cut(pieces, width)])
        body = self.selected(body, number)
        body = body.apply_offsets(0, number).adjust_cell_length(width, self.piece("text", bar))
        head = Segment("▌" if under else " ", self.piece("accent", bar))
        side = Segment(mark.text + " ", self.piece(mark.style, bar))
        return Strip([head, side, *body], len(mark.text) + 2 + width)

    def selected(self, body: Strip, number: int) -> Strip:
        """The line with what of it is selected by mouse in the selection's style."""
        selection = self._pane.text_selection
        span = None if selection is None else selection.get_span(number)
        if span is None:
            return body
        text = body.text
        end = len(text) if span[1] == -1 else min(span[1], len(text))
        cells = width_of((Piece(text[: span[0]]),)), width_of((Piece(text[:end]),))
        if cells[0] >= cells[1]:
            return body
        chosen = self._pane.screen.get_component_rich_style("screen--selection")
        parts = list(body.divide([cells[0], cells[1], body.cell_length]))
        middle = Strip([Segment(seg.text, (seg.style or Style()) + chosen) for seg in parts[1]])
        return Strip.join([parts[0], middle, *parts[2:]])

    def scroll_cell(self, y: int, top: int, total: int) -> Segment:
        """The scroll bar beside a line of the visible part, which begins so many lines below the first."""
        height = self._pane.content_size.height
        if total <= height or height < 2:
            return Segment(" ", self.named("text"))
        length = max(1, height * height // total)
        start = round(top * (height - length) / (total - height))
        on = start <= y < start + length
        return Segment("┃" if on else "│", self.named("thumb" if on else "track"))

    def notice(self, text: str, mark: str, style: str, y: int, width: int) -> Strip:
        """A line of what the pane says instead of lines."""
        base = self.named("text")
        lines = wrap((Piece(mark + clean_line(text), style),), max(1, width - 4), indent=len(mark), most=12)
        if y == 0 or y > len(lines) or width < 6:
            return Strip.blank(width, base)
        segments = [Segment(text, self.piece(style, None)) for text, style in lines[y - 1]]
        return Strip([Segment("  ", base), *segments]).adjust_cell_length(width, base)
