"""Questions that are asked once: on leaving, without a jail, of a folder, and of a damaged journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from textual.content import Content
from textual.widgets import Static

from engine.core.text import clean
from widgets.base.dialog import BoxDialog, ConfirmDialog, TextDialog
from widgets.base.facts import Fact, FactsPane, LongText, Section

LeaveChoice = Literal["detach", "stop"]


class LeaveDialog(BoxDialog[LeaveChoice]):
    """Gives the choice, or None to stay.

    Args:
        question: who is at work.
    """

    TITLE_TEXT, HINT = "Leave", "esc stay"

    def __init__(self, question: str) -> None:
        super().__init__()
        words = (
            f"{clean(question)}\n\nLeft running, nothing is cut off, and pilothouse attach comes back. "
            "Stopped, an action under way is cut off and recorded."
        )
        self.parts = (Static(Content(words)),)


NoJailChoice = Literal["files", "accept", "leave"]


class NoJailDialog(BoxDialog[NoJailChoice | None]):
    """Gives the choice, or None for the harmless one; a weaker jail takes a second key.

    Args:
        facts: why no program may run, what is missing, and what to do about it.
        weaker: what the weaker choice does: `run programs UNCONFINED`.
        promise: what the tier that this machine gives holds and what it does not.
    """

    TITLE_TEXT, HINT = "No jail for programs", "esc: file commands only"

    def __init__(self, facts: Sequence[Fact], weaker: str, promise: str) -> None:
        super().__init__()
        self._facts, self._weaker, self._promise = FactsPane(facts), weaker, promise
        self.parts = (self._facts,)

    def on_resize(self) -> None:
        """Give the facts the lines they need, as far as there is room."""
        self.fit_text(self._facts, 6)

    def action_weaken(self) -> None:
        """Ask once more; only `y` agrees."""
        question = f"Press y to {self._weaker} until this session ends"
        self.app.push_screen(ConfirmDialog(question, self._promise), self._agreed)

    def _agreed(self, sure: bool | None) -> None:
        if sure:
            self.dismiss("accept")


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
        self.parts = (self._text, self.said)

    def on_mount(self) -> None:
        """Arrows scroll; why it is asked once more stands below."""
        self.set_focus(self._text)
        self.say(self._said)

    def action_close(self) -> None:
        """Open it restricted."""
        self.dismiss("restricted")


class UnsoundJournalDialog(BoxDialog[str]):
    """Offers what can be done; gives `look`, `restore` or `accept`, or nothing to leave.

    Args:
        problem: what is wrong, and where.
        sound: how many events before it are sound.
    """

    TITLE_TEXT, HINT, CLASSES = "The journal is not sound", "esc leave", "-question"

    def __init__(self, problem: str, sound: int) -> None:
        super().__init__()
        offers = (
            "Nothing was changed, and nothing runs. The old file is kept whatever you choose.\n"
            f"l  read what is there\n"
            f"r  a new journal with the {sound:,} sound events\n"
            "a  a new journal with all that can be read; that the break was accepted is recorded by your name"
        )
        self.parts = (Static(Content(clean(problem))), Static(Content(offers), classes="-offers"))


class ReadableEventsDialog(TextDialog):
    """Events of a journal that can be read, a page of them; gives `older` or `newer`, or nothing."""
