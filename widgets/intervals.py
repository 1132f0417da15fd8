"""An interval drawn in cells: `──├─●─┤──` over a line on which nothing is marked."""

from __future__ import annotations

from widgets.pieces import Piece, Pieces

ZERO, CROSSED, LINE, LEFT, RIGHT, MEAN = "┊", "┼", "─", "├", "┤", "●"


def interval(low: float, mean: float, high: float, *, least: float, most: float, cells: int) -> Pieces:
    """An interval within a scale, with where nothing is; green above it, red below, plain across.

    Args:
        low: where it begins.
        mean: its middle.
        high: where it ends.
        least: the left end of the scale.
        most: the right end of the scale; no scale at all draws the middle only.
        cells: how many the drawing takes, at least 5.
    """
    least, most = min(least, low, 0.0), max(most, high, 0.0)
    span = most - least

    def at(value: float) -> int:
        return round((value - least) / span * (cells - 1)) if span > 0 else cells // 2

    row = [" "] * cells
    zero, first, last, middle = at(0.0), at(low), at(high), at(mean)
    row[zero] = ZERO
    for place in range(first, last + 1):
        row[place] = LINE
    if last > first:
        row[first], row[last] = LEFT, RIGHT
    if first < zero < last:
        row[zero] = CROSSED
    row[middle] = MEAN
    style = "success" if low > 0 else "error" if high < 0 else "text"
    pieces = [Piece(cell, style if first <= place <= last else "dim") for place, cell in enumerate(row)]
    joined: list[Piece] = []
    for piece in pieces:
        if joined and joined[-1].style == piece.style:
            joined[-1] = Piece(joined[-1].text + piece.text, piece.style)
        else:
            joined.append(piece)
    return tuple(joined)
