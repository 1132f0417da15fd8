"""What a line would do, before it is done; and which of several things is meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.facts import Fact, FactsPane
from widgets.pieces import Piece
from widgets.rows import Row, RowPane

DO_IT = ""
"""The result that does the line as it stands; another one is the choice that was made."""


@dataclass(frozen=True, slots=True)
class PreviewModel:
    """What would be done."""

    line: str
    does: str
    facts: tuple[tuple[str, str], ...] = ()
    choices: tuple[tuple[str, str], ...] = ()
    """What may be meant, each with why."""
    wrong: str = ""
    """Why it would be refused."""


class ChoiceList(RowPane):
    """What may be meant."""

    BINDING_GROUP_TITLE = "Meant"
    DEFAULT_CSS = """
    ChoiceList, ChoiceList:focus { border: none; height: auto; max-height: 10; min-height: 2; }
    """

    def row_chosen(self, key: str) -> None:
        """This one is meant."""
        if isinstance(self.screen, PreviewDialog):
            self.screen.action_do()


class PreviewFacts(FactsPane):
    """What the line resolves to."""

    DEFAULT_CSS = """
    PreviewFacts, PreviewFacts:focus { border: none; height: 1fr; min-height: 6; }
    """


class PreviewDialog(BoxDialog[str]):
    """Enter does the line, or chooses what is meant; escape leaves it in the bar."""

    DEFAULT_CSS = """
    PreviewDialog > Vertical { max-width: 110; height: 70%; min-height: 16; max-height: 26; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "do", "Do it", id="preview.do"),
        Binding("q", "close", "Close", show=False, id="preview.close"),
    ]

    def __init__(self, model: PreviewModel) -> None:
        super().__init__()
        self._model = model
        self._facts = PreviewFacts(_facts(model))
        self._choices = ChoiceList()

    @property
    def model(self) -> PreviewModel:
        """What is shown."""
        return self._model

    def compose(self) -> ComposeResult:
        """What it does, what it resolves to, what may be meant, and the keys."""
        model = self._model
        with Vertical() as box:
            box.border_title = Content(clean_line(model.line, limit=90))
            box.border_subtitle = "nothing is done yet"
            yield self._facts
            if model.choices:
                yield self._choices
            keys = (
                "[bold]esc[/] change the line"
                if model.wrong
                else "[@click=screen.do][bold]enter[/] this one is meant[/]   [bold]esc[/] change the line"
                if model.choices
                else "[@click=screen.do][bold]enter[/] do it[/]   [bold]esc[/] change the line"
            )
            yield Static(Content.from_markup(keys), classes="-keys")

    def on_mount(self) -> None:
        """Choices come first, where there are some."""
        if self._model.choices:
            self._choices.set_rows(
                [
                    Row(
                        name,
                        (Piece(clean_line(name), "strong"), Piece(f"  {clean_line(why)}", "dim")),
                        most=2,
                    )
                    for name, why in self._model.choices
                ]
            )
            self._choices.focus()
        else:
            self._facts.focus()

    def action_do(self) -> None:
        """Do the line, as what was chosen where there is a choice."""
        if self._model.wrong:
            return
        self.dismiss(self._choices.cursor if self._model.choices else DO_IT)


def _facts(model: PreviewModel) -> tuple[Fact, ...]:
    if model.wrong:
        return (Fact("refused", clean_line(model.wrong), "error"),)
    rows = [Fact("does", clean_line(model.does), "strong")]
    rows += [Fact(_label(label), clean_line(text)) for label, text in model.facts]
    return (*rows, *((Fact("", "which one is meant?", "warning"),) if model.choices else ()))


def _label(text: str) -> str:
    """A label with a blank behind it, also where it is longer than its column."""
    return f"{clean_line(text)} " if text else ""
