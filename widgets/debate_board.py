"""The turns of a debate: a column for each side, a row for each round, claims and answers as cards."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import ClassVar, Literal

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from engine.domain.text import clean_line
from widgets.line_pane import LinePane
from widgets.pieces import Piece, Pieces, fit, width_of, wrap

GAP = 2
"""Cells between two columns."""
CARD_LINES = 5
"""Lines of a card's text; the rest is read with enter."""


@dataclass(frozen=True, slots=True)
class Card:
    """Something that a side said."""

    key: str
    side: str
    round: int
    kind: Literal["claim", "reply", "note"]
    head: str
    """As `A1 ✓ quoted · standing` or `→ B1 refutes`."""
    style: str
    text: str
    links: tuple[str, ...] = ()
    """Cards that it answers."""
    more: str = ""
    """Its evidence, to be read with the whole text."""


@dataclass(frozen=True, slots=True)
class Column:
    """A side."""

    label: str
    agent: str
    stance: str

    @property
    def title(self) -> str:
        """What stands above its cards."""
        return clean_line(f"{self.label} {self.agent}: {self.stance}", limit=200)


class DebateBoard(LinePane):
    """Cards under a cursor; the card that is answered, or that answers, is marked with it."""

    BINDING_GROUP_TITLE = "Turns"
    EMPTY = "The openings are under way; no side sees the other's."
    DEFAULT_CSS = """
    DebateBoard, DebateBoard:focus { border: none; height: 1fr; min-height: 4; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "side(-1)", "Side to the left", show=False, id="debate.left"),
        Binding("right,l", "side(1)", "Side to the right", show=False, id="debate.right"),
        Binding("enter", "read", "Read the whole card", show=False, id="debate.read"),
    ]

    @dataclass
    class Moved(Message):
        """Another card is under the cursor."""

    @dataclass
    class Opened(Message):
        """A card is to be read whole."""

        card: Card

    def __init__(self) -> None:
        super().__init__()
        self._columns: tuple[Column, ...] = ()
        self._cards: tuple[Card, ...] = ()
        self._cursor = ""
        self._one_side = False
        self._lines: list[Pieces] = []
        self._spans: dict[str, range] = {}
        self._laid_out_width = -1

    # -------------------------------------------------------------- what is shown

    def show(self, columns: tuple[Column, ...], cards: tuple[Card, ...]) -> None:
        """Show these; the cursor stays on its card."""
        if (columns, cards) == (self._columns, self._cards):
            return
        self._columns, self._cards = columns, cards
        if self.card is None:
            self._cursor = cards[0].key if cards else ""
        self._lay_out()

    @property
    def one_side(self) -> bool:
        """Whether only the side under the cursor is shown, the others as tabs."""
        return self._one_side

    @one_side.setter
    def one_side(self, only: bool) -> None:
        if only != self._one_side:
            self._one_side = only
            self._lay_out()

    @property
    def card(self) -> Card | None:
        """The card under the cursor."""
        return next((one for one in self._cards if one.key == self._cursor), None)

    @property
    def side(self) -> str:
        """The side that the cursor is on."""
        card = self.card
        return card.side if card is not None else self._columns[0].label if self._columns else ""

    @property
    def marked(self) -> tuple[str, ...]:
        """The card under the cursor, and those that it answers or that answer it."""
        card = self.card
        if card is None:
            return ()
        linked = (one.key for one in self._cards if one.key in card.links or card.key in one.links)
        return (card.key, *linked)

    @property
    def shown_columns(self) -> tuple[Column, ...]:
        """The sides whose cards are shown."""
        if not self._one_side:
            return self._columns
        return tuple(one for one in self._columns if one.label == self.side)

    def heading(self) -> Pieces:
        """What stands above the columns; where one side is shown, all of them as tabs."""
        if self._one_side:
            tabs: list[Piece] = []
            for one in self._columns:
                here = one.label == self.side
                name = f"[{one.title}]" if here else f" {one.label} {clean_line(one.agent, limit=24)} "
                tabs += [Piece(name, "strong" if here else "dim"), Piece(" ")]
            return tuple(tabs)
        cells = self._cells()
        line: Pieces = (Piece(" " * self.gutter_width),)
        for one in self._columns:
            line = (*line, *fit((Piece(one.title, "strong"),), (), cells), Piece(" " * GAP))
        return line

    # -------------------------------------------------------------- laying out

    def _cells(self) -> int:
        count = max(1, len(self.shown_columns))
        return max(8, (self.text_width - GAP * (count - 1)) // count)

    def _lay_out(self) -> None:
        self._lines, self._spans = [], {}
        self._laid_out_width = self.text_width
        if self.text_width > 0:
            marked, cells = self.marked, self._cells()
            for number in sorted({one.round for one in self._cards}):
                self._lines += [(Piece(""),)] if self._lines else []
                name = "openings, each blind to the other" if number == 0 else f"round {number}"
                self._lines.append((Piece(f"── {name} ", "heading"),))
                self._add_round(number, cells, marked)
        self.lines_changed()
        if (span := self._spans.get(self._cursor)) is not None:
            self.reveal(span)

    def _add_round(self, number: int, cells: int, marked: tuple[str, ...]) -> None:
        columns: list[list[Pieces]] = []
        for column in self.shown_columns:
            lines: list[Pieces] = []
            for card in self._cards:
                if card.side == column.label and card.round == number:
                    drawn = _drawn(card, cells, marked)
                    start = len(self._lines) + len(lines)
                    self._spans[card.key] = range(start, start + len(drawn))
                    lines += drawn
            columns.append(lines)
        for row in zip_longest(*columns, fillvalue=()):
            line: Pieces = ()
            for at, part in enumerate(row):
                line = (*line, *((Piece(" " * GAP),) if at else ()), *fit(part, (), cells))
            self._lines.append(line)

    def line_total(self) -> tuple[int, int]:
        """Lines count from 0."""
        return 0, len(self._lines)

    def line(self, number: int) -> Pieces:
        """A line of all columns."""
        return self._lines[number]

    def on_resize(self) -> None:
        """Break the cards anew."""
        if self.text_width != self._laid_out_width:
            self._lay_out()
        self.lines_changed()

    # -------------------------------------------------------------- the operator

    def _go(self, card: Card | None) -> None:
        if card is not None and card.key != self._cursor:
            self._cursor = card.key
            self._lay_out()
            self.post_message(self.Moved())

    def _step(self, by: int) -> None:
        own = [one for one in self._cards if one.side == self.side]
        if own:
            at = next((at for at, one in enumerate(own) if one.key == self._cursor), 0)
            self._go(own[max(0, min(len(own) - 1, at + by))])

    def action_up(self) -> None:
        """Go to the card above."""
        self._step(-1)

    def action_down(self) -> None:
        """Go to the card below."""
        self._step(1)

    def action_page_up(self) -> None:
        """Go a few cards up."""
        self._step(-4)

    def action_page_down(self) -> None:
        """Go a few cards down."""
        self._step(4)

    def action_top(self) -> None:
        """Go to the first card."""
        self._step(-len(self._cards))

    def action_bottom(self) -> None:
        """Go to the last card."""
        self._step(len(self._cards))

    def action_side(self, by: int) -> None:
        """Go to the next side: to the card that this one is about, else to one of the same round."""
        labels = [one.label for one in self._columns]
        if not labels:
            return
        there = labels[max(0, min(len(labels) - 1, labels.index(self.side) + by))]
        here = self.card
        if here is None or there == here.side:
            return
        theirs = [one for one in self._cards if one.side == there]
        linked = [one for one in theirs if one.key in self.marked]
        near = sorted(theirs, key=lambda one: abs(one.round - here.round))
        self._go(next(iter([*linked, *near]), None))

    def action_read(self) -> None:
        """Read the card whole."""
        if (card := self.card) is not None:
            self.post_message(self.Opened(card))

    def on_click(self, event: events.Click) -> None:
        """A click on a card puts the cursor there; a second one reads it."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        line, columns = self.top + offset.y, self.shown_columns
        at = max(0, offset.x - self.gutter_width) // (self._cells() + GAP)
        for card in self._cards:
            if at < len(columns) and card.side == columns[at].label and line in self._spans.get(card.key, ()):
                self._go(card)
                if event.chain == 2:
                    self.action_read()

    def action_copy_row(self) -> None:
        """Copy the card."""
        if (card := self.card) is not None:
            self._copy(f"{clean_line(card.head)} {clean_line(card.text, limit=20_000)}", "card")


def _drawn(card: Card, cells: int, marked: tuple[str, ...]) -> list[Pieces]:
    """A card in lines: who is under the cursor has `▶`, who belongs to it `◆`."""
    here = bool(marked) and card.key == marked[0]
    mark = "▶" if here else "◆" if card.key in marked else " "
    lit = card.key in marked
    side = Piece("┃ " if lit else "│ ", "accent" if lit else "dim")
    width = max(6, cells - width_of((side,)) - 1)
    head = (Piece(clean_line(card.head, limit=200), "strong" if lit else card.style),)
    words = (Piece(clean_line(card.text, limit=4_000), "dim" if card.kind == "note" and not lit else "text"),)
    lines = [*wrap(head, width, most=2), *(wrap(words, width, most=CARD_LINES) if card.text else ())]
    return [(Piece(mark if at == 0 else " ", "accent"), side, *line) for at, line in enumerate(lines)]
