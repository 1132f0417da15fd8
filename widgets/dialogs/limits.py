"""What holds an agent: its breakpoints and how often they stopped it, and budgets with what is left."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.widget import Widget

from widgets.base.dialog import RowsDialog
from widgets.base.line_pane import RowChosen


class BreakpointsDialog(RowsDialog):
    """The breakpoints; a new one is typed in the command bar."""

    LIST_TITLE, EMPTY = "Breakpoints", "There are no breakpoints. Press I to add one."
    CHOOSING = "switch"


class BudgetsDialog(RowsDialog):
    """Budgets with what was spent, is left and is to be expected of each kind."""

    LIST_TITLE, EMPTY = "Budgets", "There is no agent yet."

    def parts(self) -> Sequence[Widget]:
        """The kinds of each budget, the result of the last change, and the line to write in."""
        return (self.list, self.said, self.line)

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
