"""What all full-screen applications have: a terminal that may be lost, keys in order, no control codes."""

from __future__ import annotations

from typing import TypeVar

from textual import events
from textual.app import App
from textual.driver import Driver
from textual.filter import LineFilter
from textual.widgets import Input

from app.cockpit.key_queue import KeyQueue, Typed
from widgets.base.text_layout import CONTROL_FILTER

Result = TypeVar("Result")


class TerminalApp(App[Result]):
    """An application on a terminal."""

    alt_characters: frozenset[str] = frozenset()
    """What is bound to be pressed with alt; behind escape, all else is a key of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.key_queue = KeyQueue(self, self._hand_on, self.keys_dropped)
        """What was typed and waits for its turn."""

    def get_driver_class(self) -> type[Driver]:
        """Textual's choice; on a terminal, the one that survives its loss."""
        chosen = super().get_driver_class()
        if chosen.__name__ not in ("LinuxDriver", "WebDriver"):
            return chosen
        from app.cockpit.terminal_driver import BrowserDriver, TerminalDriver

        return BrowserDriver if chosen.__name__ == "WebDriver" else TerminalDriver

    def get_line_filters(self) -> list[LineFilter]:
        """Textual's filters, and the one that lets no control character out."""
        return [*super().get_line_filters(), CONTROL_FILTER]

    def on_driver_signal_resume(self) -> None:
        """Draw everything anew after the shell had the terminal."""
        self.refresh(layout=True)

    async def on_event(self, event: events.Event) -> None:
        """What is typed goes through the queue; all else at once."""
        if isinstance(event, Typed) and not event.is_forwarded:
            await self.key_queue.take(event)
        elif not (isinstance(event, events.MouseDown | events.MouseUp) and self.key_queue.is_early(event)):
            await super().on_event(event)

    async def _hand_on(self, typed: Typed) -> None:
        if isinstance(typed, events.Paste) and isinstance(self.focused, Input):
            if (line := self._pasted_line(typed.text, self.focused)) is None:
                return
            typed = events.Paste(line)
        await super().on_event(typed)

    def _pasted_line(self, text: str, field: Input) -> str | None:
        """A pasted text as one line; None where the field has no room for all of it, which is said."""
        line = " ".join(text.splitlines())
        room = (field.max_length or len(line)) - len(field.value) + len(field.selected_text)
        if len(line) <= room or not field.max_length:
            return line
        self.notify(f"{len(line):,} characters do not fit; the line takes {room:,} more", severity="warning")
        return None

    def on_paste(self, event: events.Paste) -> None:
        """Say that a text was pasted where none is taken."""
        text = f"{len(event.text):,} characters were pasted where there is no line; nothing was done"
        self.notify(text, severity="warning")

    def keys_dropped(self, count: int) -> None:
        """Say that keys were dropped, as what they were typed for did not open."""
