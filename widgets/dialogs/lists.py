"""Dialogs that are a list, with keys for what is asked of the row under the cursor."""

from __future__ import annotations

from functools import partial
from typing import Literal

from textual import on
from textual.content import Content
from textual.widgets import Static

from engine.core.text import clean_line
from engine.value import replace
from widgets.base.dialog import RowsDialog, TextDialog
from widgets.base.facts import FactsPane, ListModel
from widgets.base.line_pane import RowChosen, RowHighlighted


class BacklogDialog(RowsDialog):
    """Items of the backlog, the most urgent first, and what is known of one."""

    LIST_TITLE, CHOOSING = "Backlog", "campaign"
    EMPTY = "The backlog is empty: type : and coord_analyze to look for what could be better."

    def __init__(self, model: ListModel) -> None:
        super().__init__(model)
        self._facts = FactsPane(id="facts", classes="-below")
        self._standing = Static(id="standing")
        self.parts = (self._standing, self.list, self._facts, self.said)

    def show(self, model: ListModel) -> None:
        """Show these items; the cursor stays on its row."""
        super().show(model)
        self._standing.update(Content(clean_line(model.standing)), layout=False)
        self.show_facts()

    @on(RowHighlighted, "#list")
    def show_facts(self) -> None:
        """Show what is known of the item under the cursor."""
        self._facts.set_facts(self.model.facts.get(self.list.cursor, ()))


class JobsDialog(RowsDialog):
    """Background jobs, the newest first."""

    LIST_TITLE, CHOOSING = "Jobs", "open"
    EMPTY = "No job was begun yet: type : and coord_improve COMPONENT, or coord_analyze."


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


class BreakpointsDialog(RowsDialog):
    """The breakpoints; a new one is typed in the command bar."""

    LIST_TITLE, EMPTY = "Breakpoints", "There are no breakpoints. Press I to add one."
    CHOOSING = "switch"


class BudgetsDialog(RowsDialog):
    """Budgets with what was spent, is left and is to be expected of each kind."""

    LIST_TITLE, EMPTY = "Budgets", "There is no agent yet."

    def __init__(self, model: ListModel) -> None:
        super().__init__(model)
        self.parts = (self.list, self.said, self.line)

    @on(RowChosen)
    def action_edit(self) -> None:
        """Let the operator type an amount."""
        if self.list.cursor:
            self.say(f"{self.list.cursor.replace('/', ', ')}: enter sets it, esc goes back")
            self.write("amount", "5, +5 for more, none for no limit:")

    def written(self, what: str, text: str) -> bool:
        """Ask for the amount."""
        if text:
            self.request("set", self.list.cursor, "".join(text.split()))
        return True

    def action_close(self) -> None:
        """Go back from an amount; else close."""
        if self.writing:
            self.say("")
        super().action_close()


class ContextDialog(TextDialog):
    """The last prompt of an agent's model, and what it left out."""

    HINT = "↑ ↓ scroll · Y copy · r bring back what was left out · esc close"

    def action_bring_back(self) -> None:
        """Have the first text that was left out in the next prompt."""
        self.request("bring_back")


class MetaDialog(RowsDialog):
    """What is due and what runs, and the keys that force, veto and cancel."""

    LIST_TITLE = "Meta-cognition"
    EMPTY = "What the agent does about its own thinking will appear here once it runs. Press space to run it."

    def action_guide(self) -> None:
        """Close, and let the operator write what the thinker is to know."""
        self.dismiss(None)
        self.app.call_later(self.app.run_action, "guide")
