"""A pane of labelled, wrapped text: the detail of a step, the facts of a dialog, help."""

from __future__ import annotations

from dataclasses import dataclass

from engine.domain.text import clean
from widgets.line_pane import LinePane
from widgets.pieces import Piece, Pieces, labelled, wrap


@dataclass(frozen=True, slots=True)
class Fact:
    """A text with a label; without a label it is a heading or a paragraph."""

    label: str
    text: str
    style: str = "text"


class FactsPane(LinePane):
    """Facts one below the other, broken to the pane's width."""

    BINDING_GROUP_TITLE = "Text"

    def __init__(
        self,
        facts: tuple[Fact, ...] = (),
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._facts = facts
        self._lines: tuple[Pieces, ...] = ()
        self._laid_out_width = -1

    def set_facts(self, facts: tuple[Fact, ...]) -> None:
        """Show these facts."""
        if facts != self._facts:
            self._facts = facts
            self.text_changed(from_start=True)

    def lines_for(self, width: int) -> tuple[Pieces, ...]:
        """The text in lines of at most `width` cells; subclasses with a form of their own override this."""
        return tuple(line for fact in self._facts for line in fact_lines(fact, width))

    def text_changed(self, *, from_start: bool) -> None:
        """Break the text anew and repaint; from the start when it is another text."""
        self._lay_out()
        if from_start:
            self.scroll_lines_to(0)
        self.lines_changed()

    def _lay_out(self) -> None:
        self._laid_out_width = self.text_width
        self._lines = self.lines_for(max(8, self.text_width))

    def on_resize(self) -> None:
        """Break the lines anew."""
        if self.text_width != self._laid_out_width:
            self._lay_out()
        self.lines_changed()

    def line_total(self) -> tuple[int, int]:
        """Lines count from 0."""
        return 0, len(self._lines)

    def line(self, number: int) -> Pieces:
        """A line of the text."""
        return self._lines[number]

    def action_copy_row(self) -> None:
        """Copy the whole text; it has no rows."""
        self.action_copy_pane()


def fact_lines(fact: Fact, width: int) -> tuple[Pieces, ...]:
    """A fact in lines of at most `width` cells; line breaks of its text stay."""
    lines: list[Pieces] = []
    for at, part in enumerate(clean(fact.text).split("\n")):
        if fact.label:
            lines += labelled("" if at else fact.label, part, width, style=fact.style, most=200)
        else:
            lines += wrap((Piece(part, fact.style),), width, most=200)
    return tuple(lines)
