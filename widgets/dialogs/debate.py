"""A debate: its motion, the turns by side, the ledger, the judge's passes and the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from typing import ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from engine.core.text import clean, clean_line
from engine.value import dataclass
from widgets.base.dialog import BoxDialog, DialogKey, TextDialog
from widgets.base.facts import Fact, FactsPane, fact_lines
from widgets.base.line_pane import FAR, LinePane
from widgets.base.text_layout import Piece, Pieces, fit, width_of, wrap

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
        self._one_side = False
        self._lines: list[Pieces] = []
        self._spans: dict[str, range] = {}

    def show(self, columns: tuple[Column, ...], cards: tuple[Card, ...]) -> None:
        """Show these; the cursor stays on its card."""
        if (columns, cards) == (self._columns, self._cards):
            return
        self._columns, self._cards = columns, cards
        if self.card is None:
            self.list.cursor = cards[0].key if cards else ""
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
        return next((card for card in self._cards if card.key == self.list.cursor), None)

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
        linked = (other.key for other in self._cards if other.key in card.links or card.key in other.links)
        return (card.key, *linked)

    @property
    def shown_columns(self) -> tuple[Column, ...]:
        """The sides whose cards are shown."""
        if not self._one_side:
            return self._columns
        return tuple(column for column in self._columns if column.label == self.side)

    def heading(self) -> Pieces:
        """What stands above the columns; where one side is shown, all of them as tabs."""
        if self._one_side:
            tabs: list[Piece] = []
            for column in self._columns:
                here = column.label == self.side
                agent = clean_line(column.agent, limit=24)
                name = f"[{column.title}]" if here else f" {column.label} {agent} "
                tabs += [Piece(name, "strong" if here else "dim"), Piece(" ")]
            return tuple(tabs)
        cells = self._cells()
        line: Pieces = (Piece(" " * self.gutter_width),)
        for column in self._columns:
            line = (*line, *fit((Piece(column.title, "strong"),), (), cells), Piece(" " * GAP))
        return line

    def _cells(self) -> int:
        count = max(1, len(self.shown_columns))
        return max(8, (self.text_width - GAP * (count - 1)) // count)

    def _lay_out(self) -> None:
        self._lines, self._spans = [], {}
        if self.text_width > 0:
            marked, cells = self.marked, self._cells()
            for number in sorted({card.round for card in self._cards}):
                self._lines += [(Piece(""),)] if self._lines else []
                name = "openings, each blind to the other" if number == 0 else f"round {number}"
                self._lines.append((Piece(f"── {name} ", "heading"),))
                self._add_round(number, cells, marked)
        self.lines_changed()
        if (span := self._spans.get(self.list.cursor)) is not None:
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
        self._lay_out()

    def _go(self, card: Card | None) -> None:
        if card is not None and card.key != self.list.cursor:
            self.list.cursor = card.key
            self._lay_out()
            self.post_message(self.Moved())

    def step(self, by: int) -> None:
        """Go to a card above or below; a page is four cards at most."""
        own = [card for card in self._cards if card.side == self.side]
        if own:
            at = next((at for at, card in enumerate(own) if card.key == self.list.cursor), 0)
            by = by if abs(by) == FAR else max(-4, min(4, by))
            self._go(own[max(0, min(len(own) - 1, at + by))])

    def action_side(self, by: int) -> None:
        """Go to the next side: to the card that this one is about, else to one of the same round."""
        labels = [column.label for column in self._columns]
        if not labels:
            return
        there = labels[max(0, min(len(labels) - 1, labels.index(self.side) + by))]
        here = self.card
        if here is None or there == here.side:
            return
        theirs = [card for card in self._cards if card.side == there]
        linked = [card for card in theirs if card.key in self.marked]
        near = sorted(theirs, key=lambda card: abs(card.round - here.round))
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
            self.copy(f"{clean_line(card.head)} {clean_line(card.text, limit=20_000)}", "card")


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


DebateWish = Literal["step_mode", "go_on", "question", "evidence", "round", "time", "override", "cancel"]
NARROW = 100
"""Cells below which the sides are tabs."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What the judge said in one order of the sides."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DebateModel:
    """What the dialog shows."""

    handoff: str = ""
    motion: str = ""
    state: str = ""
    """Mark and word, and which round it is."""
    columns: tuple[Column, ...] = ()
    cards: tuple[Card, ...] = ()
    ledger: str = ""
    """How many claims stand, are rebutted, are conceded."""
    calls: str = ""
    """As `4 of 8 calls`."""
    passes: tuple[Pass, ...] = ()
    verdict: tuple[Fact, ...] = ()
    """The verdict with its confidence, the operator's, the dissent."""
    asked: str = ""
    """The question between two rounds that waits, by its id; empty for none."""
    may: frozenset[DebateWish] = frozenset()
    """What can be asked for now."""
    why_not: str = ""
    """Why the rest cannot."""
    said: str = ""


def _outcome_lines(model: DebateModel, width: int) -> Iterator[Pieces]:
    """Counts first, then the verdict with the judge's passes side by side, then what else was judged."""
    counts = " · ".join(filter(None, (clean_line(model.ledger), clean_line(model.calls))))
    yield from wrap((Piece(counts, "strong"),), width, most=3)
    yield from fact_lines(model.verdict[:1], width)
    yield from _side_by_side(model.passes, width)
    yield from fact_lines(model.verdict[1:], width)


