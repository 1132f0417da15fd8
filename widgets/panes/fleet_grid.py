"""All agents on one screen: a row each, in as many columns as fit, with a cursor that stays on its agent.

Only what is visible is drawn, so that two hundred agents cost what a screenful does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.style import Style
from textual import events
from textual.message import Message

from engine.core.text import clean_line
from engine.value import dataclass, replace
from widgets.base.asked import Asked
from widgets.base.line_pane import LinePane
from widgets.base.text_layout import Piece, Pieces, cut, cut_text, fit, operator_style, pad, width_of

CELL = 72
"""Cells of the narrowest column."""
WITH_VERSION, WITH_WORK = 84, 100
"""Cells of a column from which on it tells the version, and what is worked on."""
LETTERS = "aslfewruopcvnmzi"
"""What labels are made of: the other letters are keys of the board."""
LABELS = len(LETTERS) ** 2
NAME_CELLS, STATE_CELLS = 26, 16
TOOLS_CELLS = 9


def label_at(number: int) -> str:
    """The two letters of the agent that came at this place, from 0; empty for those behind the 256th."""
    if number >= LABELS:
        return ""
    second, first = divmod(number, len(LETTERS))
    return LETTERS[first] + LETTERS[second]


@dataclass(frozen=True, slots=True)
class FleetRow:
    """One agent."""

    key: str
    name: str
    mark: str
    style: str
    state: str
    """The word behind the mark, with its time: `running 12s/300s`."""
    label: str = ""
    """Two letters that go to it."""
    badge: str = ""
    version: str = ""
    floor: bool = False
    """Whether it speaks with the operator."""
    queued: int = 0
    last: str = "-"
    used: str = ""
    """Successes of uses, as `14/15`."""
    tools: str = ""
    work: str = ""
    """What it is about, where there is room."""
    note: str = ""
    """What is to be said of it below the table, as its last error."""
    asked: Asked | None = None
    holder: str = ""
    """The operator who holds its controls."""

    @property
    def words(self) -> str:
        """What the filter looks through."""
        return f"{self.name} {self.badge} {self.state} {self.label} {self.work} {self.holder}".lower()


class FleetGrid(LinePane):
    """The agents in the order given, from left to right and line by line.

    Args:
        asking: one agent a line with what it asks or does, without what only a workspace's own board has.
    """

    BINDING_GROUP_TITLE = "Agents"

    @dataclass
    class Moved(Message):
        """The cursor is on another agent."""

        key: str

    def __init__(self, *, asking: bool = False) -> None:
        super().__init__()
        self._asking = asking
        self.agents: tuple[FleetRow, ...] = ()
        """What is shown, in order."""
        self._places: dict[str, int] = {}
        self.columns = 1
        """Agents beside each other."""
        self.typed = ""
        """The first letter of a label, while the second is waited for; see `type`."""

    @property
    def row(self) -> FleetRow | None:
        """The agent under the cursor."""
        at = self._places.get(self.list.cursor)
        return None if at is None else self.agents[at]

    def show(self, rows: Sequence[FleetRow]) -> None:
        """Show these; the cursor stays on its agent, or goes to the first."""
        old, self.agents = self.agents, tuple(rows)
        if old == self.agents:
            return
        place = self._places.get(self.list.cursor, 0)
        self._places = {row.key: at for at, row in enumerate(self.agents)}
        if self.list.cursor not in self._places:
            self.list.cursor = self.agents[min(place, len(self.agents) - 1)].key if self.agents else ""
        if len(old) != len(self.agents):
            self._lay_out()
            return
        for line in range(self.top, self.top + self.content_size.height):
            part = slice(line * self.columns, (line + 1) * self.columns)
            if old[part] != self.agents[part]:
                self.repaint_lines(line)

    def select(self, key: str) -> None:
        """Put the cursor on an agent and show it."""
        if key in self._places and key != self.list.cursor:
            for each in (self.list.cursor, key):
                if (at := self._places.get(each)) is not None:
                    self.repaint_lines(at // self.columns)
            self.list.cursor = key
            line = self._places[key] // self.columns
            self.reveal(range(line, line + 1))
            self.post_message(self.Moved(key))

    def _lay_out(self) -> None:
        height = max(1, self.content_size.height)
        fitting = 1 if self._asking else max(1, self.text_width // CELL)
        self.columns = max(1, min(fitting, -(-len(self.agents) // height)))
        self.lines_changed()

    def on_resize(self) -> None:
        """Find out how many columns fit."""
        self._lay_out()
        if (at := self._places.get(self.list.cursor)) is not None:
            line = at // self.columns
            self.reveal(range(line, line + 1))

    def line_total(self) -> tuple[int, int]:
        """Lines count from 0."""
        return 0, -(-len(self.agents) // self.columns)

    def line(self, number: int) -> Pieces:
        """The agents of a line, the one under the cursor on its bar."""
        return tuple(
            piece
            for row in self.agents[number * self.columns : (number + 1) * self.columns]
            for piece in self._placed(row)
        )

    def heading(self) -> str:
        """The names of the columns, as they stand above a line."""
        names = FleetRow(
            "", "agent", " ", "dim", "state", badge="typ", version="ver", last="last", used="good"
        )
        width = self._width()
        if self._asking:
            pieces = _asking(replace(names, badge="on", used="cost", work="asks or works on"))
        else:
            pieces = _pieces(replace(names, tools="tools"), width - 1, "q ")
        pieces = fit(pieces, (), width)
        return "  " + ("".join(piece.text for piece in pieces) * self.columns).rstrip()

    def _width(self) -> int:
        return max(1, self.text_width // self.columns)

    def _placed(self, row: FleetRow) -> Pieces:
        width = self._width()
        if self._asking:
            pieces = fit(_asking(row, self.typed), (), width)
        else:
            pieces = fit(_pieces(row, width - 1, f"q{row.queued}", self.typed), (), width)
        if row.key != self.list.cursor:
            return pieces
        bar = self.painter.bar()
        return tuple(Piece(piece.text, self.painter.piece(piece.style, bar)) for piece in _barred(pieces))

    def type(self, letter: str) -> None:
        """Take a letter of a label: the first is kept, the second goes to the agent that has both."""
        if self.typed and letter:
            label, letter = self.typed + letter, ""
            self.select(next((row.key for row in self.agents if row.label == label), ""))
        if letter != self.typed:
            self.typed = letter
            self.refresh()

    def step(self, by: int) -> None:
        """Go so many lines up or down."""
        self.action_side(by * self.columns)

    def action_side(self, by: int) -> None:
        """Go to the agent so many places before or after it."""
        if self.agents:
            at = max(0, min(len(self.agents) - 1, self._places.get(self.list.cursor, 0) + by))
            self.select(self.agents[at].key)

    def on_click(self, event: events.Click) -> None:
        """A click goes to an agent; a second one chooses it."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        column = max(0, min(self.columns - 1, (offset.x - self.gutter_width) // self._width()))
        at = (self.top + offset.y) * self.columns + column
        if at < len(self.agents):
            self.select(self.agents[at].key)
            if event.chain == 2:
                self.action_choose()

    def action_copy_row(self) -> None:
        """Copy the agent under the cursor."""
        if (row := self.row) is not None:
            self.copy(" ".join(part for part in (row.name, row.mark, row.state, row.work) if part), "row")


