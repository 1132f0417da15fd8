"""A question before something that is not undone easily."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.domain.text import clean, clean_line
from widgets.dialogs.box import BoxDialog


@dataclass(frozen=True, slots=True)
class ConfirmModel:
    """What is asked."""

    question: str
    consequence: str = ""
    """What will happen, and whether it can be undone."""
    yes: str = "yes"
    no: str = "no"


class ConfirmDialog(BoxDialog[bool]):
    """Asks; `y` agrees, all else that closes it does not. Enter does nothing, so that no habit agrees."""

    DEFAULT_CSS = """
    ConfirmDialog > Vertical { max-width: 72; padding: 1 2; border: round $warning; }
    ConfirmDialog #question { text-style: bold; }
    ConfirmDialog #consequence { margin: 1 0; color: $foreground-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "agree", "Yes", id="confirm.yes"),
        Binding("n", "close", "No", id="confirm.no"),
    ]

    def __init__(self, model: ConfirmModel) -> None:
        super().__init__()
        self._model = model

    def compose(self) -> ComposeResult:
        """The question, what follows, and the keys."""
        model = self._model
        with Vertical() as box:
            box.border_title = "Please confirm"
            yield Static(Content(clean(model.question)), id="question")
            if model.consequence:
                yield Static(Content(clean(model.consequence)), id="consequence")
            yield Static(
                Content.from_markup(
                    "[bold]y[/] $yes     [bold]n[/] $no", yes=clean_line(model.yes), no=clean_line(model.no)
                )
            )

    def action_agree(self) -> None:
        """Agree."""
        self.dismiss(True)

    def action_close(self) -> None:
        """Do not agree."""
        self.dismiss(False)
