"""A debate: its motion, the turns by side, the ledger, the judge's passes and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from engine.domain.text import clean, clean_line
from widgets.debate_board import Card, Column, DebateBoard
from widgets.dialogs.box import BoxDialog
from widgets.dialogs.told import TextDialog
from widgets.facts import Fact, FactsPane, fact_lines
from widgets.pieces import Piece, Pieces, fit, wrap

DebateWish = Literal["step_mode", "go_on", "question", "evidence", "round", "time", "override", "cancel"]
NARROW = 100
"""Cells below which the sides are tabs."""
SHORT = 30
TEXT_LIMIT = 2_000
"""Characters of a question, a piece of evidence or a verdict."""


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


class Outcome(FactsPane):
    """The ledger, the passes of the judge side by side, and the verdict."""

    BINDING_GROUP_TITLE = "Verdict"
    DEFAULT_CSS = """
    Outcome, Outcome:focus { border: none; border-top: solid $border-blurred; height: 11; min-height: 3; }
    Outcome:focus { border-top: heavy $border; }
    DebateDialog.-short Outcome, DebateDialog.-short Outcome:focus { height: 6; }
    """

    _model = DebateModel()

    def show(self, model: DebateModel) -> None:
        """Show this debate's."""
        before, self._model = self._model, model
        if (before.ledger, before.calls, before.passes, before.verdict) != (
            model.ledger,
            model.calls,
            model.passes,
            model.verdict,
        ):
            self.text_changed(from_start=before.handoff != model.handoff)

    def lines_for(self, width: int) -> tuple[Pieces, ...]:
        """Counts first, then what was judged."""
        model = self._model
        counts = " · ".join(filter(None, (clean_line(model.ledger), clean_line(model.calls))))
        lines: list[Pieces] = [*wrap((Piece(counts, "strong"),), width, most=3)]
        if model.verdict:
            lines += [line for fact in model.verdict[:1] for line in fact_lines(fact, width)]
        lines += _side_by_side(model.passes, width)
        lines += [line for fact in model.verdict[1:] for line in fact_lines(fact, width)]
        return tuple(lines)


