"""A text in sections: an agent's spec, its edges and its handoffs."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.dialogs.long_text import LongText, Section


class SectionsDialog(BoxDialog[None]):
    """Sections that scroll."""

    DEFAULT_CSS = """
    SectionsDialog > Vertical { height: 96%; max-width: 140; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "close", "Close", show=False, id="sections.close")]

    def __init__(self, title: str, sections: tuple[Section, ...]) -> None:
        super().__init__()
        self._title, self._sections = title, sections
        self._text = LongText()

    def compose(self) -> ComposeResult:
        """The text."""
        with Vertical() as box:
            box.border_title = Content(clean_line(self._title, limit=120))
            box.border_subtitle = "↑ ↓ scroll · Y copy · esc close"
            yield self._text

    def on_mount(self) -> None:
        """The text has the focus."""
        self._text.show(self._sections)
        self._text.focus()
