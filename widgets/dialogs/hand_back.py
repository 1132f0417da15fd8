"""The last word before the shell goes back to the agent: a note, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog

NOTE_LIMIT = 2_000
"""Characters of a note."""


@dataclass(frozen=True, slots=True)
class HandBack:
    """The operator is done with the shell, or only looks elsewhere while it stays open."""

    note: str = ""
    looks_elsewhere: bool = False


class HandBackDialog(BoxDialog[HandBack | None]):
    """Asks for a note; None means back to the shell. The key that opened it hands back at once."""

    DEFAULT_CSS = """
    HandBackDialog > Vertical { border: round $warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+right_square_bracket", "hand_back", "Hand back", priority=True, id="hand-back.again"),
        Binding("tab", "look_elsewhere", "Other panes", priority=True, id="hand-back.look"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._input = Input(placeholder="a note to the agent; may be empty", max_length=NOTE_LIMIT)

    def compose(self) -> ComposeResult:
        """One line, and what the keys do."""
        with Vertical() as box:
            box.border_title = "Hand the shell back"
            yield self._input
            yield Static(
                Content.from_markup(
                    "[@click=screen.hand_back][bold]enter[/] hands back[/]   "
                    "[@click=screen.close][bold]esc[/] stays[/]   "
                    "[@click=screen.look_elsewhere][bold]tab[/] looks at other panes[/]"
                ),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """The note can be typed at once."""
        self._input.focus()

    def on_input_submitted(self) -> None:
        """Hand back with what is written."""
        self.action_hand_back()

    def action_hand_back(self) -> None:
        """Hand back with what is written."""
        self.dismiss(HandBack(clean_line(self._input.value)))

    def action_look_elsewhere(self) -> None:
        """Keep the shell, and give the keys to the other panes."""
        self.dismiss(HandBack(looks_elsewhere=True))
