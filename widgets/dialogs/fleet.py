"""The fleet board: all agents by who needs you, with what they ask answered in place (ontology spec §4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.facts import FactsPane
from widgets.fleet_grid import LETTERS, Asked, FleetGrid, FleetRow
from widgets.line_pane import Notice
from widgets.pieces import Piece, Pieces, wrap

FleetWish = Literal["open", "transfer", "toggle", "rebuild", "handoffs"]
LOOKS_PER_S = 10
"""How often the board is brought up to date at most."""
SHORT = 30
"""Lines of a screen below which less is told of the agent under the cursor."""
TEXT_LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class FleetModel:
    """What the board shows."""

    rows: tuple[FleetRow, ...] = ()
    """In order."""
    standing: str = ""
    """How many there are of what."""
    said: str = ""
    """What came of the last key."""


class AskPane(FactsPane):
    """What the agent under the cursor asks, or what is to be said of it."""

    BINDING_GROUP_TITLE = "Asked"
    DEFAULT_CSS = """
    AskPane, AskPane:focus { border: none; border-top: solid $border-blurred; height: 8; min-height: 3; }
    FleetDialog.-short AskPane, FleetDialog.-short AskPane:focus { height: 5; }
    """

    _row: FleetRow | None = None

    def show(self, row: FleetRow | None) -> None:
        """Show this agent's."""
        if row != self._row:
            same = row is not None and self._row is not None and row.key == self._row.key
            self._row = row
            self.text_changed(from_start=not same)

    def lines_for(self, width: int) -> tuple[Pieces, ...]:
        """The question with its answers by number first; what was tried comes last."""
        row = self._row
        if row is None:
            return ()
        if row.asked is not None:
            return _asked_lines(row, row.asked, width, max(1, self.content_size.height))
        told = [part for part in (row.work, row.note) if part]
        name = " ".join(filter(None, (clean_line(row.name, limit=80), row.badge, clean_line(row.version))))
        head = (Piece(name, "strong"), Piece(f" {row.mark} {row.state}", row.style))
        return (head, *(line for part in told for line in wrap((Piece(clean_line(part)),), width, most=4)))


def _asked_lines(row: FleetRow, asked: Asked, width: int, height: int) -> tuple[Pieces, ...]:
    more = f" · {asked.more} more" if asked.more else ""
    title, name = clean_line(asked.title, limit=200), clean_line(row.name, limit=60)
    title = title if title.startswith(f"{name}:") else f"{name}: {title}"
    head = (
        Piece("? ", "warning"),
        Piece(title, "strong"),
        Piece(f" {clean_line(asked.id)} · {asked.waited}{more}", "dim"),
    )
    answers = [
        (f"{number} ", clean_line(option.label, limit=80) + (" …" if option.text else ""))
        for number, option in enumerate(asked.options[:9], 1)
    ]
    if asked.free:
        answers.append(("0 ", "write an answer"))
    below = tuple(_packed(answers, width))
    room = max(1, height - 1 - len(below))
    question = wrap((Piece(clean_line(asked.question, limit=8_000)),), width, most=room)
    context = wrap((Piece(clean_line(asked.context, limit=8_000), "dim"),), width, most=20)
    return (*wrap(head, width), *question, *below, *(context if asked.context else ()))


def _packed(answers: Sequence[tuple[str, str]], width: int) -> Iterator[Pieces]:
    """Answers beside each other, none of them broken between two lines where it fits on one."""
    line: list[Piece] = []
    used = 0
    for number, label in answers:
        size = cell_len(number + label)
        if line and used + 3 + size > width:
            yield tuple(line)
            line, used = [], 0
        gap = [Piece("   ")] if line else []
        line += [*gap, Piece(number, "accent"), Piece(label)]
        used += 3 * len(gap) + size
    if line:
        yield tuple(line)


