"""The last line of the cockpit: the keys that count where the focus is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import cell_len
from textual import events

from engine.core.text import clean_line
from widgets.base.pane_tabs import StripLine

if TYPE_CHECKING:
    from textual.screen import Screen


PINNED = ("command", "help")
"""Actions whose keys are shown at any width."""


class KeyLine(StripLine):
    """One line of keys; a click presses one.

    It is Textual's footer drawn as one line instead of a dozen widgets, which that makes anew each
    time the focus moves: there, mounting and styling them took longer than drawing the panes.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"keys--key", "keys--text"}

    PREFIX = "keys"

    _keys: tuple[tuple[str, str, str], ...] = ()
    """How each is shown, what it does, and its name for a click; empty while it cannot be pressed."""

    _pinned = 0
    """How many of them, at the end, are shown in any case."""

    def on_mount(self) -> None:
        """Follow what the focus makes of the keys."""
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def _bindings_changed(self, screen: Screen[Any]) -> None:
        if screen.app.app_focus and self.is_attached and screen is self.screen:
            self.call_after_refresh(self._take)

    def _take(self) -> None:
        """Show the keys that count now: of those for one action, the first."""
        keys: dict[str, tuple[str, str, str]] = {}
        for _node, binding, enabled, _tooltip in self.screen.active_bindings.values():
            if binding.show and binding.action not in keys:
                label, does = clean_line(self.app.get_key_display(binding)), clean_line(binding.description)
                keys[binding.action] = (label, does, binding.key if enabled else "")
        pinned = [keys.pop(action) for action in PINNED if action in keys]
        self._pinned = len(pinned)
        if (shown := (*keys.values(), *pinned)) != self._keys:
            self._keys = shown
            self.refresh()

    def parts(self, width: int) -> Iterator[tuple[str, str, str]]:
        """The keys; what does not fit is in the help, to which there is always room for the way."""
        pinned = self._keys[-self._pinned :] if self._pinned else ()
        room = width - sum(map(_cells, pinned))
        for each in self._keys[: len(self._keys) - len(pinned)]:
            if (room := room - _cells(each)) < 0:
                break
            yield from _parts(*each)
        for each in pinned:
            yield from _parts(*each)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Press the key under the pointer."""
        if key := self.part_at(event.x):
            self.app.simulate_key(key)


def _parts(label: str, does: str, key: str) -> Iterator[tuple[str, str, str]]:
    yield label, "key", key
    yield f" {does}", "text", key
    yield " ", "text", ""


def _cells(key: tuple[str, str, str]) -> int:
    return cell_len(key[0]) + cell_len(key[1]) + 2
