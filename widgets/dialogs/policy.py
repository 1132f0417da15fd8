"""What programs may do, what holds them, and which layers of the jail work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.facts import FactsPane
from widgets.pieces import Piece, Pieces, wrap

LABEL_CELLS = 13


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One row; without a text it is a heading."""

    mark: str
    label: str
    text: str
    style: str = "text"


@dataclass(frozen=True, slots=True)
class PolicyModel:
    """What the dialog shows."""

    agent: str
    rows: tuple[PolicyRow, ...]


class PolicyText(FactsPane):
    """The rows, broken to the width, with a mark each."""

    BINDING_GROUP_TITLE = "Policy"
    DEFAULT_CSS = """
    PolicyText { height: 1fr; border: none; &:focus { border: none; } }
    """

    def __init__(self, model: PolicyModel) -> None:
        super().__init__()
        self._model = model

    def lines_for(self, width: int) -> tuple[Pieces, ...]:
        """Headings stand apart; texts have a hanging indent."""
        return tuple(line for row in self._model.rows for line in _lines(row, width))


def _lines(row: PolicyRow, width: int) -> tuple[Pieces, ...]:
    label = clean_line(row.label)
    if not row.text:
        return ((Piece(""),), (Piece(label, "heading"),))
    head = (Piece(f"{row.mark:<2}", row.style), Piece(f"{label:<{LABEL_CELLS}}", "dim"))
    style = row.style if row.style in ("error", "warning") else "text"
    return wrap((*head, Piece(clean_line(row.text), style)), width, indent=LABEL_CELLS + 2, most=20)


class PolicyDialog(BoxDialog[None]):
    """The policy of an agent; it is read here and changed nowhere on the screen."""

    DEFAULT_CSS = """
    PolicyDialog > Vertical { height: 96%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("P,q", "close", "Close", id="policy.close"),
    ]

    def __init__(self, model: PolicyModel) -> None:
        super().__init__()
        self._title = clean_line(model.agent)
        self._text = PolicyText(model)

    def compose(self) -> ComposeResult:
        """The rows."""
        with Vertical() as box:
            box.border_title = f"Sandbox of {self._title}" if self._title else "Sandbox"
            box.border_subtitle = "↑ ↓ scroll · Y copy · esc close"
            yield self._text

    def on_mount(self) -> None:
        """The text has the focus, so that arrows scroll."""
        self._text.focus()
