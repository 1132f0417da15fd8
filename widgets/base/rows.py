"""Rows with keys as lines: a cursor that stays on its row, and a place that stays put.

Updates hand over the whole list; it is compared with the last one, and only what changed is painted again.
A row that is not in the new list loses the cursor to its nearest neighbour.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from operator import is_

from engine.value import dataclass
from widgets.base.text_layout import Piece, Pieces, cut, fit, width_of, wrap

BLANK_MARK = Piece(" ")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a list; it may take several lines."""

    key: str
    """Its identity across updates."""
    pieces: Pieces
    tail: Pieces = ()
    """What stands at the right end of the first line."""
    selectable: bool = True
    """False for headings and blanks, which the cursor skips."""
    indent: int = 0
    """Hanging indent of the second and later lines, in cells."""
    most: int = 1
    """Lines it may take."""
    mark: Piece = BLANK_MARK
    """What stands in the gutter of its first line, one cell wide."""
    copy: str = ""
    """What the copy key takes; the row's text when empty."""


def heading(key: str, text: str, *, tail: Pieces = ()) -> Row:
    """A row that stands above others and takes no cursor."""
    return Row(key, (Piece(text, "heading"),), tail=tail, selectable=False)


def blank(key: str) -> Row:
    """An empty row between others."""
    return Row(key, (Piece(""),), selectable=False)


