"""Handoffs as trees with a bar of time each, and why an agent would be selected for a text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from rich.cells import cell_len
from textual import on
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.dialog import DialogKey, ListDialog
from widgets.base.facts import Fact, FactsPane
from widgets.base.line_pane import RowChosen, RowHighlighted
from widgets.base.rows import Row
from widgets.base.text_layout import Piece, Pieces, bar, cut_text

HandoffWish = Literal["cancel", "retry", "raise", "lower", "take_over", "pause", "prompt", "error", "open"]
SpanKind = Literal["queued", "running", "waiting", "paused"]
NAME_CELLS = 34
TOLD, BARE = 40, 20
"""Cells that are left behind a bar: for times and states, and for why something failed."""
LOOKS_PER_S = 10
DRAWN: dict[str, tuple[str, str]] = {
    "queued": ("░", "dim"),
    "running": ("█", "accent"),
    "waiting": ("▒", "warning"),
    "paused": ("╌", "dim"),
}
"""Cells of each kind of time: what waits its turn is dim, what runs solid, what waits for you hatched."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time that a handoff spent in one way, in seconds from the beginning of its tree."""

    kind: SpanKind
    begin: float
    end: float


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
    spans: tuple[Span, ...] = ()
    length: float = 0.0
    """Seconds of its whole tree, so that bars of a tree stand on one scale."""
    tail: str = ""
    """Its confidence, or why it failed."""
    may: frozenset[HandoffWish] = frozenset()
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


class HandoffsDialog(ListDialog[HandoffsModel]):
    """The trees of handoffs, the newest first; it asks for a newer state by itself."""

    TITLE_TEXT, LIST_TITLE, CLASSES = "Handoffs", "Handoffs", "-full"
    HINT = "░ queued █ running ▒ waits for you ╌ paused · esc close"
    EMPTY = "Nothing was handed over yet: F, then d."
    WIDE = 140
    DEFAULT_CSS = """
    HandoffsDialog > Vertical.-full { width: 100%; height: 100%; max-width: 400; max-height: 100%; }
    HandoffsDialog #standing { color: $foreground; }
    HandoffsDialog.-wide #facts { width: 42%; }
    """
    KEYS = (
        DialogKey("enter", "wish('open')", "go to it", why_not="no agent of the engine works on it"),
        DialogKey("p", "wish('prompt')", "prompt", why_not="it has none of its own"),
        DialogKey("c", "wish('cancel')", "cancel", why_not="there is nothing to cancel"),
        DialogKey(
            "r", "wish('retry')", "retry", why_not="only what has ended without success is tried again"
        ),
        DialogKey(
            "plus,equals_sign",
            "wish('raise')",
            "priority",
            shown="+ -",
            why_not="only what is open has a priority",
        ),
        DialogKey("m", "wish('take_over')", "take over", why_not="only what is open can be taken over"),
        DialogKey(
            "space",
            "wish('pause')",
            "pause/go on",
            why_not="only what runs is paused, only what is paused goes on",
        ),
        DialogKey("o", "wish('error')", "error", why_not="it has no error"),
        DialogKey("minus", "wish('lower')", why_not="only what is open has a priority"),
        DialogKey("f", "fleet", "fleet"),
        DialogKey("q", "close"),
    )

    def __init__(self, model: HandoffsModel) -> None:
        super().__init__(model)
        self._facts = FactsPane(title="Handoff", id="facts")
        self._standing = Static(id="standing")

    def parts(self) -> Sequence[Widget]:
        """How many, the trees, what is known of one, and the keys."""
        return (self._standing, self.halves(self.list, self._facts), self.said, self.keys)

    def rows(self) -> list[Row]:
        """The trees, with bars as wide as there is room for."""
        return _rows(self.model.lines, self.list.text_width)

    def on_mount(self) -> None:
        """The trees have the focus."""
        super().on_mount()
        if self.model.shown:
            self.list.move_cursor(self.model.shown)
            # How many lines there is room for is known only then.
            self.call_after_refresh(lambda: self.list.reveal(self.list.cursor_lines()))
        self.set_interval(1 / LOOKS_PER_S, partial(self.request, "refresh"))

    def on_resize(self) -> None:
        """Draw the bars anew."""
        self.call_after_refresh(lambda: self.show(self.model))

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
        self.action_wish("open")

    def action_wish(self, wish: HandoffWish) -> None:
        """Ask for something that can be asked for now."""
        line = self._line()
        if line is None:
            return
        if wish in line.may:
            self.request("wanted", line.key, wish)
        else:
            self.say(f"{line.name} is {line.state}: {self.key_of(wish).why_not}")

    def action_fleet(self) -> None:
        """See the agents."""
        self.request("fleet")


def _rows(lines: tuple[HandoffLine, ...], width: int) -> list[Row]:
    """The trees, with bars as wide as there is room for."""
    names = {
        line.key: cut_text(f"{line.lead}{clean_line(line.name)}", NAME_CELLS) for line in lines if line.spans
    }
    widest = max(map(cell_len, names.values()), default=0)
    names |= {line.key: f"{line.lead}{clean_line(line.name, limit=300)}" for line in lines if not line.spans}
    room = TOLD if any(line.tail for line in lines) else BARE
    cells = max(8, min(48, width - widest - room))
    return [
        _row(line, names[line.key] + " " * max(0, widest - cell_len(names[line.key])), cells)
        for line in lines
    ]


