"""The pane all panes are made of: numbered lines, drawn one by one, with their own scrolling.

Scrolling is kept here and not in Textual's virtual size, because a virtual size that grows
costs a layout of the whole screen per update (spec textual-craft §0 finding 5). Lines have
absolute numbers that survive the loss of old ones, so that a text selection and a reader's
place stay on their lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from engine.domain.text import clean_line
from widgets.pieces import Piece, Pieces, cut, plain, width_of, wrap

STYLE_NAMES = ("text", "dim", "strong", "accent", "success", "warning", "error", "heading")


@dataclass(frozen=True, slots=True)
class Notice:
    """What a pane says instead of lines."""

    text: str
    kind: Literal["empty", "loading", "error"] = "empty"


NOTICE_MARKS: dict[str, tuple[str, str]] = {
    "empty": ("", "dim"),
    "loading": ("… ", "accent"),
    "error": ("✗ ", "error"),
}


@dataclass
class CopyRequested(Message):
    """The operator wants a text on the clipboard."""

    text: str
    what: str
    """What the text is, for the confirmation: `row`, `pane`."""


class LinePane(Widget, can_focus=True):
    """Draws the visible ones of any number of lines and follows the end unless the reader left it.

    A subclass answers `line_total` and `line`, and calls `lines_changed` after its lines did.
    """

    EMPTY: ClassVar[str] = ""
    """Says what will appear here and which key makes it appear."""
    FOLLOWS: ClassVar[bool] = False
    """True for panes that show the newest line as long as the reader is at the end."""
    MARKS: ClassVar[bool] = False
    """True for panes whose lines have a mark of one cell before them."""
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"line--{name}" for name in STYLE_NAMES),
        "line--cursor",
        "line--cursor-blurred",
        "line--track",
        "line--thumb",
    }
    DEFAULT_CSS = """
    LinePane {
        background: $background;
        color: $foreground;
        border: round $border-blurred;
        border-title-color: $foreground-muted;
        border-subtitle-color: $foreground-muted;
        padding: 0;
        min-height: 1;
        &:focus {
            border: heavy $border;
            border-title-color: $text-primary;
            border-title-style: bold;
            border-subtitle-color: $text-primary;
        }
        &.-bare, &.-bare:focus { border: none; }
        & > .line--text { color: $foreground; }
        & > .line--dim { color: $foreground-muted; }
        & > .line--strong { color: $foreground; text-style: bold; }
        & > .line--accent { color: $text-primary; }
        & > .line--success { color: $text-success; }
        & > .line--warning { color: $text-warning; }
        & > .line--error { color: $text-error; }
        & > .line--heading { color: $foreground-muted; text-style: bold; }
        & > .line--cursor { background: $primary 16%; color: $text-primary; }
        & > .line--cursor-blurred { background: $foreground 7%; color: $foreground-muted; }
        & > .line--track { color: $border-blurred; }
        & > .line--thumb { color: $foreground-muted; }
        &:ansi > .line--dim, &:ansi > .line--heading { color: ansi_default; text-style: dim; }
        &:ansi > .line--cursor { background: ansi_default; text-style: reverse; }
        &:ansi > .line--cursor-blurred { background: ansi_default; text-style: bold; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "up", "Up", show=False, id="pane.up"),
        Binding("down,j", "down", "Down", show=False, id="pane.down"),
        Binding("pageup,ctrl+u", "page_up", "Page up", show=False, id="pane.page-up"),
        Binding("pagedown,ctrl+d", "page_down", "Page down", show=False, id="pane.page-down"),
        Binding("home", "top", "Top", show=False, id="pane.top"),
        Binding("end,G", "bottom", "End; follow", show=False, id="pane.bottom"),
        Binding("y", "copy_row", "Copy the row", show=False, id="pane.copy-row"),
        Binding("Y", "copy_pane", "Copy the pane", show=False, id="pane.copy-pane"),
    ]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._top = 0
        self._follow = self.FOLLOWS
        self._unseen = 0
        self._notice: Notice | None = None
        self._caption = Content("")
        self._subtitle = Content("")
        self._styles_by_name: dict[str, Style] = {}
        self._chord = False

    # What a subclass provides

    def line_total(self) -> tuple[int, int]:
        """The absolute number of the first line kept, and that of the line after the last."""
        raise NotImplementedError

    def line(self, number: int) -> Pieces:
        """The line with this absolute number, not yet cut to the pane's width."""
        raise NotImplementedError

    def mark(self, number: int) -> Piece:
        """What stands in the gutter beside a line, one cell wide."""
        return Piece(" ")

    def cursor_lines(self) -> range:
        """The absolute numbers of the lines under the cursor."""
        return range(0)

    # What a subclass calls

    def lines_changed(self, added: int = 0) -> None:
        """Repaint after the lines changed; keep the reader's place, or follow the end.

        Args:
            added: new lines since the last call, for the `N new ↓` badge.
        """
        if self._follow:
            self._unseen = 0
        else:
            self._unseen += added
        self._top = self._clamped(self._bottom_top() if self._follow else self._top)
        self.refresh()
        self._refresh_subtitle()

    def repaint_lines(self, first: int, count: int = 1) -> None:
        """Repaint single lines where they are on the screen."""
        self.refresh(Region(0, first - self._top, max(1, self.content_size.width), count))

    def set_notice(self, notice: Notice | None) -> None:
        """Show a notice in place of lines; None shows `EMPTY` when there are no lines."""
        if notice != self._notice:
            self._notice = notice
            self.refresh()

    def set_caption_text(self, text: str) -> None:
        """Show a text in the lower border, beside the badge of unseen lines."""
        caption = Content(text)
        if caption != self._caption:
            self._caption = caption
            self._refresh_subtitle()

    # Place

    @property
    def top(self) -> int:
        """Absolute number of the first visible line."""
        return self._top

    @property
    def following(self) -> bool:
        """True while new lines scroll into view by themselves."""
        return self._follow

    @property
    def unseen(self) -> int:
        """Lines that arrived since the reader left the end."""
        return self._unseen

    @property
    def gutter_width(self) -> int:
        """Cells before every line: the cursor's, the mark's where the pane has marks, and a blank."""
        return 3 if self.MARKS else 2

    @property
    def text_width(self) -> int:
        """Cells a line may take: the pane without its gutter and its scroll bar."""
        return max(0, self.content_size.width - self.gutter_width - 1)

    def _bottom_top(self) -> int:
        return self.line_total()[1] - max(1, self.content_size.height)

    def _clamped(self, top: int) -> int:
        return max(self.line_total()[0], min(top, self._bottom_top()))

    def scroll_lines_to(self, top: int) -> None:
        """Put a line at the top of the pane; reaching the end resumes following."""
        top = self._clamped(top)
        self._follow = self.FOLLOWS and top >= self._bottom_top()
        if self._follow:
            self._unseen = 0
        if top != self._top:
            self._top = top
            self.refresh()
        self._refresh_subtitle()

    def stay(self) -> None:
        """Stop following: the reader looks at something."""
        self._follow = False

    def reveal(self, lines: range) -> None:
        """Scroll as little as needed to show these lines, the first one in any case."""
        if not lines:
            return
        height = max(1, self.content_size.height)
        top = min(max(self._top, lines.stop - height), lines.start)
        if top != self._top:
            self.scroll_lines_to(top)

    def on_resize(self) -> None:
        """Keep the end in view when it was, else the reader's place."""
        self.lines_changed()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll by the wheel."""
        event.stop()
        event.prevent_default()
        self.scroll_lines_to(self._top + 3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll by the wheel."""
        event.stop()
        event.prevent_default()
        self.scroll_lines_to(self._top - 3)

    def on_key(self, event: events.Key) -> None:
        """`gg` goes to the top, as in vi; any other key ends the chord."""
        armed, self._chord = self._chord, event.key == "g"
        if event.key == "g":
            event.stop()
            event.prevent_default()
            if armed:
                self._chord = False
                self.action_top()

    def action_up(self) -> None:
        """Go one line up."""
        self.scroll_lines_to(self._top - 1)

    def action_down(self) -> None:
        """Go one line down."""
        self.scroll_lines_to(self._top + 1)

    def action_page_up(self) -> None:
        """Go one page up, less a line."""
        self.scroll_lines_to(self._top - max(1, self.content_size.height - 1))

    def action_page_down(self) -> None:
        """Go one page down, less a line."""
        self.scroll_lines_to(self._top + max(1, self.content_size.height - 1))

    def action_top(self) -> None:
        """Go to the first line kept."""
        self.scroll_lines_to(self.line_total()[0])

    def action_bottom(self) -> None:
        """Go to the last line and follow what comes."""
        self.scroll_lines_to(self._bottom_top())

    # Copy

    def action_copy_row(self) -> None:
        """Copy the row under the cursor, or the last line where there is no cursor."""
        first, end = self.line_total()
        lines = self.cursor_lines() or range(max(first, end - 1), end)
        self._copy("\n".join(plain(self.line(number)).rstrip() for number in lines), "row")

    def action_copy_pane(self) -> None:
        """Copy all the pane's lines."""
        first, end = self.line_total()
        self._copy("\n".join(plain(self.line(number)).rstrip() for number in range(first, end)), "pane")

    def _copy(self, text: str, what: str) -> None:
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
        self._styles_by_name = {}
        super().notify_style_update()

    def style_named(self, name: str) -> Style:
        """The resolved style of a component class, by its short name."""
        if name not in self._styles_by_name:
            style = self.get_component_rich_style(f"line--{name}")
            self._styles_by_name[name] = style
        return self._styles_by_name[name]

    def render_line(self, y: int) -> Strip:
        """One line of the visible part; `y` is 0 at the top of the pane."""
        size = self.content_size
        base = self.style_named("text")
        first, end = self.line_total()
        number = self._top + y
        if first == end:
            return self._notice_line(y, size.width, base)
        if number >= end or size.width <= self.gutter_width:
            return Strip.blank(size.width, base)
        under = number in self.cursor_lines()
        strip = self.draw(number, self.line(number), under)
        return Strip([*strip, self._scroll_cell(y, first, end)], strip.cell_length + 1)

    def draw(self, number: int, pieces: Pieces, under: bool) -> Strip:
        """A line as a strip of the pane's width without the scroll bar.

        Args:
            number: absolute number of the line; the mouse selection is told it.
            pieces: the line.
            under: whether the cursor is on it.
        """
        width = self.text_width
        bar = self.style_named("cursor" if self.has_focus else "cursor-blurred") if under else None
        mark = self.mark(number) if self.MARKS else Piece("")
        blank = self._piece_style("text", bar)
        segments = [Segment(text, self._piece_style(style, bar)) for text, style in cut(pieces, width)]
        body = Strip(segments)
        if (selection := self.text_selection) is not None:
            body = self._with_selection(body, selection, number)
        body = body.apply_offsets(0, number).adjust_cell_length(width, blank)
        head = Segment("▌" if under else " ", self._piece_style("accent", bar))
        side = Segment(mark.text + " ", self._piece_style(mark.style, bar))
        return Strip([head, side, *body], self.gutter_width + width)

    def _piece_style(self, style: str | Style, bar: Style | None) -> Style:
        if bar is None:
            return self.style_named(style) if isinstance(style, str) else self.style_named("text") + style
        if bar.reverse:
            # Reversed colours would turn the cursor's bar into a patchwork.
            return self.style_named("text") + bar
        # Secondary text would lose its contrast on the cursor's bar.
        own = (
            self.style_named("text" if style in ("dim", "heading") else style)
            if isinstance(style, str)
            else style
        )
        return own + Style(bgcolor=bar.bgcolor, bold=bar.bold, reverse=bar.reverse)

    def _with_selection(self, body: Strip, selection: Selection, number: int) -> Strip:
        span = selection.get_span(number)
        if span is None:
            return body
        text = body.text
        end = len(text) if span[1] == -1 else min(span[1], len(text))
        cells = width_of((Piece(text[: span[0]]),)), width_of((Piece(text[:end]),))
        if cells[0] >= cells[1]:
            return body
        chosen = self.screen.get_component_rich_style("screen--selection")
        parts = list(body.divide([cells[0], cells[1], body.cell_length]))
        middle = Strip([Segment(seg.text, (seg.style or Style()) + chosen) for seg in parts[1]])
        return Strip.join([parts[0], middle, *parts[2:]])

    def _scroll_cell(self, y: int, first: int, end: int) -> Segment:
        height, total = self.content_size.height, end - first
        if total <= height or height < 2:
            return Segment(" ", self.style_named("text"))
        length = max(1, height * height // total)
        start = round((self._top - first) * (height - length) / (total - height))
        on = start <= y < start + length
        return Segment("┃" if on else "│", self.style_named("thumb" if on else "track"))

    def _notice_line(self, y: int, width: int, base: Style) -> Strip:
        notice = self._notice or Notice(self.EMPTY)
        mark, style = NOTICE_MARKS[notice.kind]
        lines = wrap(
            (Piece(mark + clean_line(notice.text), style),), max(1, width - 4), indent=len(mark), most=12
        )
        if y == 0 or y > len(lines) or width < 6:
            return Strip.blank(width, base)
        pieces = lines[y - 1]
        segments = [Segment("  ", base), *(Segment(p.text, self.style_named(str(p.style))) for p in pieces)]
        return Strip(segments).adjust_cell_length(width, base)

    def _refresh_subtitle(self) -> None:
        badge = Content(f"{self._unseen} new ↓") if self._unseen else Content("")
        parts = [part for part in (self._caption, badge) if part]
        subtitle = Content(" · ").join(parts)
        if subtitle != self._subtitle:
            self._subtitle = subtitle
            self.border_subtitle = subtitle or None
