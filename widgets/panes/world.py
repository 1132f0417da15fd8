"""The small world of an agent, such as the explorer robot's grid, drawn as it is now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from textual.content import Content

from engine.core.text import clean_line
from widgets.base.facts import TextLines
from widgets.base.line_pane import LinePane, Notice
from widgets.base.text_layout import Piece, Pieces, labelled, width_of, wrap

SignKind = Literal["agent", "home", "object", "obstacle"]

STYLES: dict[str, str] = {"agent": "accent", "home": "success", "object": "warning", "obstacle": "dim"}
ARROWS: dict[str, str] = {
    "north": "↑",
    "south": "↓",
    "east": "→",
    "west": "←",
    "north_east": "↗",
    "north_west": "↖",
    "south_east": "↘",
    "south_west": "↙",
}
OBSTACLE, VISITED = "▒", "•"
RECENT = 3
"""Cells of the trail that stand out."""
SIDE_FROM, SIDE_MOST = 20, 44
"""Cells that legend and facts need beside the grid, and take at most."""


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


class WorldPane(LinePane):
    """The world as a grid of boxes where there is room, else in a compact form, with the facts about it."""

    BORDER_TITLE = "5 World"
    BINDING_GROUP_TITLE = "World"
    EMPTY = "The world the agent acts in will appear here once it perceives. Press s to step it."
    HELP = """## World
