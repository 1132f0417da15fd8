"""Panes of wrapped text: labelled facts, sections to be read in full, and parts whose lines have signs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from engine.core.text import clean, clean_line
from engine.value import dataclass, field
from widgets.base.line_pane import LinePane, Notice
from widgets.base.rows import BLANK_MARK, Row
from widgets.base.text_layout import Piece, Pieces, break_line, escape_unprintable, labelled, wrap

Render = Callable[[int], Iterable[Pieces]]
"""Takes cells and gives a text in lines of at most so many."""


class TextLines:
    """The lines of a text, broken to the pane's width by a function of it."""

    def __init__(self, render: Render = lambda width: ()) -> None:
        self.render = render
        self.lines: tuple[Pieces, ...] = ()
        self._width = -1

    def line_total(self) -> tuple[int, int]:
        """Lines count from 0."""
        return 0, len(self.lines)

    def line(self, number: int) -> Pieces:
        """A line of the text."""
        return self.lines[number]

    def mark(self, number: int) -> Piece:
        """A text has no marks."""
        return BLANK_MARK

    def cursor_lines(self) -> range:
        """A text has no cursor."""
        return range(0)

    def fit(self, width: int, top: int) -> int:
        """Break the text anew where the width is another one."""
        if width != self._width:
            self.lay_out(width)
        return top

    def lay_out(self, width: int) -> None:
        """Break the text anew; before the first layout of the screen there is no width."""
        self._width = width
        self.lines = tuple(self.render(max(8, width))) if width > 0 else ()

    def show(self, pane: LinePane, render: Render, *, from_start: bool = True) -> None:
        """Show another text in the pane; from the first line on unless it is the same one, changed."""
        pane.loaded()
        self.render = render
        self.lay_out(pane.text_width)
        if from_start:
            pane.scroll_lines_to(0)
        pane.lines_changed()


@dataclass(frozen=True, slots=True)
class Fact:
    """A text with a label; without a label it is a heading or a plain text."""

    label: str
    text: str
    style: str = "text"


def fact_lines(facts: Sequence[Fact], width: int) -> Iterator[Pieces]:
    """Facts one below the other in lines of at most `width` cells; line breaks of their texts stay."""
    for fact in facts:
        for at, part in enumerate(clean(fact.text).split("\n")):
            if fact.label:
                yield from labelled("" if at else fact.label, part, width, style=fact.style, most=200)
            else:
                yield from wrap((Piece(part, fact.style),), width, most=200)


