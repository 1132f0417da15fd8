"""The three layouts: wide, narrow with tabs, and one pane alone."""

from __future__ import annotations

from textual import events, on
from textual.widget import Widget

from app.cockpit.base import CockpitBase
from app.projection import Pane
from widgets import StatusModel
from widgets.pane_tabs import PaneTabs, TabLine, TabsModel

NARROW, TINY = 100, 60
"""Columns below which the panes become tabs, and below which one pane stands alone."""
SHORT = 16
"""Lines below which one pane stands alone."""

PANES: dict[str, tuple[str, str]] = {
    "goals": ("1", "Goals"),
    "plan": ("2", "Plan"),
    "memory": ("3", "Memory"),
    "errors": ("4", "Errors"),
    "session": ("5", "Session"),
    "mind": ("6", "Mind"),
}


class Layout(CockpitBase):
    """Which panes are shown where."""

    _current = "session"
    """The pane that the narrow layout shows beside the plan."""
    _zoomed = False

    def on_resize(self, event: events.Resize) -> None:
        """Choose the layout for the new size."""
        self._lay_out(event.size.width, event.size.height)

    def _lay_out(self, width: int = 0, height: int = 0) -> None:
        width, height = width or self.size.width, height or self.size.height
        tiny = width < TINY or height < SHORT
        solo = tiny or self._zoomed
        screen = self.screen_stack[0]
        screen.set_class(solo, "-solo")
        screen.set_class(not solo and width < NARROW, "-narrow")
        screen.set_class(tiny, "-tiny")
        for name in PANES:
            screen.set_class(name == self._current, f"-tab-{name}")
        self._projector.dirty |= set(Pane)

    def action_pane(self, name: str) -> None:
        """Show and focus a pane."""
        if name != "plan" or self.screen_stack[0].has_class("-solo"):
            self._current = name
        self._lay_out()
        self.call_after_refresh(self._pane(name).focus)

    def action_zoom(self) -> None:
        """Give the focused pane the whole screen, or give the others their room back."""
        focused = self.focused
        while focused is not None and focused.id not in PANES:
            focused = focused.parent if isinstance(focused.parent, Widget) else None
        if focused is not None and focused.id is not None:
            self._current = focused.id
        self._zoomed = not self._zoomed
        self._lay_out()

    def _draw_tabs(self, status: StatusModel) -> None:
        tabs = tuple(
            TabLine(name, f"{key} {title}", _badge(name, status))
            for name, (key, title) in PANES.items()
            if name != "plan" or self.screen_stack[0].has_class("-solo")
        )
        self.query_one("#tabs", PaneTabs).show(TabsModel(tabs, self._current))

    @on(PaneTabs.TabChosen)
    def _tab_chosen(self, event: PaneTabs.TabChosen) -> None:
        self.action_pane(event.tab_id)


def _badge(pane: str, status: StatusModel) -> str:
    if pane == "errors" and status.errors:
        return f"{status.errors} open"
    return "?" if pane == "goals" and status.mode == "INTERVENTION" else ""
