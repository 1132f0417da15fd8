"""Options to choose from, by number, by arrows, or several at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from engine.core.text import clean_line
from widgets.base.line_pane import LinePane
from widgets.base.rows import Row
from widgets.base.text_layout import Piece

NUMBERED = 9
"""Options that a digit chooses."""


class ChoiceList(LinePane):
    """Options, one of them under the cursor; where several may be chosen, space marks them."""

    BINDING_GROUP_TITLE = "Options"
    MARKS = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark_option", "Mark", show=False, id="choices.toggle"),
        *(
            Binding(str(number), f"number({number})", f"Option {number}", show=False, id=f"choices.{number}")
            for number in range(1, NUMBERED + 1)
        ),
    ]

    @dataclass
    class Chosen(Message):
        """The operator is done choosing."""

        choices: ChoiceList

    @dataclass
    class Changed(Message):
        """Another option is under the cursor, or marked."""

        choices: ChoiceList

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._options: tuple[str, ...] = ()
        self._marked: tuple[str, ...] = ()
        self._several = False

    @property
    def chosen(self) -> tuple[str, ...]:
        """The options that are marked; where only one may be chosen, the one under the cursor."""
        if not self._several:
            return tuple(option for at, option in enumerate(self._options) if str(at) == self.cursor)
        return tuple(option for option in self._options if option in self._marked)

    def offer(self, options: tuple[str, ...], *, several: bool = False, chosen: tuple[str, ...] = ()) -> None:
        """Show these options.

        Args:
            options: in order.
            several: whether more than one may be chosen.
            chosen: those that are from the beginning.
        """
        self._options, self._several = options, several
        self._marked = tuple(option for option in chosen if option in options)
        self.styles.height = max(2, min(12, len(options)))
        self._set()
        first = next((at for at, option in enumerate(options) if option in self._marked), 0)
        self.move_cursor(str(first))

    def _set(self) -> None:
        self.set_rows([self._row(at, option) for at, option in enumerate(self._options)])

    def _row(self, at: int, option: str) -> Row:
        marked = self._several and option in self._marked
        box = ("[x] " if marked else "[ ] ") if self._several else ""
        number = f"{at + 1} " if at < NUMBERED else "  "
        words = clean_line(option, limit=300)
        return Row(
            str(at),
            (Piece(number, "accent"), Piece(box, "strong" if marked else "dim"), Piece(words)),
            indent=len(number) + len(box),
            most=3,
            mark=Piece("✓", "success") if marked else Piece(" "),
            copy=words,
        )

    def row_highlighted(self, key: str) -> None:
        """Tell that another is meant."""
        self.post_message(self.Changed(self))

    def row_chosen(self, key: str) -> None:
        """Be done."""
        self.post_message(self.Chosen(self))

    def action_mark_option(self) -> None:
        """Mark the option under the cursor, or take its mark away."""
        if not self._several or not self.cursor:
            return
        option = self._options[int(self.cursor)]
        kept = tuple(each for each in self._marked if each != option)
        self._marked = kept if option in self._marked else (*kept, option)
        self._set()
        self.post_message(self.Changed(self))

    def action_number(self, number: int) -> None:
        """Go to an option; where several may be chosen, mark it."""
        if number <= len(self._options):
            self.move_cursor(str(number - 1))
            if self._several:
                self.action_mark_option()
            else:
                self.post_message(self.Changed(self))
