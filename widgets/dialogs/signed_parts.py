"""Parts of a comparison or a preview one below the other, whose lines bear signs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.domain.text import clean_line
from widgets.facts import FactsPane
from widgets.pieces import Piece, Pieces, wrap

STYLES = {"+": "success", "-": "error", "~": "warning", "!": "error"}


@dataclass(frozen=True, slots=True)
class SignedPart:
    """One part, such as the beliefs or the files."""

    title: str
    lines: tuple[tuple[str, str], ...]
    """Sign (`+`, `-`, `~`, `!`) and words of each line."""
    note: str = ""


class SignedText(FactsPane):
    """The parts; a sign says what sort a line is, without colour too.

    Args:
        parts: what is shown.
        nothing: what stands in a part that has no lines.
        counted: whether a title tells how many there are.
    """

    BINDING_GROUP_TITLE = "Parts"
    DEFAULT_CSS = """
    SignedText { height: 1fr; border: none; &:focus { border: none; } }
    """

    def __init__(self, parts: Sequence[SignedPart], *, nothing: str, counted: bool = False) -> None:
        super().__init__()
        self._parts, self._nothing, self._counted = parts, nothing, counted

    def lines_for(self, width: int) -> tuple[Pieces, ...]:
        """Each part under its title."""
        lines: list[Pieces] = []
        for part in self._parts:
            lines += [(Piece(""),)] if lines else []
            count = f" ({len(part.lines)})" if self._counted and part.lines else ""
            lines += wrap((Piece(f"{clean_line(part.title)}{count}", "heading"),), width, indent=2, most=4)
            if part.note:
                lines += wrap((Piece(f"  {clean_line(part.note)}", "dim"),), width, indent=2, most=4)
            for sign, words in part.lines:
                head = Piece(f"{sign} ", STYLES.get(sign, "text"))
                lines += wrap((head, Piece(clean_line(words))), width, indent=4, most=6)
            if not part.lines:
                lines.append((Piece(f"  {self._nothing}", "dim"),))
        return tuple(lines)
