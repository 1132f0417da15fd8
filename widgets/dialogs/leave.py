"""Leaving the cockpit while agents are at work."""

from __future__ import annotations

from typing import Literal

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from engine.core.text import clean
from widgets.base.dialog import BoxDialog

LeaveChoice = Literal["detach", "stop"]


class LeaveDialog(BoxDialog[LeaveChoice]):
    """Gives the choice, or None to stay.

    Args:
        question: who is at work.
    """

    TITLE_TEXT, HINT = "Leave", "esc stay"

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
