"""The timeline of the past: one line with the marks of a session and the place that is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import events

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.line_pane import Requested
from widgets.base.pane_tabs import StripLine
from widgets.base.text_layout import Piece, Pieces, cut_text, width_of

GLYPHS: dict[str, tuple[str, str]] = {
    "operator": ("!", "error"),
    "failure": ("✗", "error"),
    "rewind": ("◂", "accent"),
    "held": ("‖", "accent"),
    "goal": ("●", "accent"),
    "plan": ("◆", "accent"),
    "decision": ("◇", "text"),
    "action": ("·", "text"),
}
"""Glyph and style of each kind of mark; where several share a cell, the first of this list is shown."""
_RANK = {kind: rank for rank, kind in enumerate(GLYPHS)}
TRACK_FROM = 20
"""Cells that the track takes at least; the words give way to it."""


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """One mark."""

    part: float
    """Where it stands, from 0 (the first event) to 1 (the newest)."""
    kind: str
    """One of `GLYPHS`."""


@dataclass(frozen=True, slots=True)
class TimelineModel:
    """What the timeline shows."""

    marks: tuple[TimelineMark, ...] = ()
    """Oldest first."""
    place: float = 1.0
    """What is looked at, from 0 to 1."""
    label: str = ""
    """What happened there, in words."""
    count: str = ""
    """Which mark of how many: `12/57`."""


class Timeline(StripLine):
    """A track of marks with the place on it, and words about the place; a click goes to a mark."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"timeline--{name}" for name in ("text", "dim", "accent", "error", "place"))
    }

    PREFIX = "timeline"

    model = TimelineModel()
    """What is shown."""

    def show(self, model: TimelineModel) -> None:
        """Show this model."""
        if model != self.model:
            self.model = model
            self.refresh()

    def parts(self, width: int) -> Iterable[tuple[str, str, str]]:
        """The line."""
        return ((text, str(style), "") for text, style in line_of(self.model, width))

    def on_click(self, event: events.Click) -> None:
        """Go to the mark that is nearest to the pointer."""
        cells = track_cells(self.model, self.content_size.width)
        marks = self.model.marks
        if marks and cells > 1 and 0 <= event.x - 1 < cells:
            part = (event.x - 1) / (cells - 1)
            nearest = min(range(len(marks)), key=lambda place: abs(marks[place].part - part))
            self.post_message(Requested("Timeline", "place", (nearest,)))


def track_cells(model: TimelineModel, width: int) -> int:
    """Cells of the track in a line of so many."""
    words = width_of((Piece(f"  {model.count}  {clean_line(model.label)}"),))
    return max(min(width - 2, TRACK_FROM), width - 2 - words)


def line_of(model: TimelineModel, width: int) -> Pieces:
    """The timeline in at most `width` cells: the track, which mark it is, and words about it."""
    if width < 3:
        return (Piece("◀"[:width], "place"),)
    cells = track_cells(model, width)
    track = _track(model.marks, cells)
    place = min(cells - 1, round(model.place * (cells - 1)))
    words = cut_text(f"  {model.count}  {clean_line(model.label)}", width - cells - 2)
    merged: list[Piece] = [Piece("[", "dim"), *track[:place]]
    merged += [
        Piece(str(track[place].text).replace("─", "│"), "place"),
        *track[place + 1 :],
        Piece("]", "dim"),
    ]
    return (*merged, Piece(words)) if words else tuple(merged)


def _track(marks: Sequence[TimelineMark], cells: int) -> list[Piece]:
    """One piece for each cell: the mark there that matters most, else a line."""
    best: dict[int, str] = {}
    for mark in marks:
        cell = round(max(0.0, min(1.0, mark.part)) * (cells - 1))
        if cell not in best or _RANK[mark.kind] < _RANK[best[cell]]:
            best[cell] = mark.kind
    return [Piece(*GLYPHS[best[cell]]) if cell in best else Piece("─", "dim") for cell in range(cells)]