def _row(line: HandoffLine, name: str, cells: int) -> Row:
    state = Piece(f" {line.state}", line.style)
    tail = (Piece(f" {clean_line(line.tail, limit=200)}", line.style if line.style == "error" else "dim"),)
    pieces = (
        Piece(f"{name} ", "text" if line.spans else "strong"),
        *(bar_of(line.spans, line.length, cells, line.style) if line.spans else ()),
        Piece(f" {line.time:>5}" if line.spans else "", "dim"),
        state,
        *(tail if line.tail else ()),
    )
    copy = " ".join(filter(None, (clean_line(line.name), line.state, line.time, clean_line(line.tail))))
    return Row(line.key, pieces, mark=Piece(line.mark, line.style), copy=copy)


def bar_of(spans: tuple[Span, ...], length: float, cells: int, style: str = "accent") -> Pieces:
    """A bar of time: blank before it began and after it ended, each kind of time in cells of its own.

    Args:
        spans: in order, in seconds.
        length: seconds of the whole bar.
        cells: its width.
        style: of the time in which it ran.
    """
    drawn: list[SpanKind | None] = [None] * cells
    for span in spans:
        first = int(span.begin / length * cells) if length > 0 else 0
        last = int(span.end / length * cells) if length > 0 else 0
        first = min(first, cells - 1)
        # What was shorter than a cell is seen all the same, unless it was only its turn that it waited for.
        last = max(last, first + (span.kind != "queued" or span is spans[-1]))
        drawn[first : min(last, cells)] = [span.kind] * (min(last, cells) - first)
    pieces: list[Piece] = []
    for kind in drawn:
        text, own = DRAWN[kind] if kind is not None else (" ", "dim")
        own = style if kind == "running" and style in ("success", "error") else own
        if pieces and pieces[-1].style == own and pieces[-1].text[-1] == text:
            pieces[-1] = Piece(pieces[-1].text + text, own)
        else:
            pieces.append(Piece(text, own))
    return tuple(pieces)


CELLS = 5
PARTS = (("T", 0.6), ("P", 0.4), ("C", 0.3))
"""The parts that are shares, and how much each can be; R, the record, is signed and shown as a number."""


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """An agent that was considered."""

    agent: str
    score: float
    parts: tuple[float, float, float, float]
    """T trigger, P problem, C chain, R record."""
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


class SelectionDialog(ListDialog[SelectionModel]):
    """The candidates, best first; enter offers to hand the text to the agent under the cursor."""

    HINT, LIST_TITLE, MARKS = "enter hands it over · esc close", "Candidates", False
    EMPTY = "Nothing speaks for any agent: it has to become clear first what is wanted."
    DEFAULT_CSS = """
    SelectionDialog > Vertical { height: 96%; max-width: 140; }
    SelectionDialog #standing { height: auto; max-height: 4; }
    """

    def parts(self) -> Sequence[Widget]:
        """What counted, the candidates, and the keys."""
        return (Static(Content(clean_line(self.model.standing)), id="standing"), self.list)

    def title_text(self) -> str:
        """The text that is to be handed over."""
        return f"Select: {clean_line(self.model.text, limit=90)}"

    def rows(self) -> list[Row]:
        """The best comes first."""
        return [row for candidate in self.model.rows for row in _candidate_rows(candidate)]

    @on(RowChosen)
    def action_delegate(self) -> None:
        """Hand the text to the agent under the cursor."""
        if self.list.cursor:
            self.request("chosen", self.list.cursor)
            self.dismiss(None)


def _candidate_rows(candidate: CandidateRow) -> list[Row]:
    pieces: list[Piece] = [
        Piece(f"{candidate.place or '·':>2} ", "dim"),
        Piece(f"{cut_text(clean_line(candidate.agent), 18):<18} ", "strong" if candidate.place else "dim"),
        Piece(f"{candidate.score:7.4g} ", "text"),
    ]
    for (name, most), value in zip(PARTS, candidate.parts[:3], strict=True):
        pieces += [Piece(f"{name} ", "dim"), *bar(value / most, CELLS, style="accent"), Piece(" ")]
    style = "success" if candidate.parts[3] > 0 else "error" if candidate.parts[3] < 0 else "dim"
    pieces.append(Piece(f"R {candidate.parts[3]:+.3f}", style))
    sentences = (*candidate.why, *((candidate.lost,) if candidate.lost else ()))
    copy = " ".join((clean_line(candidate.agent), f"{candidate.score:.6g}", *map(clean_line, sentences)))
    rows = [Row(candidate.agent, tuple(pieces), copy=copy)]
    for at, sentence in enumerate(sentences):
        words: Pieces = (Piece("   "), Piece(clean_line(sentence, limit=600), "dim"))
        rows.append(Row(f"{candidate.agent} {at}", words, selectable=False, indent=3, most=3))
    return rows
