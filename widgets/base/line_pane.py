"""The pane all panes are made of: numbered lines, drawn one by one, with their own scrolling.

Scrolling is kept here and not in Textual's virtual size, because a virtual size that grows costs a layout
of the whole screen per update. Lines have absolute numbers that survive the loss of old ones, so that a text
selection and a reader's place stay on their lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

from textual import events
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from engine.value import dataclass
from widgets.base.pane_words import Described
from widgets.base.rows import Row, RowList
from widgets.base.text_layout import OPERATOR_STYLES, LinePainter, Piece, Pieces, plain

STYLE_NAMES = ("text", "dim", "strong", "accent", "success", "warning", "error", "heading", *OPERATOR_STYLES)
FAR = 1_000_000_000
"""Lines or rows of a step that goes to the first or the last of all."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What a pane says instead of lines, or on its last line below those that it has."""

    text: str
    kind: Literal["empty", "loading", "error", "partly"] = "empty"


NOTICE_MARKS: dict[str, tuple[str, str]] = {
    "empty": ("", "dim"),
    "loading": ("… ", "accent"),
    "error": ("✗ ", "error"),
    "partly": ("◐ ", "warning"),
}
LOADING = Notice("loading …", "loading")
"""What a pane says until it was given something to show, or that there is nothing."""


@dataclass
class CopyRequested(Message):
    """The operator wants a text on the clipboard."""

    text: str
    what: str
    """What the text is, for the confirmation: `row`, `pane`."""


@dataclass
class RowMessage(Message):
    """Something of a row of a pane that has no answer of its own to it."""

    pane: LinePane
    key: str

    @property
    def control(self) -> LinePane:
        """The pane, for selectors of handlers."""
        return self.pane


class RowChosen(RowMessage):
    """The operator chose a row, with enter or by a click."""


class RowHighlighted(RowMessage):
    """The operator moved the cursor to a row."""


@dataclass
class Requested(Message):
    """The operator wants something that a pane or a dialog cannot do itself.

    What `MetaDialog` requests as `force` is done by the controller's method `on_meta_dialog_force`, which is
    given the arguments.
    """

    widget: str
    """The class of the pane or dialog."""
    what: str
    args: tuple[Any, ...] = ()


class LineSource(Protocol):
    """What the lines of a pane are made from."""

    def line_total(self) -> tuple[int, int]:
        """The absolute number of the first line kept, and that of the line after the last."""

    def line(self, number: int) -> Pieces:
        """The line with this absolute number, not yet cut to the pane's width."""

    def mark(self, number: int) -> Piece:
        """What stands in the gutter beside a line, one cell wide."""

    def cursor_lines(self) -> range:
        """The absolute numbers of the lines under the cursor."""

    def fit(self, width: int, top: int) -> int:
        """Break the lines for this width; gives where the line that was at the top is now."""