def _barred(pieces: Pieces) -> Iterator[Piece]:
    """The pieces with the cursor's sign in their first cell."""
    first, *rest = pieces
    yield Piece("▌", "accent")
    yield Piece(first.text[1:], first.style)
    yield from rest


def _pieces(row: FleetRow, width: int, queue: str, typed: str = "") -> Pieces:
    """A row in cells of fixed places, so that columns stand below each other."""
    last = cut_text(clean_line(row.last), 6)
    fixed: list[Piece] = [Piece(_cell(row.badge, 4), "dim")]
    if width >= WITH_VERSION:
        fixed.append(Piece(_cell(row.version, 9), "dim"))
    fixed += [
        Piece(_cell(row.state, STATE_CELLS + 1), row.style),
        Piece(_cell(queue, 4), "dim" if not row.queued else "text"),
        Piece(_cell(last, 7), "dim" if row.last == "-" else "text"),
        Piece(_cell(row.used, 6), "dim"),
        Piece(_cell(row.tools, TOOLS_CELLS), "error" if row.tools not in ("", "ok", "tools") else "dim"),
    ]
    name = min(width - 8 - width_of(fixed), NAME_CELLS if width >= WITH_WORK else width)
    pieces = (*_named(row, name, typed), *fixed)
    if width >= WITH_WORK:
        return (*pieces, Piece(" " + clean_line(row.work, limit=200), "dim"))
    return cut(pieces, width)


def _asking(row: FleetRow, typed: str = "") -> Pieces:
    """A row with what the agent asks or works on, in cells of fixed places."""
    return (
        *_named(row, NAME_CELLS, typed),
        Piece(_cell(row.badge, 4), "dim"),
        Piece(_cell(row.state, 9), row.style),
        Piece(_cell(row.used, 8), "dim"),
        Piece(clean_line(row.note or row.work, limit=200), row.style if row.note else "dim"),
    )


def _named(row: FleetRow, name: int, typed: str) -> Pieces:
    """Label, marks, name and holder of an agent, the last two in so many cells."""
    held = (
        (Piece(f"@{cut_text(clean_line(row.holder), 12)} ", operator_style(row.holder)),)
        if row.holder
        else ()
    )
    name -= width_of(held)
    label: str | Style = "accent" if typed and row.label.startswith(typed) else "dim"
    return (
        Piece(" "),
        Piece(f"{row.label:<3}", label),
        Piece("◆ " if row.floor else "  ", "accent"),
        Piece(f"{row.mark} ", row.style),
        Piece(_cell(row.name, max(1, name)), "text" if row.style == "dim" else "strong"),
        *held,
    )


def _cell(text: str, width: int) -> str:
    """A text in exactly `width` cells, the last one blank."""
    return pad(clean_line(text, limit=400), width, gap=1)
