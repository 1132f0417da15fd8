"""What is asked when the journal of a workspace is not what was written."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from engine.core.text import clean
from widgets.base.dialog import BoxDialog, DialogKey


class UnsoundJournalDialog(BoxDialog[str]):
    """Offers what can be done; gives `look`, `restore` or `accept`, or nothing to leave.

    Args:
        problem: what is wrong, and where.
        sound: how many events before it are sound.
    """

    TITLE_TEXT = "The journal is not sound"
    HINT = "esc leave"
    KEYS = (
        DialogKey("l", "choose('look')", "look at it"),
        DialogKey("r", "choose('restore')", "restore"),
        DialogKey("b", "choose('accept')", "go on with the break"),
    )
    DEFAULT_CSS = """
    UnsoundJournalDialog > Vertical { max-width: 84; padding: 1 2; }
    UnsoundJournalDialog .-offers { margin: 1 0; }
    """

    def __init__(self, problem: str, sound: int) -> None:
        super().__init__()
        self._problem, self._sound = problem, sound

    def compose(self) -> ComposeResult:
        """What is wrong, the offers, and the keys."""
        offers = (
            "Nothing was changed, and nothing runs. The old file is kept whatever you choose.\n"
            f"l  read what is there\n"
            f"r  a new journal with the {self._sound:,} sound events\n"
            "b  a new journal with all that can be read; that the break was accepted is recorded by your name"
        )
        yield self.box(
            Static(Content(clean(self._problem))),
            Static(Content(offers), classes="-offers"),
            classes="-question",
        )

    def action_choose(self, way: str) -> None:
        """Take an offer."""
        self.dismiss(way)