class FleetDialog(BoxDialog[None]):
    """Posts what is wanted of agents; whoever opens it answers by `show` when `RefreshWanted` asks."""

    DEFAULT_CSS = """
    FleetDialog > Vertical { width: 100%; height: 100%; max-width: 400; max-height: 100%; }
    FleetDialog #standing { height: 1; }
    FleetDialog #heading { height: 1; color: $foreground-muted; }
    FleetDialog #said { height: auto; max-height: 2; color: $text-warning; }
    FleetDialog #written { height: 3; display: none; }
    FleetDialog #written Static { width: auto; max-width: 40%; padding: 1 1 0 0; color: $foreground-muted; }
    FleetDialog #written Input { width: 1fr; }
    """
    # What opens a line to write comes before the focus, so that a fast hand's next letters are in the line.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "delegate", "Delegate", id="fleet.delegate", priority=True),
        Binding("t", "wish('transfer')", "Give the floor", id="fleet.transfer", priority=True),
        Binding("x", "wish('toggle')", "Disable or enable", id="fleet.toggle", priority=True),
        Binding("b", "wish('rebuild')", "Rebuild", id="fleet.rebuild", priority=True),
        Binding("h", "wish('handoffs')", "Its handoffs", id="fleet.handoffs", priority=True),
        Binding("slash", "filter", "Filter", id="fleet.filter", priority=True),
        *(Binding(key, f"digit({key})", "Answer", show=False, priority=True) for key in "0123456789"),
        *(Binding(key, f"letter('{key}')", "Go to", show=False, priority=True) for key in LETTERS),
        Binding("left", "side(-1)", "Left", show=False, id="fleet.left"),
        Binding("right", "side(1)", "Right", show=False, id="fleet.right"),
        Binding("escape", "close", "Close", show=False, id="fleet.close"),
        Binding("q", "close", "Close", show=False, id="fleet.quit"),
    ]

    @dataclass
    class Wanted(Message):
        """Something is wanted of an agent."""

        key: str
        wish: FleetWish

    @dataclass
    class Delegated(Message):
        """A task is to be handed to an agent."""

        key: str
        task: str

    @dataclass
    class Answered(Message):
        """What an agent asks is answered."""

        key: str
        request: str
        option: int
        """Its number from 1; 0 for none."""
        text: str = ""

    @dataclass
    class RefreshWanted(Message):
        """The board may be out of date."""

    def __init__(self, model: FleetModel, *, selected: str = "") -> None:
        super().__init__()
        self._model = model
        self._selected = selected
        self._grid = FleetGrid()
        self._asks = AskPane()
        self._standing = Static(id="standing")
        self._heading = Static(id="heading")
        self._said = Static(id="said")
        self._label = Static()
        self._input = Input(max_length=TEXT_LIMIT)
        self._filter = ""
        self._writing: tuple[str, str, int] = ("", "", 0)
        """What is written: `filter`, a task or an answer; for which agent or request; with which option."""

    @property
    def model(self) -> FleetModel:
        """What is shown."""
        return self._model

    @property
    def grid(self) -> FleetGrid:
        """The agents."""
        return self._grid

    def compose(self) -> ComposeResult:
        """How many, the agents, what the one under the cursor asks, and the keys."""
        with Vertical() as box:
            box.border_title = "Fleet"
            box.border_subtitle = "two letters go to an agent · esc close"
            yield self._standing
            yield self._heading
            yield self._grid
            yield self._asks
            yield self._said
            with Horizontal(id="written"):
                yield self._label
                yield self._input
            yield Static(
                Content.from_markup(
                    "[bold]1–9[/] answer   [@click=screen.choose][bold]enter[/] open[/]   "
                    "[@click=screen.delegate][bold]d[/] delegate[/]   "
                    "[@click=screen.wish('transfer')][bold]t[/] give floor[/]   "
                    "[@click=screen.wish('handoffs')][bold]h[/] handoffs[/]   "
                    "[@click=screen.wish('toggle')][bold]x[/] off/on[/]   "
                    "[@click=screen.wish('rebuild')][bold]b[/] rebuild[/]   "
                    "[@click=screen.filter][bold]/[/] filter[/]"
                ),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """The agents have the focus; who needs the operator most is first."""
        self.show(self._model)
        self._grid.focus()
        self.call_after_refresh(self._looked)
        self.set_interval(1 / LOOKS_PER_S, self._wants_refresh)

    def _looked(self) -> None:
        self._grid.select(self._selected)
        self._show_heading()

    def on_resize(self, event: events.Resize) -> None:
        """Tell less where there is little room."""
        self.set_class(event.size.height < SHORT, "-short")
        self.call_after_refresh(self._show_heading)

    def _wants_refresh(self) -> None:
        self.post_message(self.RefreshWanted())

    # -------------------------------------------------------------- showing

    def show(self, model: FleetModel) -> None:
        """Show these agents; the cursor stays on its own."""
        self._model = model
        columns = self._grid.columns
        shown = tuple(row for row in model.rows if self._passes(row))
        none = "No agent yet." if not model.rows else f"No agent of {len(model.rows)} fits '{self._filter}'."
        self._grid.set_notice(None if shown else Notice(clean_line(none)))
        self._grid.set_rows(shown)
        hidden = len(model.rows) - len(shown)
        filtered = f" · filter '{self._filter}' hides {hidden}" if self._filter else ""
        self._standing.update(Content(clean_line(model.standing + filtered)))
        self._said.update(Content(clean_line(model.said)))
        self._asks.show(self._grid.row)
        if columns != self._grid.columns:
            self._show_heading()

    def say(self, text: str) -> None:
        """Say something until the next key's answer comes."""
        self._said.update(Content(clean_line(text)))

    def _show_heading(self) -> None:
        self._heading.update(Content(self._grid.heading()))

    def _passes(self, row: FleetRow) -> bool:
        return all(word in row.words for word in self._filter.lower().split())

    @on(FleetGrid.Moved)
    def _moved(self) -> None:
        self._asks.show(self._grid.row)

    # -------------------------------------------------------------- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a line is written, its letters are the line's."""
        if self._writing[0] and action in ("delegate", "wish", "filter", "digit", "letter", "side"):
            return False
        return super().check_action(action, parameters)

    def action_letter(self, letter: str) -> None:
        """Go to the agent with this label, once both letters are there."""
        self._grid.type(letter)
        self.say(f"{self._grid.typed} … : the second letter" if self._grid.typed else self._model.said)

    def action_digit(self, number: int) -> None:
        """Answer what the agent under the cursor asks."""
        row = self._grid.row
        asked = row.asked if row is not None else None
        if row is None or asked is None:
            self.say(f"{row.name if row else 'nobody'} asks nothing")
        elif number == 0 and asked.free:
            self._write("answer", asked.id, f"answer {asked.id}:")
        elif not 1 <= number <= min(9, len(asked.options)):
            self.say(f"{asked.id} has no answer {number}")
        elif asked.options[number - 1].text:
            self._write("answer", asked.id, f"{clean_line(asked.options[number - 1].label)}:", number)
        else:
            self.post_message(self.Answered(row.key, asked.id, number))

    def action_wish(self, wish: FleetWish) -> None:
        """Ask for something of the agent under the cursor."""
        self._grid.type("")
        if (row := self._grid.row) is not None:
            self.post_message(self.Wanted(row.key, wish))

    def action_choose(self) -> None:
        """Open the agent under the cursor."""
        self.action_wish("open")

    @on(FleetGrid.Chosen)
    def _chosen(self, event: FleetGrid.Chosen) -> None:
        self.post_message(self.Wanted(event.key, "open"))

    def action_side(self, by: int) -> None:
        """Go to the agent beside."""
        self._grid.action_side(by)

    def action_delegate(self) -> None:
        """Write a task for the agent under the cursor."""
        if (row := self._grid.row) is not None:
            self._write("task", row.key, f"task for {clean_line(row.name, limit=40)}:")

    def action_filter(self) -> None:
        """Write what names, types or states are to hold."""
        self._write("filter", "", "filter:")
        self._input.value = self._filter

    def action_close(self) -> None:
        """Leave what is written, then the filter, then the board; a question stays open."""
        if self._writing[0]:
            if self._writing[0] == "filter":
                self._filtered("")
            self._stop_writing()
        elif self._grid.typed:
            self._grid.type("")
            self.say(self._model.said)
        elif self._filter:
            self._filtered("")
        else:
            self.dismiss(None)

    # -------------------------------------------------------------- writing

    def _write(self, what: str, of: str, label: str, option: int = 0) -> None:
        self._writing = (what, of, option)
        self._label.update(Content(label))
        self._input.value = ""
        self._grid.type("")
        self.query_one("#written").display = True
        self.set_focus(self._input)

    def _stop_writing(self) -> None:
        self._writing = ("", "", 0)
        self.query_one("#written").display = False
        self.set_focus(self._grid)

    def _filtered(self, text: str) -> None:
        self._filter = text
        self.show(self._model)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        if self._writing[0] == "filter":
            self._filtered(event.value.strip())

    def _may_be_empty(self, request: str, option: int) -> bool:
        asked = next((row.asked for row in self._model.rows if row.asked and row.asked.id == request), None)
        return (
            asked is not None
            and 0 < option <= len(asked.options)
            and (asked.options[option - 1].text == "may")
        )

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        (what, of, option), text = self._writing, event.value.strip()
        if what != "filter" and not text and not (what == "answer" and self._may_be_empty(of, option)):
            self.say("write something, or leave with esc")
            return
        self._stop_writing()
        if what == "task":
            self.post_message(self.Delegated(of, text))
        elif what == "answer":
            asking = [row for row in self._model.rows if row.asked is not None and row.asked.id == of]
            if asking:
                self.post_message(self.Answered(asking[0].key, of, option, text))
            else:
                self.say(f"{clean_line(of)} is open no longer; what was written is not sent")
