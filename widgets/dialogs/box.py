"""The box all dialogs share: a bordered column in the middle of a dimmed screen."""

from __future__ import annotations

from time import monotonic
from typing import ClassVar, TypeVar

from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

Result = TypeVar("Result")

UNMEANT_S = 0.4
"""How long a dialog that opened by itself takes keys for ones that were meant for what it covers."""


class BoxDialog(ModalScreen[Result]):
    """A modal screen whose first child is the box; escape closes it without a choice.

    Args:
        unasked: it opens by itself, so that the first keys are hardly meant for it.
    """

    DEFAULT_CSS = """
    BoxDialog {
        align: center middle;
        background: $background 70%;
        & > Vertical {
            width: 92%;
            max-width: 100;
            height: auto;
            max-height: 96%;
            background: $background;
            border: round $border;
            border-title-color: $text-primary;
            border-title-style: bold;
            border-subtitle-color: $foreground-muted;
            padding: 0 1;
        }
        & Static.-label { color: $foreground-muted; height: 1; }
        & Static.-keys { height: auto; link-style: none; }
        & Static.-problems { color: $text-error; height: auto; max-height: 4; }
        & Static.-problems.-fine { color: $text-success; }
        & Input { border: round $border-blurred; background: $background; padding: 0 1; }
        & Input:focus { border: heavy $border; background-tint: $foreground 0%; }
        & TextArea { border: round $border-blurred; background: $background; padding: 0; }
        & TextArea:focus { border: heavy $border; }
        &:ansi { background: ansi_default; }
        &:ansi > Vertical { background: ansi_default; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close", id="dialog.close"),
    ]

    def __init__(self, *, unasked: bool = False) -> None:
        super().__init__()
        self._opened = monotonic() if unasked else None
        self._answered = False

    @property
    def unmeant(self) -> bool:
        """Whether a choice made now was hardly meant for this dialog."""
        return self._opened is not None and monotonic() < self._opened + UNMEANT_S

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close with a choice; whatever comes behind it in a burst of keys chooses nothing any more."""
        if self._answered:
            return AwaitComplete()
        self._answered = True
        return super().dismiss(result)

    def action_close(self) -> None:
        """Close without choosing anything."""
        self.dismiss(None)
