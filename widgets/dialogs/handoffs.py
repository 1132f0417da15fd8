"""Handoffs as trees, and why an agent would be selected for a text."""

from __future__ import annotations

from functools import partial
from typing import Literal

from rich.cells import cell_len
from textual import on
from textual.content import Content
from textual.widgets import Static

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.dialog import ListDialog, RowsDialog
from widgets.base.facts import Fact, FactsPane
from widgets.base.line_pane import Notice, RowChosen, RowHighlighted
from widgets.base.rows import Row
from widgets.base.text_layout import Piece, cut_text

HandoffRequest = Literal["cancel", "retry", "raise", "lower", "take_over", "pause", "prompt", "error", "open"]
NAME_CELLS = 34
LOOKS_PER_S = 10


@dataclass(frozen=True, slots=True)
class HandoffLine:
    """One handoff, or the group that several belong to."""

    key: str
    name: str
    """Its letter, its id and who works on it."""
    lead: str = ""
    """The branches and brackets before it."""
    mark: str = " "
    style: str = "dim"
    state: str = ""
    time: str = ""
    heading: bool = False
    """Whether it is a group."""
    tail: str = ""
    """Its confidence, or why it failed."""
    may: frozenset[HandoffRequest] = frozenset()
    """What can be asked of it now."""


@dataclass(frozen=True, slots=True)
class HandoffsModel:
    """What the timeline shows."""

    lines: tuple[HandoffLine, ...] = ()
    standing: str = ""
    shown: str = ""
    """The handoff that `facts` are about."""
    facts: tuple[Fact, ...] = ()
    said: str = ""
    notice: Notice | None = None


class HandoffsDialog(ListDialog[HandoffsModel]):
    """The trees of handoffs, the newest first; it asks for a newer state by itself."""

    TITLE_TEXT, LIST_TITLE, CLASSES = "Handoffs", "Handoffs", "-full"
    HINT = "esc close"
    EMPTY = "Nothing was handed over yet: F, then I."
    WIDE = 140

    def __init__(self, model: HandoffsModel) -> None:
        super().__init__(model)
        self._facts = FactsPane(title="Handoff", id="facts")
        self._standing = Static(id="standing")
        self.parts = (self._standing, self.halves(self.list, self._facts), self.said, self.keys)

    def rows(self) -> list[Row]:
        """The trees."""
        return [_row(line) for line in self.model.lines]

    def on_mount(self) -> None:
        """The trees have the focus."""
        super().on_mount()
        if self.model.shown:
            self.list.move_cursor(self.model.shown)
            # How many lines there is room for is known only then.
            self.call_after_refresh(lambda: self.list.reveal(self.list.cursor_lines()))
        self.set_interval(1 / LOOKS_PER_S, partial(self.request, "refresh"))

    def show(self, model: HandoffsModel) -> None:
        """Show these handoffs; the cursor stays on its own."""
        super().show(model)
        self._standing.update(Content(clean_line(model.standing)))
        line = self._line()
        self.show_possible(line.may if line is not None else ())
        self._facts.set_facts(model.facts if line is not None and line.key == model.shown else ())

    def _line(self) -> HandoffLine | None:
        return next((line for line in self.model.lines if line.key == self.list.cursor), None)

    @on(RowHighlighted, "#list")
    def _look(self, event: RowHighlighted) -> None:
        self.request("looked", event.key)

    @on(RowChosen, "#list")
    def _open(self) -> None:
        self.action_request("open")

    def action_request(self, request: HandoffRequest) -> None:
        """Ask for something that can be asked for now."""
        line = self._line()
        if line is None:
            return
        if request in line.may:
            self.request("wanted", line.key, request)
        else:
            self.say(f"{line.name} is {line.state}: {self.key_of(request).why_not}")

    def action_fleet(self) -> None:
        """See the agents."""
        self.request("fleet")


def _row(line: HandoffLine) -> Row:
    if line.heading:
        name, time = f"{line.lead}{clean_line(line.name, limit=300)}", ""
    else:
        name, time = cut_text(f"{line.lead}{clean_line(line.name)}", NAME_CELLS), f"{line.time:>5} "
        name += " " * (NAME_CELLS - cell_len(name))
    tail = (Piece(f" {clean_line(line.tail, limit=200)}", line.style if line.style == "error" else "dim"),)
    pieces = (
        Piece(f"{name} ", "strong" if line.heading else "text"),
        Piece(time, "dim"),
        Piece(line.state, line.style),
        *(tail if line.tail else ()),
    )
    copy = " ".join(filter(None, (clean_line(line.name), line.state, line.time, clean_line(line.tail))))
    return Row(line.key, pieces, mark=Piece(line.mark, line.style), copy=copy)


class SelectionDialog(RowsDialog):
    """The candidates, best first; enter offers to hand the text to the agent under the cursor."""

    HINT, LIST_TITLE, CHOOSING = "enter hands it over · esc close", "Candidates", "chosen"
