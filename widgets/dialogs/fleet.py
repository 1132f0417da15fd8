"""The fleet board: all agents by who needs you, with what they ask answered in place."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Literal

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, Static

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.asked import asked_lines
from widgets.base.dialog import BoxDialog
from widgets.base.facts import FactsPane
from widgets.base.line_pane import Notice, RowChosen
from widgets.base.text_layout import Piece, Pieces, wrap
from widgets.panes.fleet_grid import LETTERS, FleetGrid, FleetRow

FleetRequest = Literal["open", "transfer", "toggle", "handoffs"]
LOOKS_PER_S = 10
"""How often the board is brought up to date at most."""


@dataclass(frozen=True, slots=True)
class FleetModel:
    """What the board shows."""

    rows: tuple[FleetRow, ...] = ()
    """In order."""
    standing: str = ""
    """How many there are of what."""
    said: str = ""
    """The result of the last key."""
    notice: Notice | None = None


def _agent_lines(row: FleetRow | None, height: int, width: int) -> tuple[Pieces, ...]:
    """What the agent asks with its answers by number; else what it works on and its last error."""
    if row is None:
        return ()
    if row.asked is not None:
        return asked_lines(row.asked, width, height, who=row.name)
    notes = [part for part in (row.work, row.note) if part]
    name = " ".join(filter(None, (clean_line(row.name, limit=80), row.badge, clean_line(row.version))))
    head = (Piece(name, "strong"), Piece(f" {row.mark} {row.state}", row.style))
    return (head, *(line for part in notes for line in wrap((Piece(clean_line(part)),), width, most=4)))


class FleetDialog(BoxDialog[None]):
    """Posts what is wanted of agents; its opener answers by `show` when `RefreshWanted` asks."""

    TITLE_TEXT, HINT, CLASSES = "Fleet", "two letters go to an agent · esc close", "-full"
    WRITTEN_MOST = 20_000
    SHORT = 30
    """On a short screen less is shown of the agent under the cursor."""
    # What opens a line to write comes before the focus, so that letters typed fast behind it are in the line.
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"digit({key})", "Answer", show=False, priority=True) for key in "0123456789"),
        *(Binding(key, f"letter('{key}')", "Go to", show=False, priority=True) for key in LETTERS),
    ]

    def __init__(self, model: FleetModel, *, selected: str = "", asking: bool = False) -> None:
        super().__init__()
        self.model = model
        """What is shown."""
        self._selected = selected
        self.grid = FleetGrid(asking=asking)
        """The agents."""
        self._asks = FactsPane(title="Asked", id="asks", classes="-below")
        self._standing = Static(id="standing")
        self._heading = Static(id="heading")
        self._filter = ""
        self._asked_of = ""
        self._target: tuple[str, int] = ("", 0)
        """For which agent or request something is written, and with which option."""
        self.parts = (self._standing, self._heading, self.grid, self._asks, self.said, self.line)

    def on_mount(self) -> None:
        """The agents have the focus; who needs the operator most is first."""
        self.show(self.model)
        self.grid.focus()
        self.call_after_refresh(self._looked)
        self.set_interval(1 / LOOKS_PER_S, partial(self.request, "refresh"))

    def _looked(self) -> None:
        self.grid.select(self._selected)
        self._show_heading()

    def on_resize(self) -> None:
        """Draw again what depends on the room there is."""
        self.call_after_refresh(self._show_heading)
        self.call_after_refresh(self._show_asked)

    def show(self, model: FleetModel) -> None:
        """Show these agents; the cursor stays on its own, and what the board itself said last stays, too."""
        before, self.model = self.model, model
        columns = self.grid.columns
        shown = tuple(filter(self._passes, model.rows)) if self._filter else model.rows
        none = "No agent yet." if not model.rows else f"No agent of {len(model.rows)} fits '{self._filter}'."
        self.grid.set_notice(model.notice or (None if shown else Notice(clean_line(none))))
        self.grid.show(shown)
        hidden = len(model.rows) - len(shown)
        filtered = f"filter '{self._filter}' hides {hidden:,} · " if self._filter else ""
        self._standing.update(Content(clean_line(filtered + model.standing)))
        if model.said != before.said or before is model:
            self.say(model.said)
        self._show_asked()
        if columns != self.grid.columns:
            self._show_heading()

    def _show_heading(self) -> None:
        self._heading.update(Content(self.grid.heading()))

    def _passes(self, row: FleetRow) -> bool:
        return all(word in row.words for word in self._filter.lower().split())

    @on(FleetGrid.Moved)
    def _show_asked(self) -> None:
        row, height = self.grid.row, max(1, self._asks.content_size.height)
        key = row.key if row is not None else ""
        other, self._asked_of = key != self._asked_of, key
        self._asks.show_text((row, height), partial(_agent_lines, row, height), from_start=other)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a line is written, its letters are the line's."""
        if self.writing and action in ("delegate", "request", "filter", "digit", "letter", "side"):
            return False
        return super().check_action(action, parameters)

    def action_letter(self, letter: str) -> None:
        """Go to the agent with this label, once both letters are there."""
        self.grid.type(letter)
        self.say(f"{self.grid.typed} … : the second letter" if self.grid.typed else self.model.said)

    def action_digit(self, number: int) -> None:
        """Answer what the agent under the cursor asks."""
        row = self.grid.row
        asked = row.asked if row is not None else None
        if row is None or asked is None:
            self.say(f"{row.name if row else 'no agent'} asks nothing")
        elif number == 0 and asked.free:
            self._write("answer", asked.id, f"answer {asked.id}:")
        elif not 1 <= number <= min(9, len(asked.options)):
            self.say(f"{asked.id} has no answer {number}")
        elif asked.options[number - 1].text:
            self._write("answer", asked.id, f"{clean_line(asked.options[number - 1].label)}:", number)
        else:
            self.request("answered", row.key, asked.id, number)

    def action_request(self, request: FleetRequest) -> None:
        """Ask for something of the agent under the cursor."""
        self.grid.type("")
        if (row := self.grid.row) is not None:
            self.request("wanted", row.key, request)

    def action_open(self) -> None:
        """Open the agent under the cursor."""
        self.action_request("open")

    @on(RowChosen)
    def _chosen(self, event: RowChosen) -> None:
        self.request("wanted", event.key, "open")

    def action_side(self, by: int) -> None:
        """Go to the agent beside."""
        self.grid.action_side(by)

    def action_delegate(self) -> None:
        """Write a task for the agent under the cursor."""
        if (row := self.grid.row) is not None:
            self._write("task", row.key, f"task for {clean_line(row.name, limit=40)}:")

    def action_filter(self) -> None:
        """Write what names, types or states are to hold."""
        self._write("filter", "", "filter:")

    def action_close(self) -> None:
        """Leave what is written, then the filter, then the board; a question stays open."""
        if self.writing:
            self._filtered("" if self.writing == "filter" else self._filter)
            self.stop_writing()
        elif self.grid.typed:
            self.grid.type("")
            self.say(self.model.said)
        elif self._filter:
            self._filtered("")
        else:
            self.dismiss(None)

    def _write(self, what: str, of: str, label: str, option: int = 0) -> None:
        self._target = of, option
        self.grid.type("")
        self.write(what, label, self._filter if what == "filter" else "")

    def _filtered(self, text: str) -> None:
        self._filter = text
        self.show(self.model)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        if self.writing == "filter":
            self._filtered(event.value.strip())

    def _may_be_empty(self, request: str, option: int) -> bool:
        asked = next((row.asked for row in self.model.rows if row.asked and row.asked.id == request), None)
        texts = [option.text for option in asked.options] if asked is not None else []
        return texts[option - 1 : option] == ["may"] and option > 0

    def written(self, what: str, text: str) -> bool:
        """Take a filter, a task or an answer."""
        of, option = self._target
        if what != "filter" and not text and not (what == "answer" and self._may_be_empty(of, option)):
            self.say("write something, or leave with esc")
            return False
        if what == "task":
            self.request("delegated", of, text)
        elif what == "answer":
            asking = [row for row in self.model.rows if row.asked is not None and row.asked.id == of]
            if asking:
                self.request("answered", asking[0].key, of, option, text)
            else:
                self.say(f"{clean_line(of)} is open no longer; what was written is not sent")
        return True


class ShardsDialog(FleetDialog):
    """The same over all shards of a fleet, whose agents are opened in the cockpit of their shard."""

    def action_stop_all(self) -> None:
        """Have all agents of all shards stopped."""
        self.request("stop_all")
