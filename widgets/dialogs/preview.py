"""What a line or a rewind would do, before it is done, and two points of time beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.dialog import BoxDialog, DialogKey, TextDialog
from widgets.base.facts import Fact, FactsPane, SignedPart, signed_lines
from widgets.base.line_pane import LinePane, RowChosen
from widgets.base.rows import Row
from widgets.base.text_layout import Piece

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


class PreviewDialog(BoxDialog[str]):
    """Enter does the line, or chooses what is meant; escape leaves it in the bar."""

    HINT = "nothing is done yet"

    def __init__(self, model: PreviewModel) -> None:
        super().__init__()
        self.model = model
        """What is shown."""
        self._facts = FactsPane(_facts(model), id="facts")
        self._choices = LinePane(title="Meant", id="choices")

    def compose(self) -> ComposeResult:
        """What it does, what it resolves to, what may be meant, and the keys."""
        model = self.model
        does = "this one is meant" if model.choices else "do it"
        enter = [] if model.wrong else [DialogKey("enter", "do", does)]
        self.show_keys([*enter, DialogKey("", "", "change the line", shown="esc")])
        choices = [self._choices] if model.choices else []
        yield self.box(self._facts, *choices, self.keys, title=clean_line(model.line, limit=90))

    def on_mount(self) -> None:
        """Choices come first, where there are some."""
        if self.model.choices:
            self._choices.set_rows(
                [
                    Row(
                        name,
                        (Piece(clean_line(name), "strong"), Piece(f"  {clean_line(why)}", "dim")),
                        most=2,
                    )
                    for name, why in self.model.choices
                ]
            )
            self._choices.styles.height = 2 * len(self.model.choices)
            self._choices.focus()
        else:
            self._facts.focus()

    @on(RowChosen)
    def action_do(self) -> None:
        """Do the line, as what was chosen where there is a choice."""
        if self.model.wrong:
            return
        self.dismiss(self._choices.cursor if self.model.choices else DO_IT)


def _facts(model: PreviewModel) -> tuple[Fact, ...]:
    if model.wrong:
        return (Fact("refused", clean_line(model.wrong), "error"),)
    rows = [Fact("does", clean_line(model.does), "strong")]
    rows += [Fact(_label(label), clean_line(text)) for label, text in model.facts]
    return (*rows, *((Fact("", "which one is meant?", "warning"),) if model.choices else ()))


def _label(text: str) -> str:
    """A label with a blank behind it, also where it is longer than its column."""
    return f"{clean_line(text)} " if text else ""


class ComparisonDialog(TextDialog):
    """What is different at the later of two points."""

    def __init__(self, title: str, parts: Sequence[SignedPart]) -> None:
        super().__init__(title, partial(signed_lines, parts, nothing="no difference"))


YES = "yes"


@dataclass(frozen=True, slots=True)
class RewindModel:
    """What the dialog shows."""

    title: str
    parts: tuple[SignedPart, ...]
    scope: str = "both"
    """`both`, `files`, `state`; empty where there is no choice."""
    yes: str = "rewind"
    """What `y` does, in a word or two."""
    refused: str = ""
    """Why it cannot be done; `y` then does nothing."""


class RewindDialog(BoxDialog[str]):
    """The preview; `y` agrees, other letters choose what is taken back, all else leaves things as they are.

    The result is `yes`, or the scope whose preview is wanted, or None.
    """

    AUTO_FOCUS = "LinePane"
    HINT = "nothing has changed yet · ↑ ↓ scroll · esc close"

    def __init__(self, model: RewindModel) -> None:
        super().__init__()
        self._model = model

    def compose(self) -> ComposeResult:
        """The parts, which have the focus, and the keys below them."""
        model = self._model
        text = partial(signed_lines, model.parts, nothing="nothing", counted=True)
        refused = [Static(Content(clean_line(model.refused)), id="refused")] if model.refused else []
        self.show_keys(self._choice())
        parts = (FactsPane(render=text, title="Parts"), *refused, self.keys)
        yield self.box(*parts, title=model.title, classes="-question")

    def _choice(self) -> list[DialogKey]:
        model = self._model
        words = {"both": "state and files", "files": "only files", "state": "only state"}
        agree = [] if model.refused else [DialogKey("y", "agree", clean_line(model.yes))]
        others = [
            DialogKey(key, f"scope('{scope}')", words[scope])
            for key, scope in (("b", "both"), ("f", "files"), ("t", "state"))
            if model.scope and scope != model.scope
        ]
        return [*agree, *others, DialogKey("n", "close", "leave it")]

    def action_agree(self) -> None:
        """Do it."""
        if not self._model.refused:
            self.dismiss(YES)

    def action_scope(self, scope: str) -> None:
        """See the preview of another scope."""
        if self._model.scope and scope != self._model.scope:
            self.dismiss(scope)