class LinePane(Described, Widget, can_focus=True):
    """Draws the visible ones of any number of lines and follows the end unless the reader left it.

    Args:
        source: what the lines are made from; rows that are set by `set_rows` when not given.
        title: what its keys are listed under.
        empty: says what will appear here and which key makes it appear.
        marks: whether its lines have a mark of one cell before them.
        loads: whether it says that it loads until it is given what there is, as `LOADS` does.
        click_chooses: whether one click chooses a row, and not only a second one.
    """

    EMPTY: ClassVar[str] = ""
    FOLLOWS: ClassVar[bool] = False
    """True for panes that show the newest line as long as the reader is at the end."""
    MARKS: ClassVar[bool] = False
    LOADS: ClassVar[bool] = False
    """True for panes that say that they load until they are given what there is."""
    STARTS_ON_FIRST: ClassVar[bool] = True
    """False for panes that show no cursor until the operator moves it."""

    def __init__(
        self,
        source: LineSource | None = None,
        *,
        title: str = "",
        empty: str = "",
        marks: bool | None = None,
        click_chooses: bool = False,
        loads: bool = False,
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.list = RowList(starts_on_first=self.STARTS_ON_FIRST)
        self.source: LineSource = source or self.list
        self.painter = LinePainter(self)
        self.marks = self.MARKS if marks is None else marks
        self.top = 0
        """Absolute number of the first visible line."""
        self.following = self.FOLLOWS
        """True while new lines scroll into view by themselves."""
        self.unseen = 0
        """Lines that arrived since the reader left the end."""
        self.letters: Mapping[str, str] = {}
        """Letters that choose a row, with its key."""
        self._empty = Notice(empty or self.EMPTY)
        self._click_chooses = click_chooses
        self._notice: Notice | None = LOADING if self.LOADS or loads else None
        self._caption = Content("")
        self._subtitle = Content("")
        if title:
            self.BINDING_GROUP_TITLE = title

    # What the lines are

    def line_total(self) -> tuple[int, int]:
        """The absolute number of the first line kept, and that of the line after the last."""
        return self.source.line_total()

    def line(self, number: int) -> Pieces:
        """The line with this absolute number, not yet cut to the pane's width."""
        return self.source.line(number)

    def mark(self, number: int) -> Piece:
        """What stands in the gutter beside a line, one cell wide."""
        return self.source.mark(number)

    def cursor_lines(self) -> range:
        """The absolute numbers of the lines under the cursor."""
        return self.source.cursor_lines()

    def lines_changed(self, added: int = 0) -> None:
        """Repaint after the lines changed; keep the reader's place, or follow the end.

        Args:
            added: new lines since the last call, for the `N new ↓` badge.
        """
        self.unseen = 0 if self.following else self.unseen + added
        self.top = self._clamped(FAR if self.following else self.top)
        self.refresh()
        self._refresh_subtitle()

    def repaint_lines(self, first: int, count: int = 1) -> None:
        """Repaint single lines where they are on the screen."""
        self.refresh(Region(0, first - self.top, max(1, self.content_size.width), count))

    def set_notice(self, notice: Notice | None) -> None:
        """Show a notice, below lines where there are any; None and no lines say what will appear here."""
        if notice != self._notice:
            self._notice = notice
            self.top = self._clamped(FAR if self.following else self.top)
            self.refresh()

    def loaded(self) -> None:
        """It was given what there is to show, which may be nothing."""
        if self._notice is LOADING:
            self.set_notice(None)

    def set_caption_text(self, text: str) -> None:
        """Show a text in the lower border, beside the badge of unseen lines."""
        self._caption = Content(text)
        self._refresh_subtitle()

    # Rows

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows shown."""
        return self.list.rows

    @property
    def cursor(self) -> str:
        """Key of the row under the cursor, or the empty string."""
        return self.list.cursor

    def set_rows(self, rows: Sequence[Row], *, added: int = 0) -> None:
        """Show these rows; the cursor and the reader's place stay on their rows.

        Args:
            rows: all rows, each with a key of its own.
            added: how many are new, for panes that follow the end.
        """
        self.loaded()
        changed, top = self.list.replace(rows, self.text_width, self.top)
        if changed is not None:
            for lines in changed:
                self.repaint_lines(lines.start, len(lines))
            return
        self.top = self.top if self.following else top
        self.lines_changed(added)

    def move_cursor(self, key: str) -> None:
        """Put the cursor on a row and show it, or on none, without a message."""
        if key == self.cursor or (key and key not in self.list.index):
            return
        before, self.list.cursor = self.cursor, key
        for lines in (self.list.span(before), self.list.span(key)):
            if lines:
                self.repaint_lines(lines.start, len(lines))
        self.reveal(self.list.span(key))

    def row_highlighted(self, key: str) -> None:
        """Called when the operator moved the cursor to a row; never by an update."""
        self.post_message(RowHighlighted(self, key))

    def row_chosen(self, key: str) -> None:
        """Called when the operator chose a row with enter or a click."""
        self.post_message(RowChosen(self, key))

    def row_clicked(self, key: str, chain: int) -> None:
        """Called after a click put the cursor on a row; a double click chooses it."""
        if chain == 2 or self._click_chooses:
            self.row_chosen(key)

    def on_click(self, event: events.Click) -> None:
        """A click on a row puts the cursor there; a second one chooses it."""
        offset = event.get_content_offset(self)
        if offset is None or self.top + offset.y >= len(self.list.lines):
            return
        row = self.list.row_at(self.top + offset.y)
        if row.selectable:
            if row.key == self.cursor:
                self.post_message(RowHighlighted(self, row.key))
            self._highlight(row.key)
            self.row_clicked(row.key, event.chain)

    def request(self, what: str, *args: object) -> None:
        """Have something done that the pane cannot do itself; see `Requested`."""
        self.post_message(Requested(type(self).__name__, what, args))

    def _highlight(self, key: str) -> None:
        if key and key != self.cursor:
            self.move_cursor(key)
            self.following = self.following and key == self.rows[-1].key
            self.row_highlighted(key)

    # Place

    @property
    def gutter_width(self) -> int:
        """Cells before every line: the cursor's, the mark's where the pane has marks, and a blank."""
        return 3 if self.marks else 2

    @property
    def text_width(self) -> int:
        """Cells a line may take: the pane without its gutter and its scroll bar."""
        return max(0, self.content_size.width - self.gutter_width - 1)

    def _clamped(self, top: int) -> int:
        first, end = self.line_total()
        return max(first, min(top, end - self._room))

    @property
    def _room(self) -> int:
        """Lines of the pane that its own lines may take."""
        return max(1, self.content_size.height - (self._notice not in (None, LOADING)))

    def scroll_lines_to(self, top: int) -> None:
        """Put a line at the top of the pane; reaching the end resumes following."""
        top = self._clamped(top)
        self.following = self.FOLLOWS and top >= self._clamped(FAR)
        if self.following:
            self.unseen = 0
        if top != self.top:
            self.top = top
            self.refresh()
        self._refresh_subtitle()

    def reveal(self, lines: range) -> None:
        """Scroll as little as needed to show these lines, the first one in any case."""
        if not lines:
            return
        top = min(max(self.top, lines.stop - self._room), lines.start)
        if top != self.top:
            self.scroll_lines_to(top)

    def on_resize(self) -> None:
        """Break the lines anew; keep the end in view when it was, else the reader's place."""
        top = self.source.fit(self.text_width, self.top)
        self.top = self.top if self.following else top
        self.lines_changed()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll by the wheel."""
        event.stop()
        event.prevent_default()
        self.scroll_lines_to(self.top + 3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll by the wheel."""
        event.stop()
        event.prevent_default()
        self.scroll_lines_to(self.top - 3)

    def on_key(self, event: events.Key) -> None:
        """A letter of a row chooses it."""
        if (row := self.letters.get(event.character or "")) is not None:
            event.stop()
            event.prevent_default()
            self.row_chosen(row)

    def action_go(self, where: str) -> None:
        """Go a line or row, or a page less a line, up or down, or to the first or last of all."""
        page = max(1, self.content_size.height - 1)
        steps = {"up": -1, "down": 1, "page_up": -page, "page_down": page, "top": -FAR, "bottom": FAR}
        self.step(steps[where])

    def step(self, by: int) -> None:
        """Move the cursor by so many rows; where there is none, scroll by so many lines."""
        key = self.list.stepped(by, self.top)
        if key and self.FOLLOWS and by == FAR:
            self.move_cursor("")
            key = ""
        if not key:
            self.scroll_lines_to(self.top + by)
            return
        self._highlight(key)
        selectable = [row.key for row in self.rows if row.selectable]
        if key == selectable[0]:
            self.scroll_lines_to(0)
        elif key == selectable[-1] and by > 0:
            self.scroll_lines_to(FAR)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enter is the dialog's key where there is no row to choose, and `y` where that agrees."""
        if (action == "choose" and not self.cursor) or (
            action == "copy_row" and getattr(self.screen, "AGREES", False)
        ):
            return False
        return super().check_action(action, parameters)

    def action_choose(self) -> None:
        """Choose the row under the cursor."""
        self.row_chosen(self.cursor)

    # Copy

    def action_copy_row(self) -> None:
        """Copy the row under the cursor; the last line where there is no cursor, the whole of a text."""
        row = self.list.index.get(self.cursor)
        if row is not None and self.rows[row].copy:
            self.copy(self.rows[row].copy, "row")
        elif not isinstance(self.source, RowList):
            self.action_copy_pane()
        else:
            first, end = self.line_total()
            self.copy(_text(self, self.cursor_lines() or range(max(first, end - 1), end)), "row")

    def action_copy_pane(self) -> None:
        """Copy all the pane's lines."""
        self.copy(_text(self, range(*self.line_total())), "pane")

    def copy(self, text: str, what: str) -> None:
        """Copy a text, unless it is empty."""
        if text:
            self.post_message(CopyRequested(text, what))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text a mouse selection covers, in full even where the pane cuts it."""
        first, end = self.line_total()
        start = first if selection.start is None else max(first, selection.start.y)
        stop = end if selection.end is None else min(end, selection.end.y + 1)
        picked: list[str] = []
        for number in range(start, stop):
            if (span := selection.get_span(number)) is not None:
                text = plain(self.line(number))
                picked.append(text[span[0] : len(text) if span[1] == -1 else span[1]].rstrip())
        return ("\n".join(picked), "\n") if picked else None

    # Drawing

    def notify_style_update(self) -> None:
        """Forget resolved styles when the theme or the focus changed."""
        self.painter.forget()
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        """One line of the visible part; `y` is 0 at the top of the pane."""
        width = self.content_size.width
        first, end = self.line_total()
        number = self.top + y
        notice = self._notice or self._empty
        if first == end:
            return self.painter.notice(notice.text, *NOTICE_MARKS[notice.kind], y, width)
        if self._notice is not None and y == self._room < self.content_size.height:
            return self.painter.notice(notice.text, *NOTICE_MARKS[notice.kind], 1, width)
        if number >= end or width <= self.gutter_width:
            return Strip.blank(width, self.painter.named("text"))
        strip = self.draw(number, self.line(number), number in self.cursor_lines())
        side = self.painter.scroll_cell(y, self.top - first, end - first)
        return Strip([*strip, side], strip.cell_length + 1)

    def draw(self, number: int, pieces: Pieces, under: bool) -> Strip:
        """A line as a strip of the pane's width without the scroll bar; see `LinePainter.line`."""
        mark = self.mark(number) if self.marks else Piece("")
        return self.painter.line(number, pieces, mark, self.text_width, under=under)

    def _refresh_subtitle(self) -> None:
        badge = Content(f"{self.unseen} new ↓") if self.unseen else Content("")
        subtitle = Content(" · ").join([part for part in (self._caption, badge) if part])
        if subtitle != self._subtitle:
            self._subtitle = subtitle
            self.border_subtitle = subtitle or None


def _text(pane: LinePane, lines: range) -> str:
    return "\n".join(plain(pane.line(number)).rstrip() for number in lines)
