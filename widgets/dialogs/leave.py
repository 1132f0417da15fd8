"""Leaving the cockpit while agents are at work."""

from __future__ import annotations

from enum import StrEnum

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from engine.core.text import clean
from widgets.base.dialog import BoxDialog, DialogKey


class LeaveChoice(StrEnum):
    """What the operator can choose besides staying."""

    DETACH = "detach"
    STOP = "stop"


class LeaveDialog(BoxDialog[LeaveChoice]):
    """Gives the choice, or None to stay.

    Args:
        question: who is at work.
    """

    TITLE_TEXT, HINT = "Leave", "esc stay"
    KEYS = (
        DialogKey("l,enter", "choose('detach')", "leave agents running"),
        DialogKey("x", "choose('stop')", "stop and leave"),
        DialogKey("n", "close", "stay"),
    )
    DEFAULT_CSS = """
    LeaveDialog > Vertical { max-width: 76; }
    LeaveDialog Static { padding: 1 2; }
    """

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """Who is at work, and what each choice does."""
        words = (
            f"{clean(self._question)}\n\nLeft running, nothing is cut off, and pilothouse attach comes back. "
            "Stopped, an action under way is cut off and recorded."
        )
        yield self.box(Static(Content(words)))

    def action_choose(self, choice: str) -> None:
        """Choose."""
        self.dismiss(LeaveChoice(choice))
