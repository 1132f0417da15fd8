"""What is asked when the journal of a workspace is not what was written."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from engine.core.text import clean
from widgets.base.dialog import BoxDialog
from widgets.base.facts import LongText, Section


class UnsoundJournalDialog(BoxDialog[str]):
    """Offers what can be done; gives `look`, `restore` or `accept`, or nothing to leave.

    Args:
        problem: what is wrong, and where.
        sound: how many events before it are sound.
    """

    TITLE_TEXT = "The journal is not sound"
    HINT = "esc leave"

    def __init__(self, problem: str, sound: int) -> None:
        super().__init__()
        self._problem, self._sound = problem, sound

    def compose(self) -> ComposeResult:
        """What is wrong, the offers, and the keys."""
        offers = (
            "Nothing was changed, and nothing runs. The old file is kept whatever you choose.\n"
            f"l  read what is there\n"
            f"r  a new journal with the {self._sound:,} sound events\n"
            "a  a new journal with all that can be read; that the break was accepted is recorded by your name"
        )
        yield self.box(
            Static(Content(clean(self._problem))),
            Static(Content(offers), classes="-offers"),
            classes="-question",
        )


class ReadableEventsDialog(BoxDialog[str]):
    """Events of a journal that can be read, a page of them; gives `older` or `newer`, or nothing.

    Args:
        text: a line each, below a heading.
    """

    TITLE_TEXT = "What can be read"
    AUTO_FOCUS = "LinePane"
    HINT = "↑ ↓ scroll · Y copy · esc close"

    def __init__(self, text: str) -> None:
        super().__init__()
        head, _, rest = text.partition("\n")
        self._text = LongText()
        self._text.show((Section(head, rest, "text"),))

    def compose(self) -> ComposeResult:
        """The lines, which have the focus, so that arrows scroll."""
        yield self.box(self._text)
