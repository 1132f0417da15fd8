"""Two points of an agent's time beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.dialogs.signed_parts import SignedPart, SignedText


@dataclass(frozen=True, slots=True)
class ComparisonModel:
    """What the dialog shows."""

    title: str
    parts: tuple[SignedPart, ...]


class ComparisonDialog(BoxDialog[None]):
    """What is different at the later of two points; it is only read."""

    DEFAULT_CSS = """
    ComparisonDialog > Vertical { height: 96%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "close", "Close", id="comparison.close"),
    ]

    def __init__(self, model: ComparisonModel) -> None:
        super().__init__()
        self._title = clean_line(model.title)
        self._text = SignedText(model.parts, nothing="no difference")

    def compose(self) -> ComposeResult:
        """The parts."""
        with Vertical() as box:
            box.border_title = self._title
            box.border_subtitle = "↑ ↓ scroll · Y copy · esc close"
            yield self._text

    def on_mount(self) -> None:
        """The text has the focus, so that arrows scroll."""
        self._text.focus()
