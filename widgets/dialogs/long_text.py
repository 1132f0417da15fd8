"""Long untrusted text to be read in full: every character shows, also those that print as nothing."""

from __future__ import annotations

from dataclasses import dataclass

from engine.domain.text import clean_line
from widgets.dialogs.step_editor import visible
from widgets.facts import FactsPane
from widgets.pieces import Piece, Pieces, broken, wrap


@dataclass(frozen=True, slots=True)
class Section:
    """A text below a title; either may be empty."""

    title: str
    text: str = ""
    title_style: str = "heading"
    notes: tuple[str, ...] = ()
    """What is to be said of it, above the text."""


class LongText(FactsPane):
    """Sections one below the other; a megabyte is laid out at once."""

    BINDING_GROUP_TITLE = "Text"
    DEFAULT_CSS = """
    LongText, LongText:focus { border: none; height: 1fr; min-height: 3; }
    """

    _sections: tuple[Section, ...] = ()
    _starts: tuple[int, ...] = ()
    """The line on which each section begins."""
    _wanted = -1

    @property
    def sections(self) -> tuple[Section, ...]:
        """What is shown."""
        return self._sections

    def go_to(self, section: int) -> None:
        """Put the section at this place, from 0, at the top of the pane, now or once there is a width."""
        self._wanted = section
        self._go()

    def on_resize(self) -> None:
        """Break the lines anew, and go where the reader wants to be."""
        super().on_resize()
        self._go()

    def _go(self) -> None:
        if self.text_width and 0 <= self._wanted < len(self._starts):
            self.scroll_lines_to(self._starts[self._wanted])
            self._wanted = -1

    def show(self, sections: tuple[Section, ...]) -> None:
        """Show these sections from the first line on."""
        if sections != self._sections:
            self._sections = sections
            # Before the first layout there is no width; the text is then broken on resizing.
            if self.text_width:
                self.text_changed(from_start=True)

    def lines_for(self, width: int) -> tuple[Pieces, ...]:
        """The sections with a blank line between them."""
        lines: list[Pieces] = []
        starts: list[int] = []
        for section in self._sections:
            lines += [(Piece(""),)] if lines else []
            starts.append(len(lines))
            lines += wrap((Piece(clean_line(section.title), section.title_style),), width, indent=2, most=4)
            for note in section.notes:
                lines += wrap(
                    (Piece(f"  {clean_line(note)}", section.title_style),), width, indent=2, most=20
                )
            if section.text:
                lines += [
                    (Piece(part),) for line in shown(section.text).split("\n") for part in broken(line, width)
                ]
        self._starts = tuple(starts)
        return tuple(lines)


def shown(text: str) -> str:
    """The text with each unprintable character but the line's end as an escape, and tabs as blanks."""
    lines = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
    return "\n".join(line if line.isprintable() else visible(line) for line in lines)
