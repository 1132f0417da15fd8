"""The list pane: rows with keys, a cursor that stays on its row, and a place that stays put.

Updates hand over the whole list; the pane compares it with the last one and repaints what
changed. A row that is not in the new list loses the cursor to its nearest neighbour.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from widgets.line_pane import LinePane
from widgets.pieces import Piece, Pieces, cut, fit, width_of, wrap

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


class RowPane(LinePane):
    """A list of `Row`s. Subclasses turn their model into rows and say what a row's choice means."""

    STARTS_ON_FIRST: ClassVar[bool] = True
    """False for panes that show no cursor until the operator moves it."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "Choose", show=False, id="pane.choose"),
    ]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._rows: tuple[Row, ...] = ()
        self._lines: list[Pieces] = []
        self._starts: list[int] = []
        self._laid_out: dict[str, tuple[Row, tuple[Pieces, ...]]] = {}
        self._laid_out_width = -1
        self._cursor = ""
        self._index: dict[str, int] = {}

    # For subclasses

    def row_highlighted(self, key: str) -> None:
        """Called when the operator moved the cursor to a row; never by an update."""

    def row_chosen(self, key: str) -> None:
        """Called when the operator chose a row with enter or a click."""

    # Rows

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows shown."""
        return self._rows

    @property
    def cursor(self) -> str:
        """Key of the row under the cursor, or the empty string."""
        return self._cursor

    def set_rows(self, rows: Sequence[Row], *, added: int = 0) -> None:
        """Show these rows; the cursor and the reader's place stay on their rows.

        Args:
            rows: all rows, each with a key of its own.
            added: how many are new, for panes that follow the end.
        """
        old, new = self._rows, tuple(rows)
        if old == new:
            return
        anchor, offset = self._place()
        self._rows = new
        before_index, self._index = self._index, {row.key: at for at, row in enumerate(new)}
        if self._cursor not in self._index:
            self._cursor = self._nearest_key(old, self._cursor)
        starts, total = self._starts, len(self._lines)
        if not self._slide(old, before_index):
            self._lay_out()
        if before_index == self._index and starts == self._starts and total == len(self._lines):
            for at, (before, after) in enumerate(zip(old, self._rows, strict=True)):
                if before is not after and before != after:
                    self.repaint_lines(self._starts[at], len(self._span(at)))
            return
        if anchor and not self.following:
            kept = self._index.get(self._nearest_key(old, anchor))
            if kept is not None:
                self._top = self._starts[kept] + (offset if self._rows[kept].key == anchor else 0)
        self.lines_changed(added)

    def move_cursor(self, key: str) -> None:
        """Put the cursor on a row and show it, without telling anyone."""
        if key not in self._index or key == self._cursor:
            return
        before, self._cursor = self._cursor, key
        for each in (before, key):
            if (at := self._index.get(each)) is not None:
                self.repaint_lines(self._starts[at], len(self._span(at)))
        self.reveal(self._span(self._index[key]))

    def clear_cursor(self) -> None:
        """Show no cursor until the operator moves it."""
        if self._cursor:
            self._cursor = ""
            self.refresh()

    def _place(self) -> tuple[str, int]:
        """Key of the row at the top of the pane, and how many of its lines are above it."""
        if not self._rows or not self._lines:
            return "", 0
        at = max(0, bisect_right(self._starts, self.top) - 1)
        return self._rows[at].key, self.top - self._starts[at]

    def _nearest_key(self, old: tuple[Row, ...], key: str) -> str:
        """The key itself, or that of the nearest row of the old list that is still there."""
        if key in self._index:
            return key
        at = next((at for at, row in enumerate(old) if row.key == key), -1)
        if at >= 0:
            around = (*old[at + 1 :], *reversed(old[:at]))
            for row in around:
                if row.selectable and row.key in self._index:
                    return row.key
        return self._first_key()

    def _first_key(self) -> str:
        if not self.STARTS_ON_FIRST:
            return ""
        return next((row.key for row in self._rows if row.selectable), "")

    def _span(self, at: int) -> range:
        """The lines of the row at this place in the list."""
        end = self._starts[at + 1] if at + 1 < len(self._starts) else len(self._lines)
        return range(self._starts[at], end)

    def _slide(self, old: tuple[Row, ...], places: Mapping[str, int]) -> bool:
        """Lay out only what is new, where rows went at the beginning and came at the end; False otherwise.

        Args:
            old: the rows that are laid out.
            places: where each of them is, by key.
        """
        gone = places.get(self._rows[0].key, -1) if self._rows else -1
        kept = len(old) - gone
        if gone < 0 or kept > len(self._rows) or self.text_width != self._laid_out_width:
            return False
        if not all(map(is_, old[gone:], self._rows)):
            return False
        lines = self._starts[gone]
        # New lists, as whoever asks what has changed compares them with the old ones.
        self._lines, self._starts = self._lines[lines:], [start - lines for start in self._starts[gone:]]
        for row in old[:gone]:
            del self._laid_out[row.key]
        for row in self._rows[kept:]:
            self._add_lines(row, self._broken(row, self._laid_out_width))
        return True

    def _add_lines(self, row: Row, lines: tuple[Pieces, ...]) -> None:
        self._laid_out[row.key] = (row, lines)
        self._starts.append(len(self._lines))
        self._lines.extend(lines)

    def _lay_out(self) -> None:
        """Break the rows into lines; rows laid out before at the same width are not broken again."""
        width = self.text_width
        known = self._laid_out if width == self._laid_out_width else {}
        self._laid_out, self._laid_out_width = {}, width
        self._lines, self._starts = [], []
        if width <= 0:  # not shown yet: a first frame of letters below each other helps nobody
            self._starts = [0] * len(self._rows)
            return
        for row in self._rows:
            before = known.get(row.key)
            same = before is not None and (before[0] is row or before[0] == row)
            lines = before[1] if before is not None and same else self._broken(row, width)
            self._add_lines(row, lines)

    def _broken(self, row: Row, width: int) -> tuple[Pieces, ...]:
        if row.most == 1:
            return (row.pieces,)  # `line` fits it, so that thousands of rows cost no arithmetic unseen
        tail = cut(row.tail, max(0, width // 2))
        room = width - width_of(tail) - 1 if tail else width
        first, *rest = wrap(row.pieces, max(1, room), indent=row.indent, most=row.most)
        return (fit(first, tail, width) if tail else first, *rest)

    # LinePane

    def line_total(self) -> tuple[int, int]:
        """Lines count from 0 at the first row."""
        return 0, len(self._lines)

    def line(self, number: int) -> Pieces:
        """A line of a row."""
        row = self._rows[bisect_right(self._starts, number) - 1]
        if row.most == 1 and row.tail:
            return fit(row.pieces, row.tail, self._laid_out_width)
        return self._lines[number]

    def mark(self, number: int) -> Piece:
        """The mark of the row that begins on this line."""
        at = bisect_right(self._starts, number) - 1
        return self._rows[at].mark if self._starts[at] == number else BLANK_MARK

    def cursor_lines(self) -> range:
        """The lines of the row under the cursor."""
        at = self._index.get(self._cursor)
        return range(0) if at is None else self._span(at)

    def on_resize(self) -> None:
        """Break the rows anew; the row at the top stays there."""
        anchor, offset = self._place()
        if self.text_width != self._laid_out_width:
            self._lay_out()
            if (at := self._index.get(anchor)) is not None and not self.following:
                span = self._span(at)
                self._top = min(span.start + offset, span.stop - 1)
        self.lines_changed()

    # The operator

    def on_click(self, event: events.Click) -> None:
        """A click on a row puts the cursor there; a second one chooses it."""
        offset = event.get_content_offset(self)
        if offset is None or self.top + offset.y >= len(self._lines):
            return
        row = self._rows[bisect_right(self._starts, self.top + offset.y) - 1]
        if row.selectable:
            self._highlight(row.key)
            self.row_clicked(row.key, event.chain)

    def row_clicked(self, key: str, chain: int) -> None:
        """Called after a click put the cursor on a row; a double click chooses it."""
        if chain == 2:
            self.row_chosen(key)

    def _highlight(self, key: str) -> None:
        if key and key != self._cursor:
            self.move_cursor(key)
            if key != self._rows[-1].key:
                self.stay()
            self.row_highlighted(key)

    def _step(self, by: int) -> None:
        """Move the cursor by so many selectable rows, as far as there are any."""
        keys = [row.key for row in self._rows if row.selectable]
        if not keys:
            return
        if self._cursor in self._index:
            at = keys.index(self._cursor) if self._rows[self._index[self._cursor]].selectable else 0
            at = max(0, min(len(keys) - 1, at + by))
        else:
            at = len(keys) - 1 if by < 0 else self._visible_at(keys)
        self._highlight(keys[at])
        if at == 0:
            self.scroll_lines_to(0)
        elif at == len(keys) - 1 and by > 0:
            self.scroll_lines_to(len(self._lines))

    def _visible_at(self, keys: list[str]) -> int:
        return next((at for at, key in enumerate(keys) if self._starts[self._index[key]] >= self.top), 0)

    def action_up(self) -> None:
        """Move the cursor one row up."""
        self._step(-1)

    def action_down(self) -> None:
        """Move the cursor one row down."""
        self._step(1)

    def action_page_up(self) -> None:
        """Move the cursor one page up."""
        self._step(-max(1, self.content_size.height - 1))

    def action_page_down(self) -> None:
        """Move the cursor one page down."""
        self._step(max(1, self.content_size.height - 1))

    def action_top(self) -> None:
        """Move the cursor to the first row."""
        self._step(-len(self._rows))

    def action_bottom(self) -> None:
        """Move the cursor to the last row; panes that follow leave it and follow again."""
        if self.FOLLOWS:
            self.clear_cursor()
            super().action_bottom()
        else:
            self._step(len(self._rows))

    def action_choose(self) -> None:
        """Choose the row under the cursor."""
        if self._cursor:
            self.row_chosen(self._cursor)

    def action_copy_row(self) -> None:
        """Copy the row under the cursor."""
        at = self._index.get(self._cursor)
        if at is not None and self._rows[at].copy:
            self._copy(self._rows[at].copy, "row")
        else:
            super().action_copy_row()