def _side_by_side(passes: tuple[Pass, ...], width: int) -> list[Pieces]:
    cells = max(16, (width - 3 * (len(passes) - 1)) // max(1, len(passes)))
    columns: list[list[Pieces]] = []
    for judged in passes:
        lines = [*wrap((Piece(clean_line(judged.title, limit=200), "accent"),), cells, most=2)]
        for words in judged.lines:
            lines += wrap((Piece(clean_line(words, limit=2_000)),), cells, indent=2, most=6)
        columns.append(lines)
    return [
        tuple(
            piece
            for at, part in enumerate(row)
            for piece in (*((Piece(" │ ", "dim"),) if at else ()), *fit(part, (), cells))
        )
        for row in zip_longest(*columns, fillvalue=())
    ]


class DebateDialog(BoxDialog[None]):
    """Posts what is wanted between two rounds; its opener answers by `show`."""

    SHORT = 30
    DEFAULT_CSS = """
    DebateDialog > Vertical.-full { width: 99%; max-width: 240; }
    DebateDialog #motion { height: auto; max-height: 3; text-style: bold; }
    DebateDialog #sides { height: 1; }
    DebateDialog #outcome { height: 11; }
    DebateDialog.-short #outcome { height: 6; }
    """
    KEYS = (
        DialogKey("g", "wish('go_on')", "go on", priority=True),
        DialogKey("q", "wish('question')", "question"),
        DialogKey("e", "wish('evidence')", "evidence"),
        DialogKey("plus", "wish('round')", "round"),
        DialogKey("T", "wish('time')", "call time"),
        DialogKey("v", "wish('override')", "your verdict"),
        DialogKey("s", "wish('step_mode')", "step mode"),
        DialogKey("c", "wish('cancel')", "cancel"),
    )

    def __init__(self, model: DebateModel) -> None:
        super().__init__()
        self.model = model
        """What is shown."""
        self.board = DebateBoard()
        """The turns."""
        self._outcome = FactsPane(title="Verdict", id="outcome", classes="-below")
        self._motion, self._sides = Static(id="motion"), Static(id="sides")

    def compose(self) -> ComposeResult:
        """The motion, the sides, the verdict, and the keys between rounds."""
        parts = (self._motion, self._sides, self.board, self._outcome, self.said, self.line, self.keys)
        yield self.box(*parts, classes="-full")

    def on_mount(self) -> None:
        """The turns have the focus."""
        self.show(self.model)
        self.board.focus()

    def on_resize(self) -> None:
        """Make tabs of the sides where there is no room for columns."""
        self.board.one_side = self.size.width < NARROW
        self.call_after_refresh(self._show_heading)

    def show(self, model: DebateModel) -> None:
        """Show this debate; the cursor stays on its card."""
        before, self.model = self.model, model
        hint = f"{model.state} · enter reads · esc close"
        self.set_title(f"Debate {clean_line(model.handoff, limit=24)}", hint)
        self._motion.update(Content(clean_line(model.motion, limit=1_000)))
        self.board.show(model.columns, model.cards)
        judged = (model.ledger, model.calls, model.passes, model.verdict)
        other = before.handoff != model.handoff
        self._outcome.show_text(judged, partial(_outcome_lines, model), from_start=other)
        self.say(model.said)
        sides = DialogKey("", "", "sides", shown="← →")
        self.show_possible(model.may, sides, DialogKey("", "", "verdict", shown="tab"))
        self._show_heading()

    def _show_heading(self) -> None:
        styles = {"strong": "bold", "dim": "$foreground-muted"}
        parts = [Content(text).stylize(styles.get(str(style), "")) for text, style in self.board.heading()]
        self._sides.update(Content("").join(parts))

    @on(DebateBoard.Moved)
    def _moved(self) -> None:
        self._show_heading()

    @on(DebateBoard.Opened)
    def _read_card(self, event: DebateBoard.Opened) -> None:
        card = event.card
        text = clean("\n\n".join(filter(None, (card.text, card.more))))
        self.app.push_screen(TextDialog(card.head, f"{clean_line(card.head)}\n{text}"))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`g` comes before the panes, where it begins a chord, but not where a text is typed."""
        if action == "wish" and isinstance(self.focused, Input):
            return False
        return super().check_action(action, parameters)

    def action_wish(self, wish: DebateWish) -> None:
        """Ask for something that can be asked for now, with words where it needs some."""
        if wish not in self.model.may:
            why = self.model.why_not or "that cannot be asked for now"
            self.say(f"{self.key_of(wish).words}: {why}")
        elif (label := _LABELS.get(wish)) is not None:
            self.write(wish, label)
        else:
            self.request("wanted", self.model.handoff, wish)

    def written(self, what: str, text: str) -> bool:
        """Ask for it with what was written."""
        if text:
            self.request("wanted", self.model.handoff, what, text)
        return True


_LABELS: dict[DebateWish, str] = {
    "question": "both sides answer:",
    "evidence": "both sides are told:",
    "override": "your verdict, beside the judge's:",
}
