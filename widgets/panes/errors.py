"""The error panel: what went wrong, and what recovery does about it."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.facts import ModelPane
from widgets.base.line_pane import Notice
from widgets.base.rows import Row
from widgets.base.text_layout import Piece, Pieces


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """One failure as the panel shows it."""

    id: str
    kind: str
    """The failure kind, such as `NETWORK_ERROR`."""
    subject: str
    """What failed, in a few words."""
    message: str = ""
    strategy: str = ""
    """The recovery strategy, such as `RETRY_WITH_DELAY`; empty when none was chosen."""
    attempt: int = 0
    of: int = 0
    delay_s: float = 0.0
    """Seconds until the next attempt."""
    resolved: bool = False
    needs_operator: bool = False
    """True when it waits for the operator."""
    next_at: str = ""
    """When it is tried again, as HH:MM:SS; empty when it waits for no time."""
    tried: str = ""
    """What was tried before, with the outcomes."""
    rates: str = ""
    """How well each strategy has answered this kind so far."""


@dataclass(frozen=True, slots=True)
class ErrorsModel:
    """What the panel shows, in this order; the newest first reads best."""

    errors: tuple[ErrorLine, ...] = ()
    notice: Notice | None = None


class ErrorPanel(ModelPane[ErrorsModel]):
    """Failures, each with its recovery on the line below."""

    BORDER_TITLE = "4 Errors"
    BINDING_GROUP_TITLE = "Errors"
    EMPTY = "No errors. When an action fails, its cause and its recovery will appear here; n goes to it."
    HELP = """## Errors
Each failure with its kind, what failed, and below it the recovery strategy with the attempt, the delay and
when the next try comes; then what was tried with its outcomes, and how often each strategy has worked so far.
✗ open, ✓ resolved, ? waits for you. Enter shows the failed step. r tries again now; X gives the goal up.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "ask('retry')", "Try what failed again now", show=False, id="errors.retry"),
        Binding("X", "ask('give_up')", "Give up the goal; asks once more", show=False, id="errors.give-up"),
    ]

    _model = ErrorsModel()

    def make_rows(self) -> None:
        """Each failure, with its recovery below it."""
        errors = self._model.errors
        open_ = sum(not error.resolved for error in errors)
        self.set_caption_text(f"{open_} open" if open_ else "")
        self.set_rows([row for error in errors for row in _rows(error)])

    def row_chosen(self, key: str) -> None:
        """Tell which failure was chosen."""
        self.request("error_chosen", key)


def _rows(error: ErrorLine) -> tuple[Row, ...]:
    glyph, style = (
        ("✓", "dim") if error.resolved else ("?", "warning") if error.needs_operator else ("✗", "error")
    )
    kind, subject, message = (clean_line(text) for text in (error.kind, error.subject, error.message))
    recovery = _recovery(error)
    head = Row(
        error.id,
        (
            Piece(glyph + " ", style),
            Piece(kind, style),
            Piece(" " + subject, "dim" if error.resolved else "text"),
        ),
        indent=2,
        most=1 if error.resolved else 2,
        copy=" ".join(part for part in (kind, subject, message) if part),
    )
    rows = [head]
    if message and not error.resolved:
        rows.append(
            Row(
                f"{error.id}/message",
                (Piece("  "), Piece(message, "dim")),
                selectable=False,
                indent=2,
                most=3,
            )
        )
    if recovery:
        rows.append(Row(f"{error.id}/recovery", (Piece("  "), *recovery), selectable=False, indent=2, most=2))
    history = " · ".join(
        f"{name} {clean_line(text)}"
        for name, text in (("tried", error.tried), ("rates", error.rates))
        if text and not error.resolved
    )
    if history:
        pieces = (Piece("  "), Piece(history, "dim"))
        rows.append(Row(f"{error.id}/history", pieces, selectable=False, indent=2, most=3))
    return tuple(rows)


def _recovery(error: ErrorLine) -> Pieces:
    """The strategy with its attempt and delay, and how it stands."""
    words = [clean_line(error.strategy)] if error.strategy else []
    if error.of:
        words.append(f"{error.attempt}/{error.of}")
    if error.delay_s and not error.resolved:
        words.append(f"{error.delay_s:g}s")
    if error.next_at and not error.resolved:
        words.append(f"· next try {clean_line(error.next_at)}")
    if error.resolved:
        return (Piece(" ".join(words) + (" · " if words else ""), "dim"), Piece("resolved", "success"))
    if error.needs_operator:
        return (
            Piece(" ".join(words) + (" · " if words else ""), "dim"),
            Piece("waits for you (i)", "warning"),
        )
    return (Piece(" ".join(words), "accent"),) if words else ()
