"""The three layouts: wide, narrow with tabs, and one pane alone."""

from __future__ import annotations

from typing import Any

from textual import events, on
from textual.screen import Screen
from textual.widget import Widget

from app.cockpit.base import CockpitBase
from app.projection import Pane, Projector
from engine.journal.event import Event
from widgets import CommandBar, PlanPane, StatusModel, TerminalPane
from widgets.pane_tabs import PaneTabs, TabLine, TabsModel

NARROW, TINY = 100, 60
"""Columns below which the panes become tabs, and below which one pane stands alone."""
LOW, SHORT, FLAT = 30, 16, 12
"""Lines below which the narrow plan shows no detail (until `v`), below which one pane stands alone, and
below which it loses its border too."""

PANES: dict[str, tuple[str, str]] = {
    "goals": ("1", "Goals"),
    "plan": ("2", "Plan"),
    "memory": ("3", "Memory"),
    "errors": ("4", "Errors"),
    "session": ("5", "Session"),
    "mind": ("6", "Mind"),
}

SHARED = {"world": "session", "beliefs": "memory"}
"""Panes that stand in another one's place, with that one."""


class Layout(CockpitBase):
    """Which panes are shown where."""

    _current = "plan"
    """The pane that was chosen last; it is the one that stands alone."""
    _beside = "session"
    """The pane that the narrow layout shows beside the plan."""
    _zoomed = False
    _session_of = ""
    """The agent whose session the pane shows; empty where it is to be filled anew."""
    _terminal: TerminalPane | None = None
    """The shell that stands in the session's place."""

    _beliefs_first = True
    """Whether a reasoner's beliefs stand in place of working memory."""
    _world_first = True
    """Whether the world of an agent that lives in one stands in the session's place."""

    def _pane(self, name: str) -> Widget:
        if name == "session" and self._terminal is not None:
            return self._terminal
        if name == "session" and self._shows_world:
            return super()._pane("world")
        state = self._projector.state
        if name == "memory" and state is not None and state.reasons and self._beliefs_first:
            return super()._pane("beliefs")
        return super()._pane(name)

    @property
    def _lives_in_world(self) -> bool:
        state = self._projector.state
        return state is not None and bool(state.world)

    @property
    def _shows_world(self) -> bool:
        """Whether the world stands in the session's place now."""
        return self._world_first and self._lives_in_world and self._terminal is None

    def _set_places(self) -> None:
        """Of the panes that share a place, show the one whose turn it is."""
        for name in ("session", "memory"):
            chosen = self._pane(name)
            for pane in self.query(f".{name}"):
                pane.set_class(pane is not chosen, "-away")

    def on_resize(self, event: events.Resize) -> None:
        """Choose the layout for the new size; the focused pane stays in view."""
        self._choose(self._focused_pane())
        self._lay_out(event.size.width, event.size.height)

    def _focused_pane(self) -> str:
        """The pane that has the focus, or the empty string."""
        focused = self.focused
        if isinstance(focused, TerminalPane):
            return "session"
        while focused is not None and focused.id not in PANES and focused.id not in SHARED:
            focused = focused.parent if isinstance(focused.parent, Widget) else None
        if focused is None or focused.id is None:
            return ""
        return SHARED.get(focused.id, focused.id)

    def _choose(self, pane: str) -> None:
        if pane:
            self._current = pane
            self._beside = self._beside if pane == "plan" else pane

    # -------------------------------------------------------------- now and then

    def _show_past(self, shown: Projector, event: Event) -> None:
        """Let the panes show a projection of what was after an event."""
        self._projector, self._looked_at = shown, event
        self._projection_changed()

    def _to_now(self) -> None:
        """Let the panes show what happens."""
        if self._in_past:
            agent, self._projector, self._looked_at = self._agent, self._live, None
            self._live.select(agent)
            self._projection_changed()

    def _projection_changed(self) -> None:
        self._session_of = ""
        self.screen_stack[0].set_class(self._in_past, "-past")
        self._set_places()
        self._lay_out()

    def get_default_screen(self) -> Screen[Any]:
        """Textual's, in this terminal's layout from the start: a change of it styles every widget anew."""
        screen = super().get_default_screen()
        return screen.update_classes(self._screen_classes(*self.size), update=False)

    def _screen_classes(self, width: int, height: int) -> dict[str, bool]:
        """What the screen's style sheet knows of the layout."""
        tiny = width < TINY or height < SHORT
        solo = tiny or self._zoomed
        shown = self._current if solo else self._beside
        return {
            "-solo": solo,
            "-narrow": not solo and width < NARROW,
            "-tiny": tiny,
            "-low": height < LOW,
            "-flat": height < FLAT,
            **{f"-tab-{name}": name == shown for name in PANES},
        }

    def _lay_out(self, width: int = 0, height: int = 0) -> None:
        width, height = width or self.size.width, height or self.size.height
        # At once, since each change of the screen's classes styles every widget anew.
        self.screen_stack[0].update_classes(self._screen_classes(width, height))
        for name in PANES:
            self._pane(name).set_class(height < FLAT, "-bare")
        self.query_one("#command", CommandBar).set_class(height < FLAT, "-compact")
        self._projector.dirty |= set(Pane)

    def action_pane(self, name: str) -> None:
        """Show and focus a pane."""
        self._choose(name)
        self._lay_out()
        self._focus_pane(name)

    def _focus_pane(self, name: str) -> None:
        """Give the keys to a pane at once: later, it would take them from a bar that was opened meanwhile."""
        pane = self._pane(name)
        taker = pane.steps if isinstance(pane, PlanPane) else pane
        self.screen_stack[0].set_focus(taker, scroll_visible=False)

    def _show_beside(self, pane: str) -> None:
        """Show a pane beside the plan where the layout is narrow; the focus stays where it is."""
        self._beside = pane
        self._lay_out()

    def action_zoom(self) -> None:
        """Give the focused pane the whole screen, or give the others their room back."""
        self._choose(self._focused_pane())
        self._zoomed = not self._zoomed
        self._lay_out()

    def _draw_tabs(self, status: StatusModel) -> None:
        solo = self.screen_stack[0].has_class("-solo")
        tabs = tuple(
            TabLine(name, f"{key} {self._title(name, title)}", _badge(name, status))
            for name, (key, title) in PANES.items()
            if name != "plan" or solo
        )
        current = self._current if solo else self._beside
        self.query_one("#tabs", PaneTabs).show(TabsModel(tabs, current))

    def _title(self, name: str, title: str) -> str:
        """The title of what stands in a pane's place."""
        return {"world": "World", "beliefs": "Beliefs"}.get(self._pane(name).id or "", title)

    @on(PaneTabs.TabChosen)
    def _tab_chosen(self, event: PaneTabs.TabChosen) -> None:
        self.action_pane(event.tab_id)


def _badge(pane: str, status: StatusModel) -> str:
    if pane == "errors" and status.errors:
        return f"{status.errors} open"
    return "?" if pane == "goals" and status.asks else ""
