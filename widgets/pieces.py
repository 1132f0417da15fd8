"""Styled runs of text and the cell arithmetic panes share: cut, fit, wrap.

A piece names its style by the short name of a component class (`dim`, `error`, …), never
by a colour, so that one theme change restyles everything. Widths are terminal cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.style import Style

ELLIPSIS = "…"


class Piece(NamedTuple):
    """A run of text in one style."""

    text: str
    style: str | Style = "text"
    """Short name of a component class of the pane, or a ready style for coloured tool output."""


Pieces = tuple[Piece, ...]


def plain(pieces: Iterable[Piece]) -> str:
    """The text of the pieces without their styles."""
    return "".join(piece.text for piece in pieces)


def width_of(pieces: Iterable[Piece]) -> int:
    """The cells the pieces take on one line."""
    return sum(cell_len(piece.text) for piece in pieces)


def cut_text(text: str, width: int) -> str:
    """The text in at most `width` cells; a longer one ends in `…`."""
    return plain(cut((Piece(text),), width))


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


def wrap(pieces: Pieces, width: int, *, indent: int = 0, most: int = 1) -> tuple[Pieces, ...]:
    """The pieces broken at blanks into lines of at most `width` cells.

    Args:
        pieces: what to break; a word longer than a line is broken where the line ends.
        width: cells of a line, at least 1.
        indent: cells of hanging indent from the second line on.
        most: lines kept, at least 1; the last one ends in `…` when something was lost.
    """
    if most <= 1 or width_of(pieces) <= width:
        return (cut(pieces, width),)
    indent = indent if width - indent >= 8 else 0
    lines: list[list[Piece]] = [[]]
    used = 0
    for word in _words(pieces):
        for part in _parts(word, width - indent):
            size = cell_len(part.text)
            if used + cell_len(part.text.rstrip()) > width and used:
                if len(lines) == most:
                    return (*map(_trimmed, lines[:-1]), cut((*lines[-1], part), width))
                lines.append([Piece(" " * indent)] if indent else [])
                used = indent
            lines[-1].append(part)
            used += size
    return tuple(_trimmed(line) for line in lines)


def broken(text: str, width: int) -> list[str]:
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
