"""A picture of numbers, or of who works with whom, drawn in characters with the same in words below it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from engine.value import dataclass
from widgets.base.dialog import BoxDialog
from widgets.base.facts import Fact, FactsPane, fact_lines
from widgets.base.text_layout import Piece, Pieces

LINE, DOTS, POINT, EDGE, RULE, BAR = "braille", "·", "●", "│", "─", "▓"
"""Signs that curves are drawn with: what they mean can be told without colour."""
_COLOURS = {"text": "default", "accent": "blue", "success": "green", "warning": "orange", "error": "red"}
"""Colours of a plot by the styles of panes, which it is drawn in."""
_STYLES = {"1": "error", "2": "success", "3": "warning", "4": "accent"}
"""The same back, by the numbers that a plot writes."""
_COLOUR = re.compile(r"\x1b\[(?:0|38;5;(\d+))m")
LEAST, MOST = 8, 22
"""Lines of a picture."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Points that are joined by a line."""

    points: tuple[tuple[float, float], ...]
    name: str = ""
    style: str = "accent"
    sign: str = LINE


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn, and the same in words."""

    title: str
    curves: tuple[Curve, ...] = ()
    words: tuple[Fact, ...] = ()
    across: str = ""
    """What is counted from left to right."""
    rows: tuple[str, ...] = ()
    """Names of the heights 1, 2, …; empty where heights are amounts."""
    labels: tuple[tuple[str, float, float, str], ...] = ()
    """Texts in the picture, with their place and style."""
    framed: bool = True
    """Whether it has axes."""


def picture_lines(picture: Picture, height: int, width: int) -> Iterator[Pieces]:
    """The picture, a blank line, and the words, in lines of at most `width` cells."""
    if picture.curves or picture.labels:
        yield from _drawn(picture, width, height)
        yield (Piece(""),)
    yield from fact_lines(picture.words, width)


def _drawn(picture: Picture, width: int, height: int) -> Iterator[Pieces]:
    from textual_plotext.plot import Plot  # late: few look at pictures

    plot = Plot()
    plot.plotsize(width, height)
    for colour in (plot.canvas_color, plot.axes_color, plot.ticks_color):
        colour("default")
    for curve in picture.curves:
        across, up = zip(*curve.points, strict=True)
        named = {"label": curve.name} if curve.name else {}
        draw = plot.scatter if len(curve.points) == 1 else plot.plot
        draw(list(across), list(up), marker=curve.sign, color=_COLOURS[curve.style], **named)
    for text, x, y, style in picture.labels:
        plot.text(text, x, y, color=_COLOURS[style], alignment="center")
    if picture.rows:
        plot.yticks(list(range(1, len(picture.rows) + 1)), list(picture.rows))
        plot.ylim(0.5, len(picture.rows) + 0.5)
    if not picture.framed:
        plot.frame(False)
        plot.xticks([])
        plot.yticks([])
        plot.xlim(-1.5, 1.5)  # room for names
        plot.ylim(-1.1, 1.1)
    plot.xlabel(picture.across)
    for line in plot.build().splitlines():
        yield tuple(_pieces(line))


def _pieces(line: str) -> Iterator[Piece]:
    """The parts of a line in the styles of its colours."""
    style = "text"
    for at, part in enumerate(_COLOUR.split(line)):
        if at % 2:
            style = _STYLES.get(part, "text")
        elif part:
            yield Piece(part, style)


class PictureDialog(BoxDialog[None]):
    """A picture, and what makes the next one each second."""

    AUTO_FOCUS = "FactsPane"
    HINT = "↑ ↓ scroll · Y copy · esc close"

    def __init__(self, picture: Picture, look: Callable[[], Awaitable[Picture]]) -> None:
        super().__init__()
        self._picture, self._look = picture, look
        self._pane = FactsPane(empty="There is nothing to draw yet.")
        self.heading, self.parts = picture.title, (self._pane,)

    def on_mount(self) -> None:
        """Time passes."""
        self.set_interval(1.0, self._look_again)

    def _look_again(self) -> None:
        self.run_worker(self._again(), name="picture", exclusive=True, exit_on_error=False)

    async def _again(self) -> None:
        self._picture = await self._look()
        self._show()

    def on_resize(self) -> None:
        """Draw it as high as there is room."""
        self._show()

    def _show(self) -> None:
        height = max(LEAST, min(MOST, self.size.height - 6 - min(6, len(self._picture.words))))
        self._pane.show_text(
            (self._picture, height), partial(picture_lines, self._picture, height), from_start=False
        )
