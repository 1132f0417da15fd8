"""Two points of an agent's time beside each other."""

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

STYLES = {"+": "success", "-": "error", "~": "warning"}


@dataclass(frozen=True, slots=True)
class ComparedPart:
    """One part of the comparison, such as the beliefs."""

    title: str
    lines: tuple[tuple[str, str], ...]
    """Sign (`+`, `-`, `~`) and words of each difference."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class ComparisonModel:
    """What the dialog shows."""

    title: str
    parts: tuple[ComparedPart, ...]


class ComparisonText(FactsPane):
    """The parts one below the other; the sign of a difference says what sort it is, without colour too."""

    BINDING_GROUP_TITLE = "Comparison"
    DEFAULT_CSS = """
    ComparisonText { height: 1fr; border: none; &:focus { border: none; } }
    """

    def __init__(self, model: ComparisonModel) -> None:
        super().__init__()
        self._model = model

    def lines_for(self, width: int) -> tuple[Pieces, ...]:
        """Each part under its title."""
        lines: list[Pieces] = []
        for part in self._model.parts:
            lines += [(Piece(""),)] if lines else []
            note = f"  {clean_line(part.note)}" if part.note else ""
            lines += wrap(
                (Piece(clean_line(part.title), "heading"), Piece(note, "dim")), width, indent=2, most=4
            )
            for sign, words in part.lines:
                head = Piece(f"{sign} ", STYLES.get(sign, "text"))
                lines += wrap((head, Piece(clean_line(words))), width, indent=4, most=6)
            if not part.lines:
                lines.append((Piece("  no difference", "dim"),))
        return tuple(lines)


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
        self._text = ComparisonText(model)

    def compose(self) -> ComposeResult:
        """The parts."""
        with Vertical() as box:
            box.border_title = self._title
            box.border_subtitle = "↑ ↓ scroll · Y copy · esc close"
            yield self._text

    def on_mount(self) -> None:
        """The text has the focus, so that arrows scroll."""
        self._text.focus()
