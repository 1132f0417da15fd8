"""The error panel: what went wrong, and what recovery does about it."""

from __future__ import annotations

from collections.abc import Sequence

from engine.core.text import clean_line
from widgets.base.facts import RowsPane
from widgets.base.rows import Row
from widgets.base.text_layout import Piece


class ErrorPanel(RowsPane):
    """Failures, each with its recovery on the line below."""

    BORDER_TITLE = "4 Errors"
    BINDING_GROUP_TITLE = "Errors"
    EMPTY = "No errors. What fails and why will appear here."

    def row_chosen(self, key: str) -> None:
        """Tell which failure was chosen."""
        self.request("error_chosen", key)


def error_rows(
    id_: str,
    kind: str,
    subject: str,
    message: str = "",
    recovery: Sequence[str] = (),
    *,
    resolved: bool = False,
    worked: bool = True,
    waits: bool = False,
    history: str = "",
) -> list[Row]:
    """A failure with its recovery on the line below.

    Args:
        id_: its event.
        kind: such as `NETWORK_ERROR`.
        subject: what failed, in a few words.
        message: what it said.
        recovery: the strategy, and how it stands.
        resolved: whether it is over.
        worked: whether that is because it worked in the end, where it is over.
        waits: whether it waits for the operator.
        history: what was tried before with the results, and how well strategies have done.
    """
    glyph, style = (
        ("✓" if worked else "–", "dim") if resolved else ("?", "warning") if waits else ("✗", "error")
    )
    kind, subject, message = (clean_line(text) for text in (kind, subject, message))
    over = ("resolved", "success") if worked else ("left as it is", "dim")
    end = over if resolved else ("waits for you (i)", "warning") if waits else ("", "text")
    words = " ".join(map(clean_line, recovery))
    below = {
        "message": (Piece("" if resolved else message, "dim"),),
        "recovery": (
            Piece(words + " · " * bool(words and end[0]), "dim" if end[0] else "accent"),
            Piece(*end),
        ),
        "history": (Piece("" if resolved else clean_line(history), "dim"),),
    }
    head = Row(
        id_,
        (Piece(f"{glyph} {kind}", style), Piece(f" {subject}", "dim" if resolved else "text")),
        indent=2,
        most=1 if resolved else 2,
        copy=" ".join(filter(None, (kind, subject, message))),
    )
    return [
        head,
        *(
            Row(f"{id_}/{name}", (Piece("  "), *pieces), selectable=False, indent=2, most=3)
            for name, pieces in below.items()
            if any(piece.text for piece in pieces)
        ),
    ]
