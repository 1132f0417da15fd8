"""The last line of the cockpit: the keys that count where the focus is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rich.segment import Segment
from textual import events
from textual.strip import Strip
from textual.widget import Widget

from engine.core.text import clean_line
from widgets.base.text_layout import Piece, width_of

if TYPE_CHECKING:
    from textual.screen import Screen


@dataclass(frozen=True, slots=True)
class ShownKey:
    """One key and what it does."""

    key: str
    """Textual's name of it, which a click presses."""
    label: str
    does: str
    enabled: bool = True

    @property
    def width(self) -> int:
        """Cells that it takes: the key, a space, what it does."""
        return width_of((Piece(f"{self.label} {self.does}"),))


class KeyLine(Widget):
    """One line of keys; a click presses one.

    It is Textual's footer drawn as one line instead of a dozen widgets, which that makes anew each
    time the focus moves: there, mounting and styling them took longer than drawing the panes.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"keys--key", "keys--text"}
    DEFAULT_CSS = """
    KeyLine {
        dock: bottom;
        height: 1;
        background: $background;
        & > .keys--key { color: $footer-key-foreground; text-style: bold; }
        & > .keys--text { color: $footer-description-foreground; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._keys: tuple[ShownKey, ...] = ()

    def on_mount(self) -> None:
        """Follow what the focus makes of the keys."""
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def _bindings_changed(self, screen: Screen[Any]) -> None:
        if screen.app.app_focus and self.is_attached and screen is self.screen:
            self.call_after_refresh(self._take)

    def _take(self) -> None:
        """Show the keys that count now: of those for one action, the first."""
        keys: dict[str, ShownKey] = {}
        for _node, binding, enabled, _tooltip in self.screen.active_bindings.values():
            if binding.show and binding.action not in keys:
                label, does = self.app.get_key_display(binding), binding.description
                keys[binding.action] = ShownKey(binding.key, clean_line(label), clean_line(does), enabled)
        if (shown := tuple(keys.values())) != self._keys:
            self._keys = shown
            self.refresh()

    def _at(self, column: int) -> ShownKey | None:
        start = 0
        for key in self._keys:
            if start <= column < start + key.width:
                return key
            start += key.width + 1
        return None

    def render_line(self, y: int) -> Strip:
        """The line; what does not fit is in the help."""
        segments: list[Segment] = []
        for key in self._keys:
            segments.append(Segment(key.label, self.get_component_rich_style("keys--key")))
            segments.append(Segment(f" {key.does}", self.get_component_rich_style("keys--text")))
            segments.append(Segment(" ", self.rich_style))
        return Strip(segments).adjust_cell_length(self.size.width, self.rich_style)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Press the key under the pointer."""
        key = self._at(event.x)
        if key is not None and key.enabled:
            self.app.simulate_key(key.key)
        elif key is not None:
            self.app.bell()
