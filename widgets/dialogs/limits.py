"""What holds an agent: its breakpoints and how often they stopped it, and budgets with what is left."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.widget import Widget

from widgets.base.dialog import DialogKey, RowsDialog
from widgets.base.line_pane import RowChosen


class BreakpointsDialog(RowsDialog):
    """The breakpoints; a new one is typed in the command bar."""

    LIST_TITLE, EMPTY = "Breakpoints", "There are no breakpoints. Press I to add one."
    KEYS = (
        DialogKey("I,insert", "ask('add')", "add"),
        DialogKey("space", "ask('switch')", "on, off"),
        DialogKey("D,delete", "ask('remove')", "delete"),
        DialogKey("w", "ask('why')", "why it held last"),
    )
    CHOOSING = "switch"
    DEFAULT_CSS = "BreakpointsDialog > Vertical { height: 80%; min-height: 12; }"


class BudgetsDialog(RowsDialog):
    """Budgets with what was spent, is left and is to be expected of each kind."""

    LIST_TITLE, EMPTY = "Budgets", "There is no agent yet."
    KEYS = (
        DialogKey("e", "edit", "change", shown="enter"),
        DialogKey("plus", "ask('more')", "a quarter more"),
        DialogKey("D,delete", "ask('lift')", "no limit"),
        DialogKey("P", "ask('picture')", "picture"),
        DialogKey("dollar_sign,q", "close"),
    )
    DEFAULT_CSS = "BudgetsDialog > Vertical { height: 96%; }"

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
