"""A text to be read: what a job answered, a registry, what Mastermind did."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.dialogs.long_text import LongText, Section


class TextDialog(BoxDialog[None]):
    """A text that scrolls."""

    DEFAULT_CSS = """
    TextDialog > Vertical { height: 96%; max-width: 160; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "close", "Close", show=False, id="text.close")]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self._words = title, text
        self._text = LongText()

    def compose(self) -> ComposeResult:
        """The text."""
        with Vertical() as box:
            box.border_title = Content(clean_line(self._title, limit=120))
            box.border_subtitle = "↑ ↓ scroll · Y copy · esc close"
            yield self._text

    def on_mount(self) -> None:
        """The text has the focus."""
        head, _, rest = self._words.partition("\n")
        self._text.show((Section(head, rest, "text"),))
        self._text.focus()
