"""The mind stream: thoughts, deliberations, decisions and plan choices as they come."""

from __future__ import annotations

import re
from typing import Literal

from engine.core.text import clean_line
from widgets.base.facts import RowsPane
from widgets.base.rows import Row
from widgets.base.text_layout import Piece, operator_style

MindKind = Literal["thought", "deliberation", "decision", "plan", "reflection", "note"]
MIND_MARKS: dict[str, tuple[str, str]] = {
    "thought": ("~", "dim"),
    "deliberation": ("?", "text"),
    "decision": ("◆", "accent"),
    "plan": ("≡", "accent"),
    "reflection": ("∞", "success"),
    "note": ("·", "dim"),
}
_NAMED = re.compile(r"[ags]\d+ ")
"""The action, goal or step that a line begins with."""


class MindStream(RowsPane):
    """The tail of the agent's mind; it follows the newest entry until the reader scrolls up."""

    BORDER_TITLE = "6 Mind"
    BINDING_GROUP_TITLE = "Mind"
    FOLLOWS = True
    STARTS_ON_FIRST = False
    EMPTY = (
        "Thoughts, decisions and plan choices will appear here as they come. Press space to run the agent."
    )

    def row_chosen(self, key: str) -> None:
        """Ask why."""
        self.request("why", key)


def mind_row(id_: str, kind: MindKind, text: str, at: str = "", by: str = "") -> Row:
    """A movement of the agent's mind.

    Args:
        id_: its event, so that `w` can ask why.
        kind: what it is.
        text: in words.
        at: time of day, `14:03:07`.
        by: the operator whose doing it is.
    """
    glyph, style = MIND_MARKS[kind]
    at, text = clean_line(at, limit=12), clean_line(text)
    match = _NAMED.match(text)
    named = match.group() if match is not None else ""
    emphasis = "strong" if kind == "decision" else "dim" if kind == "note" else "text"
    return Row(
        id_,
        (
            *(Piece(f"{at} " if at else "", "dim"), Piece(glyph + " ", style)),
            *(Piece(f"{by}: ", operator_style(by)) for _ in range(bool(by))),
            Piece(named, "dim"),
            Piece(text.removeprefix(named), emphasis),
        ),
        indent=2,
        most=8,
        copy=f"{by}: {text}" if by else text,
    )
