"""Why: a chain of recorded events, walked back to where it began or on to what stands on it."""

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
from widgets.pieces import Piece
from widgets.rows import Row, RowPane

STYLES = {
    "goal": "strong",
    "plan": "accent",
    "success": "success",
    "warning": "warning",
    "error": "error",
    "missing": "error",
    "operator": "accent",
    "thought": "dim",
    "session": "dim",
}
"""Styles of the kinds of lines; others have that of text."""


@dataclass(frozen=True, slots=True)
class WhyRow:
    """One event of the chain."""

    ref: str
    """Its reference; empty for a line that is no event."""
    lead: str
    """The branches that it lies on, drawn before its text."""
    glyph: str
    kind: str
    text: str
    time: str = ""


@dataclass(frozen=True, slots=True)
class WhyModel:
    """What the dialog shows."""

    what: str
    """What was asked about, as it can be asked again; empty where nothing was."""
    way: str
    """`backward`, `forward` or `wrong`; any other word for lines that only name their events."""
    title: str
    rows: tuple[WhyRow, ...] = ()
    notes: tuple[str, ...] = ()
    """What is to be said beside the chain."""


class WhyList(RowPane):
    """The chain, one event a row."""

    BINDING_GROUP_TITLE = "Why"
    MARKS = True
    EMPTY = "Nothing is recorded of it."
    DEFAULT_CSS = """
    WhyList, WhyList:focus { border: none; height: 1fr; min-height: 4; }
    """

    def row_chosen(self, key: str) -> None:
        """Ask for the event's own chain."""
        if isinstance(self.screen, WhyDialog):
            self.screen.action_ask()

    def show(self, model: WhyModel) -> None:
        """Show these rows, and the notes below them; above them where they say what is in doubt."""
        rows = [_row(at, row) for at, row in enumerate(model.rows)]
        notes = [
            Row(f"note:{at}", (Piece(clean_line(note), "warning"),), selectable=False, indent=2, most=3)
            for at, note in enumerate(model.notes)
        ]
        blank = [Row("blank", (Piece(""),), selectable=False)] if notes and rows else []
        self.set_rows([*notes, *blank, *rows] if model.way == "wrong" else [*rows, *blank, *notes])


def _row(at: int, row: WhyRow) -> Row:
    text = clean_line(row.text)
    return Row(
        f"{at}",
        (Piece(row.lead, "dim"), Piece(text, STYLES.get(row.kind, "text"))),
        tail=(Piece(f" {clean_line(row.ref)} {clean_line(row.time)}", "dim"),),
        mark=Piece(clean_line(row.glyph) or " ", STYLES.get(row.kind, "text")),
        indent=len(row.lead) + 2,
        most=3,
        copy=f"{clean_line(row.ref)} {text}",
    )


class WhyDialog(BoxDialog[None]):
    """A chain; enter asks on from the event under the cursor, backspace goes back to the last question."""

    DEFAULT_CSS = """
    WhyDialog > Vertical { height: 96%; max-width: 140; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "way('backward')", "Causes", id="why.backward"),
        Binding("f", "way('forward')", "Effects", id="why.forward"),
        Binding("x", "way('wrong')", "If it is wrong", id="why.wrong"),
        Binding("backspace", "back", "Back", id="why.back"),
        Binding("w", "mark", "Mark as wrong", id="why.mark"),
        Binding("r", "retract", "Take beliefs back", id="why.retract"),
        Binding("q", "close", "Close", show=False, id="why.close"),
    ]

    @dataclass
    class Asked(Message):
        """The operator asks about something, one way or the other."""

        what: str
        way: str

    @dataclass
    class MarkAsked(Message):
        """The operator marks an event as wrong, or takes that back."""

        ref: str

    @dataclass
    class RetractAsked(Message):
        """The operator wants the beliefs taken back that stand on an event alone."""

        ref: str

    def __init__(self, model: WhyModel) -> None:
        super().__init__()
        self._model = model
        self._list = WhyList()
        self._before: list[tuple[str, str]] = []

    @property
    def model(self) -> WhyModel:
        """What is shown."""
        return self._model

    def compose(self) -> ComposeResult:
        """The chain and the keys."""
        with Vertical() as box:
            box.border_title = Content(clean_line(self._model.title, limit=120))
            box.border_subtitle = "esc close"
            yield self._list
            yield Static(
                Content.from_markup(
                    "[@click=screen.ask][bold]enter[/] why this[/]  "
                    "[@click=screen.way('backward')][bold]b[/] causes[/]  "
                    "[@click=screen.way('forward')][bold]f[/] what stands on it[/]  "
                    "[@click=screen.way('wrong')][bold]x[/] if it is wrong[/]  "
                    "[@click=screen.mark][bold]w[/] mark wrong[/]  "
                    "[@click=screen.retract][bold]r[/] retract[/]  "
                    "[@click=screen.back][bold]backspace[/] back[/]"
                ),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """The chain has the focus."""
        self._list.show(self._model)
        self._list.focus()

    def show(self, model: WhyModel) -> None:
        """Show another chain, from its first line on."""
        self._model = model
        self.query_one(Vertical).border_title = Content(clean_line(model.title, limit=120))
        self._list.show(model)
        self._list.move_cursor("0")

    def _row(self) -> WhyRow | None:
        """The event under the cursor."""
        rows = enumerate(self._model.rows)
        return next((row for at, row in rows if f"{at}" == self._list.cursor and row.ref), None)

    def action_mark(self) -> None:
        """Mark the event under the cursor as wrong, or take that back."""
        if (row := self._row()) is not None:
            self.post_message(self.MarkAsked(row.ref))

    def action_retract(self) -> None:
        """Take back the beliefs that stand on the event under the cursor alone."""
        if (row := self._row()) is not None:
            self.post_message(self.RetractAsked(row.ref))

    def action_ask(self) -> None:
        """Ask for the causes of the event under the cursor."""
        row = self._row()
        if row is not None and row.kind != "missing" and row.ref != self._model.what:
            self._ask(row.ref, "forward" if self._model.way in ("forward", "wrong") else "backward")

    def action_way(self, way: str) -> None:
        """Ask the other way about the same thing."""
        if self._model.what and way != self._model.way:
            self._ask(self._model.what, way)

    def _ask(self, what: str, way: str) -> None:
        if self._model.what:
            self._before.append((self._model.what, self._model.way))
        self.post_message(self.Asked(what, way))

    def action_back(self) -> None:
        """Go back to the question before."""
        if self._before:
            self.post_message(self.Asked(*self._before.pop()))