The world as it is, not as the agent believes it to be. The legend says what the signs stand for.
• is where the agent was, the arrow beside the agent where its last move led.
"""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        self._lines = TextLines(self.lines_for)
        super().__init__(self._lines, id=id, classes=classes)
        self._model = WorldModel()
        self._laid_out_height = -1

    def show(self, model: WorldModel) -> None:
        """Show this model; only lines that changed are painted again."""
        if model == self._model:
            return
        if model.title != self._model.title:
            title = clean_line(model.title)
            self.border_title = Content(f"5 World · {title}" if title else "5 World")
        self._model = model
        self.set_notice(model.notice)
        before = self._lines.lines
        self._lines.lay_out(self.text_width)
        if len(before) != len(self._lines.lines):
            self.lines_changed()
            return
        for number, (old, new) in enumerate(zip(before, self._lines.lines, strict=True)):
            if old != new:
                self.repaint_lines(number)

    def on_resize(self) -> None:
        """Choose the form anew; it depends on the height too."""
        if self.content_size.height != self._laid_out_height:
            self._laid_out_height = self.content_size.height
            self._lines.lay_out(self.text_width)

    def lines_for(self, width: int) -> tuple[Pieces, ...]:
        """The roomiest form that can be seen whole; the shortest one when none can."""
        if not self._model.lines:
            return ()
        forms = tuple(_forms(self._model, width))
        whole = (form for form in forms if len(form) <= self.content_size.height)
        return next(whole, min(forms, key=len))


def _forms(model: WorldModel, width: int) -> Iterator[tuple[Pieces, ...]]:
    """The forms that fit into this width, the roomiest first; the last one is always there."""
    picture = _Picture(model)
    compact = picture.compact()
    for grid in (picture.boxed(), compact):
        across = width_of(grid[0])
        if (room := width - across - 3) >= SIDE_FROM:
            yield _beside(grid, across, _side(model, min(room, SIDE_MOST)))
        if across <= width or grid is compact:
            yield (*grid, (Piece(""),), *_below(model, width))


def _beside(grid: list[Pieces], across: int, side: list[Pieces]) -> tuple[Pieces, ...]:
    blank = (Piece(" " * across),)
    lines = max(len(grid), len(side))
    return tuple(
        (*(grid[at] if at < len(grid) else blank), Piece("   "), *(side[at] if at < len(side) else ()))
        for at in range(lines)
    )


def _side(model: WorldModel, width: int) -> list[Pieces]:
    """The facts, then the legend, an entry a line."""
    lines = _facts(model, width)
    if lines:
        lines.append((Piece(""),))
    for pieces in _legend(model):
        lines += wrap(pieces, width, indent=2, most=2)
    return lines


def _below(model: WorldModel, width: int) -> list[Pieces]:
    """The facts, then the legend, as many entries to a line as fit."""
    facts = _facts(model, width)
    lines: list[Pieces] = []
    for pieces in _legend(model):
        if lines and width_of(lines[-1]) + 3 + width_of(pieces) <= width:
            lines[-1] = (*lines[-1], Piece("   "), *pieces)
        else:
            lines.append(pieces)
    return [*facts, *lines]


def _facts(model: WorldModel, width: int) -> list[Pieces]:
    return [
        line
        for label, text in model.facts
        for line in labelled(clean_line(label, limit=9), clean_line(text), width, most=4)
    ]


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


class _Picture:
    """The picture's cells, and what stands between them: the arrow of the last move."""

    def __init__(self, model: WorldModel) -> None:
        rows = [[_sign(sign) for sign in clean_line(line).split()] for line in model.lines]
        self._columns = max(map(len, rows))
        self._rows = [row + [" "] * (self._columns - len(row)) for row in rows]
        self._kinds: dict[str, str] = {_sign(entry.sign): entry.kind for entry in model.legend}
        self._trail = {cell: len(model.trail) - at <= RECENT for at, cell in enumerate(model.trail)}
        self._moved = model.moved

    def _cell(self, x: int, y: int) -> tuple[Piece, Piece, Piece]:
        """A cell of three characters: left, its sign, right."""
        sign = self._rows[y][x]
        kind = self._kinds.get(sign, "")
        blank, style = Piece(" "), STYLES.get(kind, "text")
        if kind == "agent":
            arrow = Piece(ARROWS.get(self._moved, " "), style)
            west = self._moved.endswith("west")
            return (arrow, Piece(sign, style), blank) if west else (blank, Piece(sign, style), arrow)
        if kind == "obstacle":
            return (Piece(OBSTACLE, style),) * 3
        if sign == "." and (recent := self._trail.get((x, y))) is not None:
            return blank, Piece(VISITED, "accent" if recent else "dim"), blank
        return blank, Piece(sign, style if kind else "dim"), blank

    def boxed(self) -> list[Pieces]:
        """The grid with lines around each cell."""
        inner = [self._rule("├", "┼", "┤")] * (len(self._rows) - 1)
        rows = [self._boxed_row(y) for y in range(len(self._rows))]
        between = [self._rule("┌", "┬", "┐"), *inner, self._rule("└", "┴", "┘")]
        return [line for pair in zip(between, rows, strict=False) for line in pair] + between[-1:]

    def _rule(self, left: str, middle: str, right: str) -> Pieces:
        return (Piece(left + middle.join(["───"] * self._columns) + right, "dim"),)

    def _boxed_row(self, y: int) -> Pieces:
        pieces: list[Piece] = []
        for x in range(self._columns):
            left, sign, right = self._cell(x, y)
            sign = Piece(" ") if sign.text == "." else sign
            pieces += (Piece("│", "dim"), left, sign, right)
        return (*pieces, Piece("│", "dim"))

    def compact(self) -> list[Pieces]:
        """The grid with a blank between its cells."""
        return [self._compact_row(y) for y in range(len(self._rows))]

    def _compact_row(self, y: int) -> Pieces:
        """What stands between two cells is what either of them puts there, an arrow before an obstacle."""
        cells = [self._cell(x, y) for x in range(self._columns)]
        pieces: list[Piece] = []
        edge = Piece(" ")
        for left, sign, right in cells:
            between = next((piece for piece in (edge, left) if piece.text in ARROWS.values()), None)
            solid = edge.text == left.text == OBSTACLE
            pieces += (between or (left if solid else Piece(" ")), sign)
            edge = right
        return (*pieces, edge if edge.text != OBSTACLE else Piece(" "))
