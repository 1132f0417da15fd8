"""The tabs of the narrow layout: which panes there are, and which one is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.pane_words import Described
from widgets.base.text_layout import Piece, width_of

Tab = tuple[str, str, str]
"""Its id; its key and name, such as `4 Errors`; a word or number that wants to be seen."""


class StripLine(Described, Widget):
    """One line of styled parts, each of which may name what a click on it means."""

    PREFIX: ClassVar[str]
    """How its component classes begin; one of them is that of `text`."""

    def parts(self, width: int) -> Iterable[tuple[str, str, str]]:
        """The text of each part, the name of its style, and what a click on it means, if anything."""
        raise NotImplementedError

    def part_at(self, column: int) -> str:
        """What a click on a column means; empty for nothing."""
        for text, _, meaning in self.parts(self.content_size.width):
            column -= width_of((Piece(text),))
            if column < 0:
                return meaning
        return ""

    def render_line(self, y: int) -> Strip:
        """The line."""
        style, width = self.get_component_rich_style, self.content_size.width
        parts = self.parts(width) if y == 0 else ()
        segments = [Segment(text, style(f"{self.PREFIX}--{name}")) for text, name, _ in parts]
        return Strip(segments).adjust_cell_length(width, style(f"{self.PREFIX}--text"))


class PaneTabs(StripLine):
    """One line of tabs; a click chooses one. Labels shorten to their key where there is no room."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"tabs--text", "tabs--current", "tabs--badge"}

    PREFIX = "tabs"

    @dataclass
    class TabChosen(Message):
        """The operator clicked a tab."""

        tab_id: str

    _tabs: tuple[Tab, ...] = ()
    _current = ""

    def show(self, tabs: tuple[Tab, ...], current: str) -> None:
        """Show these, one of them as the current one."""
        if (tabs, current) != (self._tabs, self._current):
            self._tabs, self._current = tabs, current
            self.refresh()

    def parts(self, width: int) -> Iterator[tuple[str, str, str]]:
        """Each tab with its badge."""
        full = (
            sum(width_of((Piece(clean_line(label) + badge),)) + 3 for _, label, badge in self._tabs) <= width
        )
        yield " ", "text", ""
        for tab, label, badge in self._tabs:
            current, label = tab == self._current, clean_line(label)
            yield label if full or current else label[:1], "current" if current else "text", tab
            yield f" {clean_line(badge)}" if badge else "", "badge", tab
            yield "  ", "text", ""

    def on_click(self, event: events.Click) -> None:
        """Choose the tab under the pointer."""
        if tab := self.part_at(event.x):
            self.post_message(self.TabChosen(tab))