class RowList:
    """The rows of a pane, broken into lines, and the one under the cursor."""

    def __init__(self, *, starts_on_first: bool = True) -> None:
        self.rows: tuple[Row, ...] = ()
        self.lines: list[Pieces] = []
        self.cursor = ""
        self.index: dict[str, int] = {}
        """Where each row is, by its key."""
        self._starts_on_first = starts_on_first
        self._starts: list[int] = []
        self._laid_out: dict[str, tuple[Row, tuple[Pieces, ...]]] = {}
        self._width = -1

    # What a pane draws

    def line_total(self) -> tuple[int, int]:
        """Lines count from 0 at the first row."""
        return 0, len(self.lines)

    def line(self, number: int) -> Pieces:
        """A line of a row."""
        row = self.row_at(number)
        return fit(row.pieces, row.tail, self._width) if row.most == 1 and row.tail else self.lines[number]

    def mark(self, number: int) -> Piece:
        """The mark of the row that begins on this line."""
        at = bisect_right(self._starts, number) - 1
        return self.rows[at].mark if self._starts[at] == number else BLANK_MARK

    def cursor_lines(self) -> range:
        """The lines of the row under the cursor."""
        return self.span(self.cursor)

    def fit(self, width: int, top: int) -> int:
        """Break the rows anew for this width; gives where the line that was at the top is now."""
        if width == self._width:
            return top
        anchor, offset = self.place(top)
        self._lay_out(width)
        span = self.span(anchor)
        return min(span.start + offset, span.stop - 1) if span else top

    # Rows

    def replace(self, rows: Iterable[Row], width: int, top: int) -> tuple[list[range] | None, int]:
        """Take these rows in place of those before; the cursor stays on its row, or goes to the nearest.

        Returns:
            The lines to paint again, or None for all; and where the line that was at the top is now.
        """
        old, new = self.rows, tuple(rows)
        if old == new:
            return [], top
        anchor, offset = self.place(top)
        places, starts, total = self.index, self._starts, len(self.lines)
        self.rows, self.index = new, {row.key: at for at, row in enumerate(new)}
        if self.cursor not in self.index:
            self.cursor = self._nearest_key(old, self.cursor)
        if not self._slide(old, places, width):
            self._lay_out(width)
        if places == self.index and starts == self._starts and total == len(self.lines):
            pairs = enumerate(zip(old, new, strict=True))
            return [self._span(at) for at, (was, now) in pairs if was is not now and was != now], top
        if anchor and (kept := self.index.get(self._nearest_key(old, anchor))) is not None:
            top = self._starts[kept] + (offset if new[kept].key == anchor else 0)
        return None, top

    def place(self, top: int) -> tuple[str, int]:
        """Key of the row that this line belongs to, and how many of its lines are above it."""
        if not self.rows or not self.lines:
            return "", 0
        at = max(0, bisect_right(self._starts, top) - 1)
        return self.rows[at].key, top - self._starts[at]

    def span(self, key: str) -> range:
        """The lines of a row; none where there is no such row."""
        at = self.index.get(key)
        return range(0) if at is None else self._span(at)

    def row_at(self, number: int) -> Row:
        """The row that a line belongs to."""
        return self.rows[bisect_right(self._starts, number) - 1]

    def stepped(self, by: int, top: int) -> str:
        """The key so many selectable rows from the cursor, as far as there are any; empty for none."""
        keys = [row.key for row in self.rows if row.selectable]
        if not keys:
            return ""
        if self.cursor in self.index:
            at = keys.index(self.cursor) + by if self.rows[self.index[self.cursor]].selectable else 0
        elif by < 0:
            at = len(keys) - 1
        else:
            at = next((at for at, key in enumerate(keys) if self._starts[self.index[key]] >= top), 0)
        return keys[max(0, min(len(keys) - 1, at))]

    def lines_at(self, width: int) -> int:
        """How many lines the rows take at a width."""
        return sum(len(_broken(row, width)) for row in self.rows)

    def _nearest_key(self, old: tuple[Row, ...], key: str) -> str:
        """The key itself, or that of the nearest row of the old list that is still there."""
        if key in self.index:
            return key
        at = next((at for at, row in enumerate(old) if row.key == key), -1)
        if at >= 0:
            for row in (*old[at + 1 :], *reversed(old[:at])):
                if row.selectable and row.key in self.index:
                    return row.key
        return next((row.key for row in self.rows if row.selectable), "") if self._starts_on_first else ""

    def _span(self, at: int) -> range:
        """The lines of the row at this place in the list."""
        end = self._starts[at + 1] if at + 1 < len(self._starts) else len(self.lines)
        return range(self._starts[at], end)

    def _slide(self, old: tuple[Row, ...], places: Mapping[str, int], width: int) -> bool:
        """Lay out only what is new, where rows went at the beginning and came at the end; False otherwise."""
        gone = places.get(self.rows[0].key, -1) if self.rows else -1
        kept = len(old) - gone
        if gone < 0 or kept > len(self.rows) or width != self._width:
            return False
        if not all(map(is_, old[gone:], self.rows)):
            return False
        lines = self._starts[gone]
        # New lists: the old ones are compared with them.
        self.lines, self._starts = self.lines[lines:], [start - lines for start in self._starts[gone:]]
        for row in old[:gone]:
            del self._laid_out[row.key]
        for row in self.rows[kept:]:
            self._add_lines(row, _broken(row, width))
        return True

    def _add_lines(self, row: Row, lines: tuple[Pieces, ...]) -> None:
        self._laid_out[row.key] = (row, lines)
        self._starts.append(len(self.lines))
        self.lines.extend(lines)

    def _lay_out(self, width: int) -> None:
        """Break the rows into lines; rows laid out before at the same width are not broken again."""
        known = self._laid_out if width == self._width else {}
        self._laid_out, self._width = {}, width
        self.lines, self._starts = [], []
        if width <= 0:  # not shown yet: a first frame of letters below each other is of no use
            self._starts = [0] * len(self.rows)
            return
        for row in self.rows:
            before = known.get(row.key)
            same = before is not None and (before[0] is row or before[0] == row)
            self._add_lines(row, before[1] if before is not None and same else _broken(row, width))


def _broken(row: Row, width: int) -> tuple[Pieces, ...]:
    if row.most == 1:
        return (row.pieces,)  # `line` fits it, so that thousands of rows cost no arithmetic unseen
    tail = cut(row.tail, max(0, width // 2))
    room = width - width_of(tail) - 1 if tail else width
    first, *rest = wrap(row.pieces, width, indent=row.indent, most=row.most, first=max(1, room))
    return (fit(first, tail, width) if tail else first, *rest)
