"""The inbox: everything that needs the operator, of all agents, answered in place."""

from __future__ import annotations

from functools import partial
from typing import Literal

from textual import on

from widgets.base.dialog import DialogKey, RowsDialog
from widgets.base.line_pane import RowChosen

InboxAnswer = Literal["once", "session", "always", "deny", "open"]
GROUP = "group "
"""How keys of headings begin, below which questions of one shape stand."""
REFRESH_S = 1.0


class InboxDialog(RowsDialog):
    """What waits, the most urgent first; it asks for a newer state each second."""

    HINT = "on a heading: all below it · esc close"
    LIST_TITLE, EMPTY, CLASSES = "Inbox", "Nothing needs you.", "-question"
    KEYS = (
        DialogKey("a", "answer('once')", "allow once"),
        DialogKey("s", "answer('session')", "session …"),
        DialogKey("A", "answer('always')", "always …"),
        DialogKey("d", "answer('deny')", "deny …"),
        DialogKey("", "", "open", shown="enter"),
        DialogKey("q", "close"),
    )
    DEFAULT_CSS = """
    InboxDialog > Vertical { height: 96%; max-width: 160; }
    InboxDialog #said { max-height: 5; }
    """

    def on_mount(self) -> None:
        """Time passes."""
        super().on_mount()
        self.set_interval(REFRESH_S, partial(self.request, "refresh"))

    @on(RowChosen)
    def action_answer(self, answer: InboxAnswer | RowChosen) -> None:
        """Answer the row under the cursor, or all of a group from its heading; enter opens it."""
        if self.list.cursor:
            how = "open" if isinstance(answer, RowChosen) else answer
            self.request("answered", how, self.list.cursor)
