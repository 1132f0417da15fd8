"""What every full-screen application here has: a terminal that may be lost, and no control characters."""

from __future__ import annotations

from typing import TypeVar

from textual.app import App
from textual.driver import Driver
from textual.filter import LineFilter

from widgets.base.text_layout import CONTROL_FILTER

Result = TypeVar("Result")


class TerminalApp(App[Result]):
    """An application on a terminal."""

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
