"""The handoff timeline: who handed what to whom, as trees with a bar of time each (ontology spec §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.facts import Fact, FactsPane
from widgets.line_pane import Notice
from widgets.pieces import Piece, Pieces, cut_text
from widgets.rows import Row, RowPane

HandoffWish = Literal["cancel", "retry", "raise", "lower", "take_over", "pause", "prompt", "error", "open"]
SpanKind = Literal["queued", "running", "waiting", "paused"]
WIDE = 140
"""Cells from which on what is known of a handoff stands beside the trees."""
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


class HandoffTree(RowPane):
    """The trees, the newest first."""

    BINDING_GROUP_TITLE = "Handoffs"
    MARKS = True
    DEFAULT_CSS = """
    HandoffTree, HandoffTree:focus { border: none; height: 1fr; min-height: 3; }
    """

    def row_highlighted(self, key: str) -> None:
        """Tell what is known of it."""
        self.post_message(HandoffsDialog.Looked(key))

    def row_chosen(self, key: str) -> None:
        """Go to where it works."""
        if isinstance(self.screen, HandoffsDialog):
            self.screen.action_wish("open")


class HandoffFacts(FactsPane):
    """The context as it was sent, what happened, what came of it and what it took."""

    BINDING_GROUP_TITLE = "Handoff"
    DEFAULT_CSS = """
    HandoffFacts, HandoffFacts:focus { border: none; height: 1fr; min-height: 4; }
    """


class HandoffsDialog(BoxDialog[None]):
    """Posts what is wanted of handoffs; whoever opens it answers by `show`."""

    DEFAULT_CSS = """
    HandoffsDialog > Vertical { width: 100%; height: 100%; max-width: 400; max-height: 100%; }
    HandoffsDialog #standing { height: 1; }
    HandoffsDialog #said { height: auto; max-height: 2; color: $text-warning; }
    HandoffsDialog #both { height: 1fr; layout: vertical; }
    HandoffsDialog HandoffFacts { border-top: solid $border-blurred; }
    HandoffsDialog HandoffFacts:focus { border-top: heavy $border; }
    HandoffsDialog.-wide #both { layout: horizontal; }
    HandoffsDialog.-wide HandoffTree { width: 58%; }
    HandoffsDialog.-wide HandoffFacts { width: 1fr; border-top: none; border-left: solid $border-blurred; }
    HandoffsDialog.-wide HandoffFacts:focus { border-left: heavy $border; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "wish('cancel')", "Cancel", id="handoffs.cancel"),
        Binding("r", "wish('retry')", "Retry", id="handoffs.retry"),
        Binding("plus,equals_sign", "wish('raise')", "More urgent", id="handoffs.raise"),
        Binding("minus", "wish('lower')", "Less urgent", id="handoffs.lower"),
        Binding("m", "wish('take_over')", "Take over", id="handoffs.take-over"),
        Binding("space", "wish('pause')", "Pause or go on", id="handoffs.pause"),
        Binding("p", "wish('prompt')", "Prompt", id="handoffs.prompt"),
        Binding("o", "wish('error')", "Error", id="handoffs.error"),
        Binding("f", "fleet", "Fleet", id="handoffs.fleet"),
        Binding("q", "close", "Close", show=False, id="handoffs.close"),
    ]

    @dataclass
    class Wanted(Message):
        """Something is wanted of a handoff."""

        key: str
        wish: HandoffWish

    @dataclass
    class Looked(Message):
        """The cursor is on another row."""

        key: str

    @dataclass
    class FleetWanted(Message):
        """The fleet board is to be seen."""

    @dataclass
    class RefreshWanted(Message):
        """The timeline may be out of date."""

    def __init__(self, model: HandoffsModel) -> None:
        super().__init__()
        self._model = model
        self._tree = HandoffTree()
        self._facts = HandoffFacts()
        self._standing = Static(id="standing")
        self._said = Static(id="said")
        self._keys = Static(classes="-keys")

    @property
    def model(self) -> HandoffsModel:
        """What is shown."""
        return self._model

    @property
    def tree_pane(self) -> HandoffTree:
        """The trees."""
        return self._tree

    def compose(self) -> ComposeResult:
        """How many, the trees, what is known of one, and the keys."""
        with Vertical() as box:
            box.border_title = "Handoffs"
            box.border_subtitle = "░ queued █ running ▒ waits for you ╌ paused · esc close"
            yield self._standing
            with Container(id="both"):
                yield self._tree
                yield self._facts
            yield self._said
            yield self._keys

    def on_mount(self) -> None:
        """The trees have the focus."""
        self.show(self._model)
        if self._model.shown:
            self._tree.move_cursor(self._model.shown)
            # How many lines there is room for is known only then.
            self.call_after_refresh(lambda: self._tree.reveal(self._tree.cursor_lines()))
        self._tree.focus()
        self.set_interval(1 / LOOKS_PER_S, self._wants_refresh)

    def _wants_refresh(self) -> None:
        self.post_message(self.RefreshWanted())

    def on_resize(self, event: events.Resize) -> None:
        """Put what is known beside the trees where there is room; bars are drawn anew."""
        self.set_class(event.size.width >= WIDE, "-wide")
        self.call_after_refresh(self._draw)

    def show(self, model: HandoffsModel) -> None:
        """Show these handoffs; the cursor stays on its own."""
        self._model = model
        self._draw()

    def _draw(self) -> None:
        model = self._model
        self._tree.set_notice(None if model.lines else Notice("Nothing was handed over yet: F, then d."))
        self._tree.set_rows(_rows(model.lines, self._tree.text_width))
        self._standing.update(Content(clean_line(model.standing)))
        self._said.update(Content(clean_line(model.said)))
        line = self._line()
        self._keys.update(_keys(line))
        self._facts.set_facts(model.facts if line is not None and line.key == model.shown else ())

    def _line(self) -> HandoffLine | None:
        return next((one for one in self._model.lines if one.key == self._tree.cursor), None)

    def action_wish(self, wish: HandoffWish) -> None:
        """Ask for something that can be asked for now."""
        line = self._line()
        if line is None:
            return
        if wish in line.may:
            self.post_message(self.Wanted(line.key, wish))
        else:
            self._said.update(Content(f"{clean_line(line.name)} is {line.state}: {_WHY[wish]}"))

    def action_fleet(self) -> None:
        """See the agents."""
        self.post_message(self.FleetWanted())


