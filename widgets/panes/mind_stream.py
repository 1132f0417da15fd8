"""The mind stream: thoughts, deliberations, decisions and plan choices as they come."""

from __future__ import annotations

from typing import Literal

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.line_pane import LinePane, Notice
from widgets.base.rows import Row
from widgets.base.text_layout import Piece

MindKind = Literal["thought", "deliberation", "decision", "plan", "reflection", "note"]
CAPACITY = 2_000
"""Entries kept; older ones are in the journal."""
MIND_MARKS: dict[str, tuple[str, str]] = {
    "thought": ("~", "dim"),
    "deliberation": ("?", "text"),
    "decision": ("◆", "accent"),
    "plan": ("≡", "accent"),
    "reflection": ("∞", "success"),
    "note": ("·", "dim"),
}


@dataclass(frozen=True, slots=True)
class MindLine:
    """One movement of the agent's mind."""

    id: str
    """Its event, so that `w` can ask why."""
    kind: MindKind
    text: str
    at: str = ""
    """Time of day as the pane shows it, `14:03:07`."""


@dataclass(frozen=True, slots=True)
class MindModel:
    """What the pane shows, the newest last; entries beyond the last 2,000 are left out."""

    entries: tuple[MindLine, ...] = ()
    notice: Notice | None = None


class MindStream(LinePane):
    """The tail of the agent's mind; it follows the newest entry until the reader scrolls up."""

    BORDER_TITLE = "6 Mind"
    BINDING_GROUP_TITLE = "Mind"
    FOLLOWS = True
    STARTS_ON_FIRST = False
    EMPTY = (
        "Thoughts, decisions and plan choices will appear here as they come. Press space to run the agent."
    )
    HELP = """## Mind
~ thought, ? deliberation, ◆ decision, ≡ plan choice, ∞ reflection, · note.
Scroll up to read: the pane stays where you are and counts what is new; end or G follows again.
Enter asks why.
"""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._model = MindModel()
        self._known: dict[str, tuple[MindLine, Row]] = {}

    def show(self, model: MindModel) -> None:
        """Show this model."""
        if model == self._model:
            return
        self._model = model
        self.set_notice(model.notice)
        known: dict[str, tuple[MindLine, Row]] = {}
        added = 0
        for entry in model.entries[-CAPACITY:]:
            before = self._known.get(entry.id)
            # Most are the very same, and there may be thousands of them.
            if before is not None and (before[0] is entry or before[0] == entry):
                known[entry.id] = before
            else:
                known[entry.id] = (entry, _row(entry))
                added += before is None
        self._known = known
        self.set_rows([row for _, row in known.values()], added=added)

    def row_chosen(self, key: str) -> None:
        """Ask why."""
        self.request("why", key)


def _row(entry: MindLine) -> Row:
    glyph, style = MIND_MARKS[entry.kind]
    at, text = clean_line(entry.at, limit=12), clean_line(entry.text)
    emphasis = "strong" if entry.kind == "decision" else "dim" if entry.kind == "note" else "text"
    return Row(
        entry.id,
        (Piece(f"{at} " if at else "", "dim"), Piece(glyph + " ", style), Piece(text, emphasis)),
        indent=2,
        most=8,
        copy=text,
    )
