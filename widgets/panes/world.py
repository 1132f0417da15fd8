"""The small world of an agent, such as the explorer robot's grid, drawn as it is now."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Literal

from rich.cells import cell_len
from textual.content import Content

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.facts import FactsPane
from widgets.base.line_pane import Notice
from widgets.base.text_layout import Piece, Pieces, labelled, wrap

SignKind = Literal["agent", "home", "object", "obstacle"]

STYLES: dict[str, str] = {"agent": "accent", "home": "success", "object": "warning", "obstacle": "dim"}
_WAYS = "north south east west north_east north_west south_east south_west"
ARROWS = dict(zip(_WAYS.split(), "↑↓→←↗↖↘↙", strict=True))
OBSTACLE, VISITED = "▒", "•"
RECENT = 3
"""Cells of the trail that stand out."""


@dataclass(frozen=True, slots=True)
class WorldSign:
    """A sign of the picture and what it stands for."""

    sign: str
    """One character of the picture."""
    meaning: str
    kind: SignKind = "object"


@dataclass(frozen=True, slots=True)
class WorldModel:
    """What the pane shows."""

    title: str = ""
    lines: tuple[str, ...] = ()
    """The picture, north first: signs with a blank between them; `.` is a free cell."""
    legend: tuple[WorldSign, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """Label and text, such as the number of moves."""
    trail: tuple[tuple[int, int], ...] = ()
    """Cells visited before, as column and row from 0, the last one last."""
    moved: str = ""
    """Where the last move led: `north`, `south_west`, …; empty before the first one."""
    notice: Notice | None = None


class WorldPane(FactsPane):
    """The world as a grid of signs, with the facts about it."""

    BORDER_TITLE = "5 World"
    LOADS = True
    BINDING_GROUP_TITLE = "World"
    EMPTY = "The world the agent acts in will appear here once it perceives. Press s to step it."

    def show(self, model: WorldModel) -> None:
        """Show this model."""
        title = clean_line(model.title)
        self.border_title = Content(f"5 World · {title}" if title else "5 World")
        self.set_notice(model.notice)
        self.show_text(model, partial(_lines, model), from_start=False)


def _lines(model: WorldModel, width: int) -> Iterator[Pieces]:
    """The picture, what there is to say of it, and the legend."""
    if model.lines:
        yield from _picture(model)
        yield (Piece(""),)
        for label, text in model.facts:
            yield from labelled(clean_line(label, limit=9), clean_line(text), width, most=4)
        legend = [piece for pieces in _legend(model) for piece in (*pieces, Piece("   "))]
        yield from wrap(tuple(legend), width, most=8)


def _legend(model: WorldModel) -> Iterator[Pieces]:
    for entry in model.legend:
        sign = OBSTACLE if entry.kind == "obstacle" else _sign(entry.sign)
        yield Piece(sign, STYLES[entry.kind]), Piece(" " + clean_line(entry.meaning), "dim")
    if model.trail:
        yield Piece(VISITED, "accent"), Piece(" was here", "dim")
    if arrow := ARROWS.get(model.moved):
        yield Piece(arrow, "accent"), Piece(" last move", "dim")


def _sign(text: str) -> str:
    """A sign of exactly one cell."""
    return text[0] if text and text[0].isprintable() and cell_len(text[0]) == 1 else "?"


def _picture(model: WorldModel) -> Iterator[Pieces]:
    """The signs with a blank between them, and behind the agent where its last move led."""
    kinds = {_sign(entry.sign): entry.kind for entry in model.legend}
    recent = model.trail[-RECENT:]
    for y, line in enumerate(model.lines):
        pieces: list[Piece] = []
        for x, char in enumerate(clean_line(line).split()):
            sign = _sign(char)
            kind = kinds.get(sign, "")
            style = STYLES.get(kind, "dim")
            if sign == "." and (x, y) in model.trail:
                sign, style = VISITED, "accent" if (x, y) in recent else "dim"
            behind = ARROWS.get(model.moved, " ") if kind == "agent" else " "
            pieces += (Piece(OBSTACLE if kind == "obstacle" else sign, style), Piece(behind, "accent"))
        yield tuple(pieces)
