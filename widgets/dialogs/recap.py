"""What happened while the operator looked elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.facts import Fact, FactsPane


@dataclass(frozen=True, slots=True)
class RecapModel:
    """What the dialog shows."""

    since: str
    """Since when, in words."""
    facts: tuple[Fact, ...]


class RecapText(FactsPane):
    """One fact a row."""

    BINDING_GROUP_TITLE = "Recap"
    DEFAULT_CSS = """
    RecapText, RecapText:focus { border: none; height: 1fr; min-height: 3; }
    """


class RecapDialog(BoxDialog[None]):
    """The facts; closing it changes nothing."""

    DEFAULT_CSS = """
    RecapDialog > Vertical { height: 80%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("R,q", "close", "Close", id="recap.close"),
    ]

    def __init__(self, model: RecapModel) -> None:
        super().__init__()
        self._model = model

    def compose(self) -> ComposeResult:
        """The facts."""
        with Vertical() as box:
            box.border_title = Content(f"Since {clean_line(self._model.since, limit=80)}")
            box.border_subtitle = "esc close"
            yield RecapText(self._model.facts)
