"""Working memory: what the agent has in mind now."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from engine.domain.text import clean_line
from widgets.line_pane import Notice
from widgets.pieces import Piece
from widgets.rows import Row, RowPane


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """One entry of working memory."""

    id: str
    kind: str
    """`goal`, `belief`, `fact`, `result`, …"""
    text: str
    focused: bool = False
    """True for what the agent's attention is on."""
    confidence: float | None = None
    """Between 0 and 1."""
    fresh: bool = False
    """True when it changed in this tick."""


@dataclass(frozen=True, slots=True)
class WorkingMemoryModel:
    """What the pane shows."""

    entries: tuple[MemoryLine, ...] = ()
    capacity: int = 0
    """Entries working memory may hold; 0 when there is no limit."""
    notice: Notice | None = None


class WorkingMemory(RowPane):
    """The entries of working memory, the focused one marked with a star."""

    BORDER_TITLE = "3 Working memory"
    MARKS = True
    BINDING_GROUP_TITLE = "Working memory"
    EMPTY = "What the agent keeps in mind will appear here once it runs. Press space to run it."
    HELP = """## Working memory
What the agent has in mind now. ★ is its focus; + is new in this tick; the percentage is its confidence.
"""

    @dataclass
    class MemorySelected(Message):
        """The cursor is on an entry."""

        memory_id: str

    _model = WorkingMemoryModel()

    def show(self, model: WorkingMemoryModel) -> None:
        """Show this model."""
        if model == self._model:
            return
        self._model = model
        self.set_notice(model.notice)
        count = f"{len(model.entries)}/{model.capacity}" if model.capacity else ""
        self.set_caption_text(count)
        self.set_rows([_row(entry) for entry in model.entries])

    def row_highlighted(self, key: str) -> None:
        """Tell which entry is looked at."""
        self.post_message(self.MemorySelected(key))


def _row(entry: MemoryLine) -> Row:
    kind, text = clean_line(entry.kind), clean_line(entry.text)
    mark = Piece("★", "accent") if entry.focused else Piece("+", "success") if entry.fresh else Piece(" ")
    sure = "" if entry.confidence is None else f"{entry.confidence:.0%}"
    return Row(
        entry.id,
        (Piece(f"{kind}: " if kind else "", "dim"), Piece(text, "strong" if entry.focused else "text")),
        tail=(Piece(sure, "dim"),) if sure else (),
        mark=mark,
        indent=2,
        most=2,
        copy=text,
    )
