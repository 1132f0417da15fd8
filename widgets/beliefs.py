"""The beliefs of a BDI agent: what it holds true, who said so, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from engine.domain.text import clean_line
from widgets.line_pane import Notice
from widgets.pieces import Piece, cut_text, width_of
from widgets.rows import Row, RowPane

PERCEPT, SELF = "percept", "self"
ORIGINS: dict[str, tuple[str, str]] = {PERCEPT: ("→", "accent"), SELF: ("●", "success")}
"""How beliefs from the senses and the agent's own are marked; all others are from agents."""
FROM_AGENTS = ("@", "warning")
SOURCE_CELLS, EVENT_CELLS = 11, 18
SOURCES_FROM, EVENTS_FROM = 36, 74
"""Cells of a line from which on it has room for the sources, and for the event too."""


@dataclass(frozen=True, slots=True)
class BeliefLine:
    """One belief as the pane shows it."""

    literal: str
    """Without its annotations; each literal is there once."""
    sources: tuple[str, ...] = (SELF,)
    """`percept`, `self` or the names of agents."""
    since: int = 0
    """The tick in which it came."""
    event: str = ""
    """What made it, in a word or two."""
    fresh: bool = False
    """True when it came or changed in this tick."""


@dataclass(frozen=True, slots=True)
class BeliefsModel:
    """What the pane shows."""

    beliefs: tuple[BeliefLine, ...] = ()
    """In the order they came, the oldest first."""
    notice: Notice | None = None


class BeliefsPane(RowPane):
    """The beliefs, newest first or by name."""

    BORDER_TITLE = "3 Beliefs"
    MARKS = True
    BINDING_GROUP_TITLE = "Beliefs"
    EMPTY = "What the agent believes will appear here once it perceives. Press s to step it."
    HELP = """## Beliefs
→ perceived, ● the agent's own, @ told by another agent; + came or changed in this tick.
To the right: the sources, the tick since which it is believed, and what made it.
v sorts them newest first or by name. Enter asks why it is believed.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "v",
            "sort",
            "Order",
            show=False,
            id="beliefs.order",
            tooltip="Sort beliefs newest first or by name",
        ),
    ]

    @dataclass
    class BeliefChosen(Message):
        """The operator wants to know more of a belief."""

        literal: str

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._model = BeliefsModel()
        self._by_name = False
        self._known: dict[str, tuple[BeliefLine, Row]] = {}
        self._columns = (False, False)

    def show(self, model: BeliefsModel) -> None:
        """Show this model."""
        if model == self._model:
            return
        self._model = model
        self.set_notice(model.notice)
        self._arrange()

    def on_resize(self) -> None:
        """Show as much of the provenance as there is room for."""
        if self._room() != self._columns:
            self._arrange()

    def action_sort(self) -> None:
        """Sort by name, or newest first again; the cursor stays on its belief."""
        self._by_name = not self._by_name
        self._arrange()

    def row_chosen(self, key: str) -> None:
        """Tell which belief was chosen."""
        self.post_message(self.BeliefChosen(key))

    def _room(self) -> tuple[bool, bool]:
        """Whether there is room for the sources, and for the events."""
        return self.text_width >= SOURCES_FROM, self.text_width >= EVENTS_FROM

    def _arrange(self) -> None:
        if (room := self._room()) != self._columns:
            self._columns, self._known = room, {}
        known: dict[str, tuple[BeliefLine, Row]] = {}
        for belief in self._model.beliefs:
            before = self._known.get(belief.literal)
            same = before is not None and (before[0] is belief or before[0] == belief)
            known[belief.literal] = before if before and same else (belief, _row(belief, *room))
        self._known = known
        rows = [row for _, row in known.values()]
        if self._by_name:
            rows.sort(key=lambda row: row.copy)
        else:
            rows.reverse()
        order = "by name" if self._by_name else "newest first"
        self.set_caption_text(f"{len(rows):,} · {order}" if rows else "")
        self.set_rows(rows)


def _row(belief: BeliefLine, sources: bool, events: bool) -> Row:
    origin = next((source for source in ORIGINS if source in belief.sources), "")
    glyph, style = ORIGINS.get(origin, FROM_AGENTS)
    text = clean_line(belief.literal)
    tail: list[Piece] = []
    if sources:
        tail.append(Piece(_column(_named(belief.sources), SOURCE_CELLS), "dim"))
    tail.append(Piece(f"{belief.since:>6}", "dim"))
    if events:
        tail.append(Piece("  " + _column(clean_line(belief.event), EVENT_CELLS), "dim"))
    return Row(
        belief.literal,
        (Piece(glyph + " ", style), Piece(text, "strong" if belief.fresh else "text")),
        tail=tuple(tail),
        mark=Piece("+", "success") if belief.fresh else Piece(" "),
        copy=text,
    )


def _named(sources: tuple[str, ...]) -> str:
    """The first source, and how many more there are."""
    if not sources:
        return "no source"
    more = f" +{len(sources) - 1}" if len(sources) > 1 else ""
    return cut_text(clean_line(sources[0]), SOURCE_CELLS - len(more) - 1) + more


def _column(text: str, cells: int) -> str:
    text = cut_text(text, cells)
    return text + " " * (cells - width_of((Piece(text),)))
