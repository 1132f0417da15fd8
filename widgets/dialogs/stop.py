"""The stop panel: how much is to be stopped and of whom; and the receipt of the last stop, in place."""

from __future__ import annotations

from textual import events, on
from textual.content import Content
from textual.widgets import Static

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.dialog import BoxDialog, ConfirmDialog
from widgets.base.facts import Fact, FactsPane
from widgets.base.line_pane import LinePane, RowChosen
from widgets.base.rows import Row
from widgets.base.text_layout import Piece

KILL, THAW = "kill", "thaw"


@dataclass(frozen=True, slots=True)
class StopModel:
    """What the panel shows."""

    agent: str
    grades: tuple[tuple[str, str, str, str], ...]
    """Name for commands, key, name and what it does, of each grade and of thawing."""
    scopes: tuple[tuple[str, str], ...]
    """Name for commands, and words, of whom a stop is for."""
    receipt: tuple[Fact, ...] = ()


class StopDialog(BoxDialog[None]):
    """Each grade is one key or one click; to kill is confirmed. Escape and enter only close."""

    CLASSES = "-question"

    def __init__(self, model: StopModel) -> None:
        super().__init__()
        self._model = model
        self.heading = f"Stop {clean_line(model.agent, limit=60)}"
        self._scope = 0
        self._scopes = Static(id="scopes")
        self._grades = LinePane(title="Grades", click_chooses=True, id="grades")
        empty = "Nothing was stopped yet. The result of a stop will appear here."
        self._receipt = FactsPane(title="Receipt", empty=empty)
        self._receipt.letters = {key: grade for grade, key, _, _ in model.grades}
        self._grades.letters = self._receipt.letters
        self.parts = (self._scopes, self._grades, self._receipt)

    def on_mount(self) -> None:
        """Show the model."""
        self._grades.styles.height = len(self._model.grades)
        self._draw()
        self._receipt.focus()

    def show(self, model: StopModel) -> None:
        """Show this model; whom is meant stays."""
        self._model = model
        self.set_title(self.heading, self.HINT)
        self._draw()

    def _draw(self) -> None:
        marks = ("●" if at == self._scope else "○" for at in range(len(self._model.scopes)))
        scopes = zip(marks, self._model.scopes, strict=True)
        self._scopes.update(Content("   ".join(f"{mark} {words}" for mark, (_, words) in scopes)))
        rows = [
            Row(grade, (Piece(f"{key}  ", "accent"), Piece(f"{name:<16}", "strong"), Piece(does)))
            for grade, key, name, does in self._model.grades
        ]
        self._grades.set_rows(rows)
        self._receipt.set_facts(self._model.receipt)

    @on(RowChosen)
    def _chosen(self, event: RowChosen) -> None:
        if event.key == KILL:
            question = f"Kill {self._model.scopes[self._scope][1]}?"
            does = next(does for grade, _, _, does in self._model.grades if grade == KILL)
            self.app.push_screen(ConfirmDialog(question, does, "kill", "leave it"), self._sure)
        else:
            self._stop(event.key)

    def _sure(self, sure: bool | None) -> None:
        if sure:
            self.action_again()

    def action_again(self) -> None:
        """The key that stops at once does so here too."""
        self._stop(KILL)

    def _stop(self, grade: str) -> None:
        # In the title: nothing is laid out anew before it is seen.
        self.set_title("thawing …" if grade == THAW else "stopping …", self.HINT)
        self.request("stop", grade, self._model.scopes[self._scope][0])

    def action_scope(self) -> None:
        """Mean the next ones."""
        self._scope = (self._scope + 1) % len(self._model.scopes)
        self._draw()


MOST_LINES = 9


class StopReceiptPane(FactsPane):
    """Takes no focus, so that every key still means what it meant; a click closes it."""

    can_focus = False
    BINDING_GROUP_TITLE = "Receipt"

    def show(self, lines: tuple[Fact, ...], hint: str) -> None:
        """Show what was stopped, and which keys are of use now; no lines hide it."""
        self.set_class(bool(lines), "-shown")
        self.border_title, self.border_subtitle = Content("Stopped"), Content(hint)
        self.set_facts(lines)
        self._fit()

    def on_resize(self) -> None:
        """Take as many lines as the text has now."""
        super().on_resize()
        self._fit()

    def _fit(self) -> None:
        self.styles.height = min(MOST_LINES, max(1, self.line_total()[1])) + 2

    def on_click(self, event: events.Click) -> None:
        """A click closes it."""
        event.stop()
        self.request("dismissed")
