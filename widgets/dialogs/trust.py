"""Whether what is in a folder counts: all that has to be trusted, with what each would change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from textual.app import ComposeResult

from widgets.base.dialog import BoxDialog
from widgets.base.facts import LongText, Section

TrustChoice = Literal["trust", "restricted", "leave"]


class TrustDialog(BoxDialog[TrustChoice]):
    """Gives the choice; escape opens the folder restricted, which lets nothing of it count that loosens.

    Args:
        folder: its path.
        sections: what is in it.
        said: why it is asked once more; empty at first.
    """

    TITLE_TEXT, HINT = "Do you trust this folder?", "↑ ↓ scroll · esc: open restricted"

    def __init__(self, folder: str, sections: Sequence[Section], said: str = "") -> None:
        super().__init__(unasked=True)
        self._text, self._said = LongText(), said
        about = (
            f"{folder}\nWhat is listed here came with the folder or was changed outside of Pilothouse. "
            "Trusted, it counts as your own. Opened restricted, its settings can only tighten yours, and the "
            "rest of it is off."
        )
        self._text.show((Section("Not trusted", about, "text"), *sections))

    def compose(self) -> ComposeResult:
        """What would change, and the keys."""
        yield self.box(self._text, self.said)

    def on_mount(self) -> None:
        """Arrows scroll; why it is asked once more stands below."""
        self.set_focus(self._text)
        self.say(self._said)

    def action_close(self) -> None:
        """Open it restricted."""
        self.dismiss("restricted")
