"""The agent's meta-cognition: what is due, what runs in the background, and the last results."""

from __future__ import annotations

from widgets.base.dialog import RowsDialog, TextDialog


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
