"""The layouts (wide, narrow with tabs, one pane alone) and the themes."""

from __future__ import annotations

from textual import events
from textual.widget import Widget

from app.cockpit.context import CockpitContext
from app.projection.projector import Pane, Projector
from engine.core.journal import Event
from themes.loading import DEFAULT_THEME, load_themes
from widgets.base.pane_tabs import PaneTabs
from widgets.panes.plan import PlanPane
from widgets.panes.status_bar import StatusModel
from widgets.terminal.pane import TerminalPane

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


def _badge(pane: str, status: StatusModel) -> str:
    if pane == "errors" and status.errors:
        return f"{status.errors} open"
    return "?" if pane == "goals" and status.asks else ""


class Layout:
    """Which panes are shown where, and in which colours."""

    def __init__(self, context: CockpitContext) -> None:
        self._context = context
        context.frame_hooks.append(self.arrange)
        self._current = "plan"
        """The pane that was chosen last; it is the one that stands alone."""
        self._beside = "session"
        """The pane that the narrow layout shows beside the plan."""
        self.zoomed = False
        self.shell_zoomed = False
        """Whether that is for a shell that needs the room; the operator's own zoom outlasts the shell."""
        self.session_of = ""
        """The agent whose session the pane shows; empty where it is to be filled anew."""
        self.terminal: TerminalPane | None = None
        """The shell that stands in the session's place."""
        self._beliefs_first = True
        """Whether a reasoner's beliefs stand in place of working memory."""
        self._world_first = True
        """Whether the world of an agent that lives in one stands in the session's place."""
        self._arranged = (False, False)
        """Whether beliefs and a world are in place of working memory and the session."""
        # Before the panes are there: a theme that is taken later styles each of them a second time.
        context.setting_problems += [*self._register_themes(), *self._take_theme()]

    def pane(self, name: str) -> Widget:
        """What stands in a pane's place."""
        if name == "session" and self.terminal is not None:
            return self.terminal
        if name == "session" and self.shows_world:
            name = "world"
        elif name == "memory" and self.shows_beliefs:
            name = "beliefs"
        return self._context.app.query_one(f"#{name}")

    @property
    def shows_beliefs(self) -> bool:
        """Whether a reasoner's beliefs stand in the place of working memory now."""
        return self._beliefs_first and self._context.reasoner is not None

    @property
    def _lives_in_world(self) -> bool:
        state = self._context.state
        return state is not None and bool(state.world)

    @property
    def shows_world(self) -> bool:
        """Whether the world stands in the session's place now."""
        return self._world_first and self._lives_in_world and self.terminal is None

    def set_places(self) -> None:
        """Of the panes that share a place, show the one whose turn it is."""
        for name in ("session", "memory"):
            chosen = self.pane(name)
            for pane in self._context.app.query(f".{name}"):
                pane.set_class(pane is not chosen, "-away")

    def on_resize(self, event: events.Resize) -> None:
        """Choose the layout for the new size; the focused pane stays in view."""
        self.choose(self.focused_pane())
        self.lay_out(event.size.width, event.size.height)

    def focused_pane(self) -> str:
        """The pane that has the focus, or the empty string."""
        focused = self._context.app.focused
        if isinstance(focused, TerminalPane):
            return "session"
        while focused is not None and focused.id not in PANES and focused.id not in SHARED:
            focused = focused.parent if isinstance(focused.parent, Widget) else None
        if focused is None or focused.id is None:
            return ""
        return SHARED.get(focused.id, focused.id)

    def choose(self, pane: str) -> None:
        """Make this the pane that was chosen last."""
        if pane:
            self._current = pane
            self._beside = self._beside if pane == "plan" else pane

    def show_past(self, shown: Projector, event: Event) -> None:
        """Let the panes show a projection of what was after an event."""
        self._context.projector, self._context.looked_at = shown, event
        self._projection_changed()

    def to_now(self) -> None:
        """Let the panes show what happens."""
        if self._context.in_past:
            agent, live = self._context.agent, self._context.live
            self._context.projector, self._context.looked_at = live, None
            live.select(agent)
            self._projection_changed()

    def _projection_changed(self) -> None:
        self.session_of = ""
        self._context.app.screen_stack[0].set_class(self._context.in_past, "-past")
        self.set_places()
        self.lay_out()

    def screen_classes(self, width: int, height: int) -> dict[str, bool]:
        """What the screen's style sheet knows of the layout."""
        tiny = width < TINY or height < SHORT
        solo = tiny or self.zoomed
        shown = self._current if solo else self._beside
        return {
            "-solo": solo,
            "-narrow": not solo and width < NARROW,
            "-tiny": tiny,
            "-low": height < LOW,
            "-flat": height < FLAT,
            **{f"-tab-{name}": name == shown for name in PANES},
        }

    def lay_out(self, width: int = 0, height: int = 0) -> None:
        """Give every pane its place, for this size or the present one."""
        width, height = width or self._context.app.size.width, height or self._context.app.size.height
        # At once, since each change of the screen's classes styles every widget anew.
        self._context.app.screen_stack[0].update_classes(self.screen_classes(width, height))
        for name in PANES:
            self.pane(name).set_class(height < FLAT, "-bare")
        self._context.bar.set_class(height < FLAT, "-compact")
        self._context.projector.dirty |= set(Pane)

    def show_pane(self, name: str) -> None:
        """Show and focus a pane."""
        self.choose(name)
        self.lay_out()
        self.focus_pane(name)

    def action_pane(self, name: str) -> None:
        """Show and focus a pane; pressed again, change world for session, beliefs for memory."""
        again = self.focused_pane() == name
        if again and name == "session" and self._lives_in_world:
            self.action_world()
            return
        if again and name == "memory" and self._context.reasoner is not None:
            self._beliefs_first = not self._beliefs_first
            self.arrange()
        self.show_pane(name)

    @property
    def shows_one_pane(self) -> bool:
        """Whether one pane has the whole screen."""
        return self._context.app.screen_stack[0].has_class("-solo")

    def add_shell(self, shell: TerminalPane) -> None:
        """Add a shell beside the panes, out of sight until it is put into the session's place."""
        self._context.app.query_one("#bottom").mount(shell, before="#mind")

    def focus_pane(self, name: str) -> None:
        """Give the keys to a pane at once: later, it would take them from a bar that was opened meanwhile."""
        pane = self.pane(name)
        taker = pane.steps if isinstance(pane, PlanPane) else pane
        self._context.app.screen_stack[0].set_focus(taker, scroll_visible=False)

    def show_session(self) -> None:
        """Show the session beside the plan where the layout is narrow; the focus stays where it is."""
        self._beside = "session"
        self.lay_out()

    def action_zoom(self) -> None:
        """Give the focused pane the whole screen, or give the others their room back."""
        self.choose(self.focused_pane())
        self.zoomed, self.shell_zoomed = not self.zoomed, False
        self.lay_out()
        self._context.say("z shows the other panes again" if self.zoomed else "all panes are shown", "note")

    def draw_tabs(self, status: StatusModel) -> None:
        """Draw the tabs of the narrow layouts."""
        solo = self.shows_one_pane
        tabs = tuple(
            (name, f"{key} {self._title(name, title)}", _badge(name, status))
            for name, (key, title) in PANES.items()
            if name != "plan" or solo
        )
        current = self._current if solo else self._beside
        self._context.pane(PaneTabs).show(tabs, current)

    def _title(self, name: str, title: str) -> str:
        """The title of what stands in a pane's place."""
        return {"world": "World", "beliefs": "Beliefs"}.get(self.pane(name).id or "", title)

    def on_pane_tabs_tab_chosen(self, event: PaneTabs.TabChosen) -> None:
        """Show the pane."""
        self.action_pane(event.tab_id)

    def arrange(self) -> None:
        """Put beliefs and the world in their places where the shown agent has them, or take them out."""
        arranged = (self.shows_beliefs, self.shows_world)
        if arranged != self._arranged:
            self._arranged = arranged
            self.set_places()
            self.lay_out()

    def action_world(self) -> None:
        """Show the world that the agent lives in, or its session again."""
        if not self._lives_in_world:
            self._context.say("this agent lives in no world of its own", "note")
            return
        self._world_first = not self._world_first
        self.arrange()
        self.show_pane("session")

    def _register_themes(self) -> list[str]:
        """Register the shipped and the operator's themes; answers what is wrong with them. Blocking."""
        themes, problems = load_themes(self._context.settings.themes_directory)
        for theme in themes.values():
            self._context.app.register_theme(theme)
        return problems

    def _take_theme(self) -> list[str]:
        """Take the theme that was asked for; answers why it could not be taken."""
        name = self._context.settings.theme or DEFAULT_THEME
        known = name in self._context.app.available_themes
        self._context.app.theme = name if known else DEFAULT_THEME
        return [] if known else [f"there is no theme '{name}'"]

    def on_themes_dialog_kept(self, name: str) -> None:
        """Say how a theme is kept for good."""
        self._context.say(f'[cockpit] theme = "{name}" in pilothouse.toml keeps it', "ok")

    def choose_theme(self, name: str) -> None:
        """Take a theme; without a name, let the operator choose one."""
        if not name:
            from widgets.dialogs.themes import ThemesDialog

            names = self._context.app.available_themes
            ours_first = sorted(names, key=lambda name: (not name.startswith("pilothouse-"), name))
            self._context.app.push_screen(ThemesDialog(ours_first))
        elif name in self._context.app.available_themes:
            self._context.app.theme = name
        else:
            known = ", ".join(sorted(self._context.app.available_themes))
            self._context.say(f"there is no theme '{name}'; themes: {known}", "error")