_WHY: dict[str, str] = {
    "cancel": "there is nothing to cancel",
    "retry": "only what has ended without success is tried again",
    "raise": "only what is open has a priority",
    "lower": "only what is open has a priority",
    "take_over": "only what is open can be taken over",
    "pause": "only what runs is paused, only what is paused goes on",
    "prompt": "it has none of its own",
    "error": "it has no error",
    "open": "no agent of the engine works on it",
}
_NAMES: dict[str, tuple[str, str]] = {
    "open": ("enter", "go to it"),
    "prompt": ("p", "prompt"),
    "cancel": ("c", "cancel"),
    "retry": ("r", "retry"),
    "raise": ("+ -", "priority"),
    "take_over": ("m", "take over"),
    "pause": ("space", "pause/go on"),
    "error": ("o", "error"),
}


def _keys(line: HandoffLine | None) -> Content:
    """The keys of what can be asked for now."""
    parts = [
        f"[@click=screen.wish('{wish}')][bold]{key}[/] {name}[/]"
        for wish, (key, name) in _NAMES.items()
        if line is not None and wish in line.may
    ]
    return Content.from_markup("   ".join([*parts, "[@click=screen.fleet][bold]f[/] fleet[/]"]))


def _rows(lines: tuple[HandoffLine, ...], width: int) -> list[Row]:
    """The trees, with bars as wide as there is room for."""
    names = {one.key: cut_text(f"{one.lead}{clean_line(one.name)}", NAME_CELLS) for one in lines if one.spans}
    widest = max(map(cell_len, names.values()), default=0)
    names |= {one.key: f"{one.lead}{clean_line(one.name, limit=300)}" for one in lines if not one.spans}
    room = TOLD if any(one.tail for one in lines) else BARE
    cells = max(8, min(48, width - widest - room))
    return [
        _row(one, names[one.key] + " " * max(0, widest - cell_len(names[one.key])), cells) for one in lines
    ]


def _row(one: HandoffLine, name: str, cells: int) -> Row:
    state = Piece(f" {one.state}", one.style)
    tail = (Piece(f" {clean_line(one.tail, limit=200)}", one.style if one.style == "error" else "dim"),)
    pieces = (
        Piece(f"{name} ", "text" if one.spans else "strong"),
        *(bar_of(one.spans, one.length, cells, one.style) if one.spans else ()),
        Piece(f" {one.time:>5}" if one.spans else "", "dim"),
        state,
        *(tail if one.tail else ()),
    )
    copy = " ".join(filter(None, (clean_line(one.name), one.state, one.time, clean_line(one.tail))))
    return Row(one.key, pieces, mark=Piece(one.mark, one.style), copy=copy)


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
