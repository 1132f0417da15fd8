"""The thinker's last prompt: each block's share of it, what it cost, and every word of it."""

from __future__ import annotations

from collections.abc import Sequence

from widgets.base.dialog import DialogKey, TextDialog
from widgets.base.facts import LongText, Section


class ContextDialog(TextDialog):
    """Shares, costs, blocks and answer, one below the other; `show` brings a newer call."""

    KEYS = (DialogKey("c,q", "close"),)

    def show(self, sections: Sequence[Section]) -> None:
        """Show these sections; the reader's place stays."""
        self.query_one(LongText).show(tuple(sections), from_start=False)