class FactsPane(LinePane):
    """Facts, or any other text, broken to the pane's width.

    Args:
        facts: what is shown at first.
        render: gives another text in lines of a width, in the place of facts.
    """

    BINDING_GROUP_TITLE = "Text"

    def __init__(
        self,
        facts: Sequence[Fact] = (),
        *,
        render: Render | None = None,
        title: str = "",
        empty: str = "",
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        self._facts: object = facts
        self._lines = TextLines(render or partial(fact_lines, facts))
        super().__init__(self._lines, title=title, empty=empty, id=id, classes=classes)

    def set_facts(self, facts: Sequence[Fact]) -> None:
        """Show these facts, from the first line on when they are others."""
        self.loaded()
        if facts != self._facts:
            self._facts = facts
            self._lines.show(self, partial(fact_lines, facts))

    def show_text(self, shown: object, render: Render, *, from_start: bool = True) -> None:
        """Show the text of a value, unless it is the value that is shown.

        Args:
            shown: what the text is made of.
            render: gives the text in lines of a width.
            from_start: False for the same text, changed: then the reader's place stays.
        """
        self.loaded()
        if shown != self._facts:
            self._facts = shown
            self._lines.show(self, render, from_start=from_start)

    def lines_for(self, width: int) -> tuple[Pieces, ...]:
        """The text in lines of at most `width` cells."""
        return tuple(self._lines.render(width))


@dataclass(frozen=True, slots=True)
class ListModel:
    """What a pane or a dialog of rows shows."""

    title: str = ""
    rows: Sequence[Row] = ()
    notice: Notice | None = None
    """What is said instead of rows."""
    caption: str = ""
    """What stands in a pane's lower border."""
    standing: str = ""
    """What is said above the rows of a dialog."""
    facts: Mapping[str, Sequence[Fact]] = field(default_factory=dict)
    """What is known of each row, by its key."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """What rows are about, by their keys, where the keys of a dialog depend on it."""


class RowsPane(LinePane):
    """Rows that the projection made."""

    LOADS = True

    def show(self, model: ListModel) -> None:
        """Show these rows; the cursor stays on its own."""
        self.set_notice(model.notice)
        self.set_caption_text(model.caption)
        added = sum(row.key not in self.list.index for row in model.rows) if self.FOLLOWS else 0
        self.set_rows(model.rows, added=added)

    def action_ask(self, what: str) -> None:
        """Request something of the row under the cursor."""
        if self.cursor:
            self.request(what, self.cursor)


@dataclass(frozen=True, slots=True)
class Section:
    """A text below a title; either may be empty."""

    title: str
    text: str = ""
    title_style: str = "heading"
    notes: tuple[str, ...] = ()
    """What is to be said of it, above the text."""


class LongText(LinePane):
    """Untrusted text in sections, to be read in full; a megabyte is laid out at once.

    Every character shows, also those that print as nothing; copying takes the lines unbroken.
    """

    BINDING_GROUP_TITLE = "Text"

    def __init__(
        self,
        *,
        title: str = "",
        id: str | None = None,  # noqa: A002 - Textual's name
    ) -> None:
        self._lines = TextLines(self.lines_for)
        super().__init__(self._lines, title=title, id=id)
        self.sections: tuple[Section, ...] = ()
        """What is shown."""
        self._starts: tuple[int, ...] = ()
        """The line on which each section begins."""
        self._target = -1

    def go_to(self, section: int) -> None:
        """Put the section at this place, from 0, at the top of the pane, now or once there is a width."""
        self._target = section
        self._go()

    def on_resize(self) -> None:
        """Break the lines anew, and go where the reader wants to be."""
        super().on_resize()
        self._go()

    def _go(self) -> None:
        if self.text_width and 0 <= self._target < len(self._starts):
            self.scroll_lines_to(self._starts[self._target])
            self._target = -1

    def show(self, sections: tuple[Section, ...], *, from_start: bool = True) -> None:
        """Show these sections, from the first line on where not said otherwise."""
        self.loaded()
        if sections != self.sections:
            self.sections = sections
            self._lines.show(self, self.lines_for, from_start=from_start)

    def lines_for(self, width: int) -> tuple[Pieces, ...]:
        """The sections with a blank line between them."""
        lines: list[Pieces] = []
        starts: list[int] = []
        for section in self.sections:
            lines += [(Piece(""),)] if lines else []
            starts.append(len(lines))
            style = section.title_style
            lines += wrap((Piece(clean_line(section.title), style),), width, indent=2, most=4)
            for note in section.notes:
                lines += wrap((Piece(f"  {clean_line(note)}", style),), width, indent=2, most=20)
            if section.text:
                for line in escape_unprintable(section.text).split("\n"):
                    lines += [(Piece(part),) for part in break_line(line, width)]
        self._starts = tuple(starts)
        return tuple(lines)

    def action_copy_pane(self) -> None:
        """Copy all of it, its lines unbroken."""
        parts = []
        for part in self.sections:
            texts = (clean_line(part.title), *part.notes, escape_unprintable(part.text))
            parts.append("\n".join(filter(None, texts)))
        self.copy("\n\n".join(parts), "pane")


STYLES = {"+": "success", "-": "error", "~": "warning", "!": "error"}


@dataclass(frozen=True, slots=True)
class SignedPart:
    """One part, such as the beliefs or the files."""

    title: str
    lines: tuple[tuple[str, str], ...]
    """Sign (`+`, `-`, `~`, `!`) and words of each line."""
    note: str = ""


def signed_lines(
    parts: Sequence[SignedPart], width: int, *, nothing: str, counted: bool = False
) -> Iterator[Pieces]:
    """Each part under its title; a sign says what sort a line is, without colour too.

    Args:
        parts: what is shown.
        width: cells of a line.
        nothing: what stands in a part that has no lines.
        counted: whether a title tells how many there are.
    """
    for at, part in enumerate(parts):
        if at:
            yield (Piece(""),)
        count = f" ({len(part.lines)})" if counted and part.lines else ""
        yield from wrap((Piece(f"{clean_line(part.title)}{count}", "heading"),), width, indent=2, most=4)
        if part.note:
            yield from wrap((Piece(f"  {clean_line(part.note)}", "dim"),), width, indent=2, most=4)
        for sign, words in part.lines:
            head = Piece(f"{sign} ", STYLES.get(sign, "text"))
            yield from wrap((head, Piece(clean_line(words))), width, indent=4, most=6)
        if not part.lines:
            yield (Piece(f"  {nothing}", "dim"),)
