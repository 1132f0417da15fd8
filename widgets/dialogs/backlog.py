"""The backlog of what could be better, and the background jobs: approved, worked on and cancelled by key."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from engine.core.text import clean_line
from widgets.base.dialog import RowsDialog
from widgets.base.facts import FactsPane, ListModel
from widgets.base.line_pane import RowHighlighted


class BacklogDialog(RowsDialog):
    """Items of the backlog, the most urgent first, and what is known of one."""

    LIST_TITLE, CHOOSING = "Backlog", "campaign"
    EMPTY = "The backlog is empty: type : and coord_analyze to look for what could be better."

    def __init__(self, model: ListModel) -> None:
        super().__init__(model)
        self._facts = FactsPane(id="facts", classes="-below")
        self._standing = Static(id="standing")

    def parts(self) -> Sequence[Widget]:
        """How many there are, the items, what is known of one, and the result of the last key."""
        return (self._standing, self.list, self._facts, self.said)

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
