"""The shell the operator took over: a terminal in a pane.

The pane draws cells and nothing else: whatever the child writes goes through the emulator behind
its gate, so that no sequence of the child's reaches the real terminal.
While the pane has the focus every key is the child's, but the one that hands the shell back.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import ClassVar, Protocol

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from engine.core.text import clean_line
from widgets.base.dialog import ConfirmDialog
from widgets.base.line_pane import CopyRequested, Requested
from widgets.base.pane_words import Described
from widgets.terminal.protocol import encode_key, encode_paste
from widgets.terminal.screen import BitttyEmulator, restyled, row_strip, with_cursor

FRAME_S = 1 / 30
"""Seconds between two repaints, at least."""
SLICE = 512
"""Bytes given to the emulator before the loop gets its turn."""
WORK_S, REST_S = 0.008, 0.008
"""Seconds of a flood's work, and of the rest after it: a key takes many turns of the loop to its goal."""
BACKLOG_LIMIT = 1_048_576
"""Bytes that may wait; of twice as many the oldest go."""
WHEEL_LINES = 3
WORDS = (
    "YOU HOLD THE SHELL — ctrl+] hands it back",
    "YOU HOLD THE SHELL — ctrl+] ends",
    "YOUR SHELL — ctrl+]",
    "ctrl+]",
)
"""The pane's title, the longest that fits."""


class Child(Protocol):
    """The program behind the pane."""

    def write(self, data: bytes) -> None:
        """Take what the operator typed or pasted; it may be a password."""

    def answer(self, data: bytes) -> None:
        """Take the answer to one of its questions."""

    def resize(self, rows: int, columns: int) -> None:
        """Its screen has this size now."""


