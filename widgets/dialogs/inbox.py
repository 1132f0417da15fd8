"""The inbox: everything that needs the operator, of all agents, answered in place."""

from __future__ import annotations

from functools import partial
from typing import Literal

from textual import on

from engine.value import replace
from widgets.base.dialog import RowsDialog
from widgets.base.facts import ListModel
from widgets.base.line_pane import RowChosen, RowHighlighted

InboxAnswer = Literal["once", "session", "always", "deny", "open"]
GROUP = "group "
"""How keys of headings begin, below which questions of one shape stand."""
REFRESH_S = 1.0


ANSWERS: dict[str, dict[str, str]] = {
    "approval": {"once": "allow once", "session": "this session …", "always": "for good …", "deny": "deny …"},
    "rule": {"session": "this session", "always": "for good", "deny": "decline"},
    "controls": {"once": "give the controls"},
    "backlog": {"once": "approve", "deny": "reject"},
    "server": {"deny": "let it not start"},
}
"""What can be answered in place, with what it means, by what waits; all else is opened."""


class InboxDialog(RowsDialog):
    """What waits, the most urgent first; it asks for a newer state each second."""

    HINT = "on a heading: all below it · esc close"
    LIST_TITLE, EMPTY, CLASSES = "Inbox", "Nothing needs you.", "-question"

    def on_mount(self) -> None:
        """Time passes."""
        super().on_mount()
        self.set_interval(REFRESH_S, partial(self.request, "refresh"))

    def show(self, model: ListModel) -> None:
        """Show these; the cursor stays on its row."""
        super().show(model)
        self._show_answers()

    @on(RowHighlighted)
    def _show_answers(self) -> None:
        """Show what answers the row under the cursor."""
        answers = ANSWERS.get(self.model.kinds.get(self.list.cursor, ""), {})
        keys = (replace(key, words=answers.get(key.action[8:-2], key.words)) for key in self.KEYS)
        self.show_keys(keys)

    @on(RowChosen)
    def action_answer(self, answer: InboxAnswer | RowChosen) -> None:
        """Answer the row under the cursor, or all of a group from its heading; enter opens it."""
        if self.list.cursor:
            how = "open" if isinstance(answer, RowChosen) else answer
            self.request("answered", how, self.list.cursor)
