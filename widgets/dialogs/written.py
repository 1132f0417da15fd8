"""A text to be written: the result of a handoff that the operator takes over."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from engine.domain.text import clean, clean_line
from widgets.dialogs.box import BoxDialog

TEXT_LIMIT = 200_000
"""Characters that are taken."""


class WriteDialog(BoxDialog[str]):
    """Gives what was written, or None.

    Args:
        title: above the text.
        about: what becomes of it.
        text: what stands there at first; cleaned.
    """

    DEFAULT_CSS = """
    WriteDialog > Vertical { height: 80%; max-width: 120; }
    WriteDialog TextArea { height: 1fr; min-height: 3; }
    WriteDialog #about { height: auto; max-height: 4; color: $foreground-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "Send", priority=True, id="write.send"),
    ]

    def __init__(self, title: str, about: str, text: str = "") -> None:
        super().__init__()
        self._title, self._about = title, about
        self._text = TextArea(clean(text))
        self._problem = Static(classes="-problems")

    def compose(self) -> ComposeResult:
        """What becomes of it, the text, and the keys."""
        with Vertical() as box:
            box.border_title = Content(clean_line(self._title, limit=120))
            box.border_subtitle = "ctrl+s send · esc cancel"
            yield Static(Content(clean(self._about)), id="about")
            yield self._text
            yield self._problem

    def on_mount(self) -> None:
        """It can be typed at once."""
        self._text.focus()

    def action_send(self) -> None:
        """Give what was written."""
        text = self._text.text.strip()
        if not text:
            self._problem.update(Content("there is nothing to send yet"))
        elif len(text) > TEXT_LIMIT:
            self._problem.update(Content(f"{len(text):,} characters; {TEXT_LIMIT:,} are taken"))
        else:
            self.dismiss(text)