class TerminalPane(Described, Widget, can_focus=True):
    """The child's screen, its keyboard and its mouse.

    Args:
        child: is given what the operator does and what the terminal answers.
    """

    BINDING_GROUP_TITLE = "Shell"
    ALLOW_MAXIMIZE = False
    """A maximised widget does not get the escape key; Textual takes it to end the maximising."""
    COMPONENT_CLASSES: ClassVar[set[str]] = {"terminal--text"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "ctrl+right_square_bracket",
            "hand_back",
            "Hand back",
            key_display="ctrl+]",
            tooltip="Give the shell back to the agent",
            priority=True,
            id="terminal.hand-back",
        )
    ]

    def __init__(self, child: Child, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.child = child
        self._emulator = BitttyEmulator()
        self._backlog: list[bytes] = []
        self._waiting = 0
        self._settled = asyncio.Event()
        self._settled.set()
        self._dirty = False
        self._rested = asyncio.Event()
        self._rested.set()
        self._top: int | None = None
        self._cursor_row = 0
        self._told_size: tuple[int, int] | None = None
        self._base: Style | None = None

    # Output of the child

    def put(self, data: bytes) -> None:
        """Take output of the child, cut anywhere; the pane must be mounted.

        Of a flood that cannot be shown as fast as it comes the oldest goes: it could not have been read.
        """
        self._backlog.append(data)
        self._waiting += len(data)
        while self._waiting > 2 * BACKLOG_LIMIT and len(self._backlog) > 1:
            self._waiting -= len(self._backlog.pop(0))
        if self._settled.is_set():
            self._settled.clear()
            self.run_worker(self._drain(), group="terminal")

    async def settled(self) -> None:
        """Wait until all output taken is on the screen, or the pane is gone."""
        await self._settled.wait()

    async def _drain(self) -> None:
        try:
            while self._backlog:
                # What comes faster than it is shown is taken together, so that more can be skipped.
                await self._rested.wait()
                data = self._emulator.skim(b"".join(self._backlog))
                self._backlog.clear()
                self._waiting = 0
                begun = monotonic()
                for at in range(0, len(data), SLICE):
                    self._emulator.feed(data[at : at + SLICE])
                    self._screen_changed()
                    tired = monotonic() - begun > WORK_S
                    await asyncio.sleep(REST_S if tired else 0)
                    begun = monotonic() if tired else begun
        finally:
            self._settled.set()

    def _screen_changed(self) -> None:
        """Repaint now, or when the last repaint is long enough ago."""
        self._dirty = True
        if self._rested.is_set():
            self._rested.clear()
            self.set_timer(FRAME_S, self._rest_over)
            self._repaint()

    def _rest_over(self) -> None:
        self._rested.set()
        if self._dirty and not self._backlog:
            self._screen_changed()

    def _repaint(self) -> None:
        """Repaint the rows that changed, and tell the child what it asked."""
        self._dirty = False
        emulator = self._emulator
        if self._top is not None and (emulator.alternate_screen or self._top < emulator.first):
            self._show_from(None if emulator.alternate_screen else emulator.first)
        cursor = emulator.cursor.row
        offset = emulator.screen_top - self.top
        changed = {row + offset for row in (*emulator.take_dirty(), cursor, self._cursor_row)}
        self._cursor_row = cursor
        width, height = self.content_size
        regions = [Region(0, y, width, 1) for y in changed if 0 <= y < height]
        if regions:
            self.refresh(*regions)
        if self._top is not None:
            self._show_subtitle()
        if answers := emulator.take_answers():
            self.child.answer(answers)

    # Place

    @property
    def top(self) -> int:
        """The number of the line at the top of the pane."""
        return self._emulator.screen_top if self._top is None else self._top

    @property
    def at_end(self) -> bool:
        """Whether the pane shows the screen as it is, and not what scrolled away."""
        return self._top is None

    def _show_further(self, lines: int) -> None:
        self._show_from(self.top + lines)

    def _show_from(self, top: int | None) -> None:
        emulator = self._emulator
        if top is not None:
            top = None if top >= emulator.screen_top else max(top, emulator.first)
        if top != self._top:
            self._top = top
            self.refresh()
            self._show_subtitle()

    def on_resize(self) -> None:
        """Give the child's screen the size of the pane."""
        columns, rows = self.content_size
        title = next((words for words in WORDS if cell_len(words) <= columns - 4), "")
        self.border_title = Content(title)
        if columns < 1 or rows < 1:
            return
        self._emulator.resize(columns, rows)
        self._top = None
        self._screen_changed()
        self.refresh()
        self._show_subtitle()
        if self._emulator.size != self._told_size:
            self._told_size = self._emulator.size
            self.child.resize(self._emulator.size[1], self._emulator.size[0])

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Say where keys go, and draw the cursor accordingly."""
        super().watch_has_focus(_has_focus)
        self._show_subtitle()
        self._screen_changed()

    def _show_subtitle(self) -> None:
        parts = [] if self.has_focus else ["keys go elsewhere; click here to type"]
        if self._top is not None:
            parts.append(f"{self._emulator.screen_top - self._top} lines back; type to return")
        self.border_subtitle = Content(" · ".join(parts)) if parts else None

    # The operator

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """All keys: no binding of the screen or the app may take one, quitting included."""
        return True

    def action_hand_back(self) -> None:
        """Give the shell back to the agent."""
        self.post_message(Requested("TerminalPane", "hand_back"))

    def on_key(self, event: events.Key) -> None:
        """Send the key to the child; shift+pageup and shift+pagedown scroll where there is something to."""
        event.stop()
        event.prevent_default()
        if event.key in ("shift+pageup", "shift+pagedown") and not self._emulator.alternate_screen:
            page = max(1, self.content_size.height - 1)
            self._show_further(-page if event.key == "shift+pageup" else page)
        else:
            self._send(encode_key(event.key, event.character, self._emulator.modes))

    def on_paste(self, event: events.Paste) -> None:
        """Send a pasted text; ask first if the child would run its lines as they come."""
        event.stop()
        event.prevent_default()
        text = event.text
        lines = text.splitlines()
        if self._emulator.modes.bracketed_paste or not ("\n" in text or "\r" in text):
            self._send(encode_paste(text, self._emulator.modes.bracketed_paste))
            return
        dialog = ConfirmDialog(
            f"Paste {len(lines)} line{'s' if len(lines) > 1 else ''} into the shell?",
            f"Each line runs as if you had pressed enter after it. First: {clean_line(lines[0], limit=60)}",
            yes="paste",
            no="do not paste",
        )

        def answered(agreed: bool | None) -> None:
            if agreed and self.is_attached:
                self._send(encode_paste(text, self._emulator.modes.bracketed_paste))

        self.app.push_screen(dialog, answered)

    def _send(self, data: bytes) -> None:
        if data:
            self._show_from(None)
            self.child.write(data)

    # The mouse

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """The end of a selection, which is copied."""
        if (selection := self.text_selection) is not None:
            picked = self.get_selection(selection)
            if picked is not None and picked[0]:
                self.post_message(CopyRequested(picked[0], "selection"))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Towards the beginning."""
        self._wheel(event, -WHEEL_LINES)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Towards the end."""
        self._wheel(event, WHEEL_LINES)

    def _wheel(self, event: events.MouseEvent, lines: int) -> None:
        """Arrow keys on the child's alternate screen, else scrolling."""
        event.stop()
        event.prevent_default()
        if self._emulator.alternate_screen:
            key = encode_key("up" if lines < 0 else "down", None, self._emulator.modes)
            self.child.write(key * WHEEL_LINES)
        else:
            self._show_further(lines)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text a mouse selection covers; rows that wrapped are one line again."""
        emulator = self._emulator
        start = emulator.first if selection.start is None else max(emulator.first, selection.start.y)
        stop = emulator.end if selection.end is None else min(emulator.end, selection.end.y + 1)
        picked = ""
        for number, row in enumerate(emulator.rows(start, stop), start):
            if (span := selection.get_span(number)) is not None:
                picked += row.text[span[0] : len(row.text) if span[1] == -1 else span[1]]
                picked += "" if row.wrapped else "\n"
        return (picked.removesuffix("\n"), "\n") if picked else None

    # Drawing

    def notify_style_update(self) -> None:
        """Forget the resolved style when the theme changed."""
        self._base = None
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        """One row of what is shown; `y` is 0 at the top of the pane."""
        if self._base is None:
            self._base = self.get_component_rich_style("terminal--text")
        width, number, emulator = self.content_size.width, self.top + y, self._emulator
        rows = emulator.rows(number, number + 1)
        if not rows:
            return Strip.blank(width, self._base)
        strip = row_strip(rows[0], self._base)
        if (selection := self.text_selection) is not None:
            strip = self._with_selection(strip, rows[0].text, selection.get_span(number))
        strip = strip.apply_offsets(0, number).adjust_cell_length(width, self._base)
        cursor = emulator.cursor
        if self._top is None and cursor.visible and cursor.row == y:
            block = self.has_focus and cursor.shape != "underline"
            strip = with_cursor(strip, min(cursor.column, width - 1), block=block)
        return strip

    def _with_selection(self, strip: Strip, text: str, span: tuple[int, int] | None) -> Strip:
        if span is None:
            return strip
        start = cell_len(text[: span[0]])
        end = strip.cell_length if span[1] == -1 else cell_len(text[: span[1]])
        chosen = self.screen.get_component_rich_style("screen--selection")
        return restyled(strip, start, end, chosen)
