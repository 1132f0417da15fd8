"""Why an agent would be selected: each candidate with its four parts as bars (ontology spec §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.line_pane import Notice
from widgets.pieces import Piece, Pieces, bar, cut_text
from widgets.rows import Row, RowPane

CELLS = 5
PARTS = (("T", 0.6), ("P", 0.4), ("C", 0.3))
"""The parts that are shares, and how much each can be; R, the record, is signed and told as a number."""


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """An agent that was considered."""

    agent: str
    score: float
    parts: tuple[float, float, float, float]
    """T trigger, P problem, C chain, R record."""
    literal: float | None
    """What the seed's own query would have given; None where that does not find it."""
    why: tuple[str, ...] = ()
    place: int = 0
    """From 1; 0 for one that was not selected."""
    lost: str = ""


@dataclass(frozen=True, slots=True)
class SelectionModel:
    """What the dialog shows."""

    text: str
    rows: tuple[CandidateRow, ...] = ()
    standing: str = ""
    """What of the text counted, and where it goes."""


class Candidates(RowPane):
    """The candidates, best first."""

    BINDING_GROUP_TITLE = "Candidates"
    DEFAULT_CSS = """
    Candidates, Candidates:focus { border: none; height: 1fr; min-height: 3; }
    """

    def row_chosen(self, key: str) -> None:
        """Hand the text to it."""
        if isinstance(self.screen, SelectionDialog):
            self.screen.action_delegate()


class SelectionDialog(BoxDialog[None]):
    """Tells; enter offers to hand the text to the agent under the cursor."""

    DEFAULT_CSS = """
    SelectionDialog > Vertical { height: 96%; max-width: 140; }
    SelectionDialog #standing { height: auto; max-height: 4; color: $foreground-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "delegate", "Delegate", id="selection.delegate"),
        Binding("q", "close", "Close", show=False, id="selection.close"),
    ]

    @dataclass
    class Chosen(Message):
        """The text is to be handed to an agent."""

        agent: str

    def __init__(self, model: SelectionModel) -> None:
        super().__init__()
        self._model = model
        self._list = Candidates()

    @property
    def model(self) -> SelectionModel:
        """What is shown."""
        return self._model

    def compose(self) -> ComposeResult:
        """What counted, the candidates, and the keys."""
        with Vertical() as box:
            box.border_title = Content(f"Select: {clean_line(self._model.text, limit=90)}")
            box.border_subtitle = "grey: the seed's own scores · esc close"
            yield Static(Content(clean_line(self._model.standing)), id="standing")
            yield self._list
            yield Static(
                Content.from_markup("[@click=screen.delegate][bold]enter[/] hand it to this agent[/]"),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """The best has the cursor."""
        none = "Nothing speaks for any agent: it has to become clear first what is wanted."
        self._list.set_notice(None if self._model.rows else Notice(none))
        self._list.set_rows([row for one in self._model.rows for row in _rows(one)])
        self._list.focus()

    def action_delegate(self) -> None:
        """Hand the text to the agent under the cursor."""
        if self._list.cursor:
            self.post_message(self.Chosen(self._list.cursor))
            self.dismiss(None)


def _rows(one: CandidateRow) -> list[Row]:
    pieces: list[Piece] = [
        Piece(f"{one.place or '·':>2} ", "dim"),
        Piece(f"{cut_text(clean_line(one.agent), 18):<18} ", "strong" if one.place else "dim"),
        Piece(f"{one.score:7.4g} ", "text"),
    ]
    for (name, most), value in zip(PARTS, one.parts[:3], strict=True):
        pieces += [Piece(f"{name} ", "dim"), *bar(value / most, CELLS, style="accent"), Piece(" ")]
    style = "success" if one.parts[3] > 0 else "error" if one.parts[3] < 0 else "dim"
    pieces.append(Piece(f"R {one.parts[3]:+.3f}", style))
    literal = f"  seed {one.literal:.4g}" if one.literal is not None else "  seed -"
    told = (*one.why, *((one.lost,) if one.lost else ()))
    copy = " ".join((clean_line(one.agent), f"{one.score:.6g}", *map(clean_line, told)))
    rows = [Row(one.agent, tuple(pieces), tail=(Piece(literal, "dim"),), copy=copy)]
    for at, sentence in enumerate(told):
        words: Pieces = (Piece("   "), Piece(clean_line(sentence, limit=600), "dim"))
        rows.append(Row(f"{one.agent} {at}", words, selectable=False, indent=3, most=3))
    return rows