def _side_by_side(passes: tuple[Pass, ...], width: int) -> list[Pieces]:
    cells = max(16, (width - 3 * (len(passes) - 1)) // max(1, len(passes)))
    columns: list[list[Pieces]] = []
    for one in passes:
        lines = [*wrap((Piece(clean_line(one.title, limit=200), "accent"),), cells, most=2)]
        for words in one.lines:
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
    """Posts what is wanted between two rounds; whoever opens it answers by `show`."""

    DEFAULT_CSS = """
    DebateDialog > Vertical { width: 99%; height: 98%; max-width: 240; max-height: 98%; }
    DebateDialog #motion { height: auto; max-height: 3; text-style: bold; }
    DebateDialog #sides { height: 1; }
    DebateDialog #said { height: auto; max-height: 2; color: $text-warning; }
    DebateDialog #written { height: 3; display: none; }
    DebateDialog.-writing #written { display: block; }
    DebateDialog #written Static { width: auto; max-width: 40%; padding: 1 1 0 0; color: $foreground-muted; }
    DebateDialog #written Input { width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "wish('step_mode')", "Step mode", id="debate.step-mode"),
        Binding("g", "wish('go_on')", "Go on", priority=True, id="debate.go-on"),
        Binding("q", "wish('question')", "Question to both sides", id="debate.question"),
        Binding("e", "wish('evidence')", "Evidence for both sides", id="debate.evidence"),
        Binding("plus", "wish('round')", "One round more", id="debate.round"),
        Binding("T", "wish('time')", "Call time: judge it now", id="debate.time"),
        Binding("v", "wish('override')", "Your verdict", id="debate.override"),
        Binding("c", "wish('cancel')", "Cancel", id="debate.cancel"),
    ]

    @dataclass
    class Wanted(Message):
        """Something is wanted of the debate."""

        handoff: str
        wish: DebateWish
        text: str = ""

    def __init__(self, model: DebateModel) -> None:
        super().__init__()
        self._model, self._box = model, Vertical()
        self._board, self._outcome = DebateBoard(), Outcome()
        self._motion, self._sides = Static(id="motion"), Static(id="sides")
        self._said, self._keys = Static(id="said"), Static(classes="-keys")
        self._label, self._input = Static(), Input(max_length=TEXT_LIMIT)
        self._writing: DebateWish | None = None

    @property
    def model(self) -> DebateModel:
        """What is shown."""
        return self._model

    @property
    def board(self) -> DebateBoard:
        """The turns."""
        return self._board

    def compose(self) -> ComposeResult:
        """The motion, the sides, what came of it, and the bar between rounds."""
        with self._box:
            yield self._motion
            yield self._sides
            yield self._board
            yield self._outcome
            yield self._said
            with Horizontal(id="written"):
                yield self._label
                yield self._input
            yield self._keys

    def on_mount(self) -> None:
        """The turns have the focus."""
        self.show(self._model)
        self._board.focus()

    def on_resize(self, event: events.Resize) -> None:
        """Make tabs of the sides where there is no room for columns."""
        self._board.one_side = event.size.width < NARROW
        self.set_class(event.size.height < SHORT, "-short")
        self.call_after_refresh(self._show_heading)

    def show(self, model: DebateModel) -> None:
        """Show this debate; the cursor stays on its card."""
        self._model = model
        box = self._box
        box.border_title = Content(f"Debate {clean_line(model.handoff, limit=24)}".rstrip())
        box.border_subtitle = Content(f"{clean_line(model.state)} · enter reads · esc close".lstrip(" ·"))
        self._motion.update(Content(clean_line(model.motion, limit=1_000)))
        self._board.show(model.columns, model.cards)
        self._outcome.show(model)
        self._said.update(Content(clean_line(model.said)))
        self._said.display = bool(model.said)
        self._keys.update(_keys(model))
        self._show_heading()

    def _show_heading(self) -> None:
        styles = {"strong": "bold", "dim": "$foreground-muted"}
        parts = [Content(one.text).stylize(styles.get(str(one.style), "")) for one in self._board.heading()]
        self._sides.update(Content("").join(parts))

    @on(DebateBoard.Moved)
    def _moved(self) -> None:
        self._show_heading()

    @on(DebateBoard.Opened)
    def _read_card(self, event: DebateBoard.Opened) -> None:
        card = event.card
        text = clean("\n\n".join(filter(None, (card.text, card.more))))
        self.app.push_screen(TextDialog(card.head, f"{clean_line(card.head)}\n{text}"))

    # -------------------------------------------------------------- the bar

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`g` comes before the panes, where it begins a chord, but not where a text is typed."""
        if action == "wish" and isinstance(self.focused, Input):
            return False
        return super().check_action(action, parameters)

    def action_wish(self, wish: DebateWish) -> None:
        """Ask for something that can be asked for now, with words where it needs some."""
        if wish not in self._model.may:
            why = self._model.why_not or "that cannot be asked for now"
            self._said.display = True
            self._said.update(Content(f"{_NAMES[wish][1]}: {clean_line(why)}"))
        elif (label := _LABELS.get(wish)) is not None:
            self._writing = wish
            self._label.update(Content(label))
            self._input.value = ""
            self.set_class(True, "-writing")
            self._input.focus()
        else:
            self.post_message(self.Wanted(self._model.handoff, wish))

    @on(Input.Submitted)
    def _written(self) -> None:
        wish, text = self._writing, self._input.value.strip()
        if wish is not None and text:
            self.post_message(self.Wanted(self._model.handoff, wish, text))
        self._stop_writing()

    def _stop_writing(self) -> None:
        self._writing = None
        self.set_class(False, "-writing")
        self._board.focus()

    def action_close(self) -> None:
        """Leave the input; else close."""
        if self._writing is not None:
            self._stop_writing()
        else:
            self.dismiss(None)


_NAMES: dict[DebateWish, tuple[str, str]] = {
    "go_on": ("g", "go on"),
    "question": ("q", "question"),
    "evidence": ("e", "evidence"),
    "round": ("+", "round"),
    "time": ("T", "call time"),
    "override": ("v", "your verdict"),
    "step_mode": ("s", "step mode"),
    "cancel": ("c", "cancel"),
}
_LABELS: dict[DebateWish, str] = {
    "question": "both sides answer:",
    "evidence": "both sides are told:",
    "override": "your verdict, beside the judge's:",
}


def _keys(model: DebateModel) -> Content:
    parts = [
        f"[@click=screen.wish('{wish}')][bold]{key}[/] {name}[/]"
        for wish, (key, name) in _NAMES.items()
        if wish in model.may
    ]
    return Content.from_markup("   ".join([*parts, "[bold]← →[/] sides   [bold]tab[/] verdict"]))
