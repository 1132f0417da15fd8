"""The tabs of the narrow layout: which panes there are, and which one is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from engine.core.text import clean_line
from widgets.base.text_layout import Piece, width_of


@dataclass(frozen=True, slots=True)
class TabLine:
    """One tab."""

    id: str
    label: str
    """Its key and name, such as `4 Errors`."""
    badge: str = ""
    """A word or number that wants to be seen, such as how many errors are open."""


@dataclass(frozen=True, slots=True)
class TabsModel:
    """What the strip shows."""

    tabs: tuple[TabLine, ...] = ()
    current: str = ""


class PaneTabs(Widget):
    """One line of tabs; a click chooses one. Labels shorten to their key where there is no room."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"tabs--text", "tabs--current", "tabs--badge"}
    DEFAULT_CSS = """
    PaneTabs {
        height: 1;
        background: $background;
        & > .tabs--text { color: $foreground-muted; }
        & > .tabs--current { color: $text-primary; text-style: bold underline; }
        & > .tabs--badge { color: $text-error; text-style: bold; }
    }
    """

    @dataclass
    class TabChosen(Message):
        """The operator clicked a tab."""

        tab_id: str

    _model = TabsModel()

    def show(self, model: TabsModel) -> None:
        """Show this model."""
        if model != self._model:
            self._model = model
            self.refresh()

    def _labels(self, width: int) -> list[tuple[TabLine, str]]:
        full = [(tab, clean_line(tab.label)) for tab in self._model.tabs]
        if sum(width_of((Piece(label + tab.badge),)) + 3 for tab, label in full) <= width:
            return full
        return [(tab, label if tab.id == self._model.current else label[:1]) for tab, label in full]

    def render_line(self, y: int) -> Strip:
        """The strip."""
        width = self.content_size.width
        base = self.get_component_rich_style("tabs--text")
        segments: list[Segment] = [Segment(" ", base)]
        for tab, label in self._labels(width):
            name = "tabs--current" if tab.id == self._model.current else "tabs--text"
            segments.append(Segment(label, self.get_component_rich_style(name)))
            if tab.badge:
                badge = clean_line(tab.badge)
                segments.append(Segment(f" {badge}", self.get_component_rich_style("tabs--badge")))
            segments.append(Segment("  ", base))
        return Strip(segments).adjust_cell_length(width, base)

    def on_click(self, event: events.Click) -> None:
        """Choose the tab under the pointer."""
        column = 1
        for tab, label in self._labels(self.content_size.width):
            end = column + width_of((Piece(label),)) + (len(tab.badge) + 1 if tab.badge else 0)
            if column <= event.x < end:
                self.post_message(self.TabChosen(tab.id))
                return
            column = end + 2
