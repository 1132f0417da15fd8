"""The sandbox: what programs may do, and the choices where no jail works as the policy requires."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from textual.app import ComposeResult

from widgets.base.dialog import BoxDialog, ConfirmDialog
from widgets.base.facts import Fact, FactsPane

NoJailChoice = Literal["files", "accept", "leave"]


class NoJailDialog(BoxDialog[NoJailChoice | None]):
    """Gives the choice, or None for the harmless one; a weaker jail takes a second key.

    Args:
        facts: why no program may run, what is missing, and what to do about it.
        weaker: what the weaker choice does: `run programs UNCONFINED`.
        promise: what the tier that this machine gives holds and what it does not.
    """

    TITLE_TEXT, HINT = "No jail for programs", "esc: file commands only"

    def __init__(self, facts: Sequence[Fact], weaker: str, promise: str) -> None:
        super().__init__()
        self._facts, self._weaker, self._promise = FactsPane(facts), weaker, promise

    def compose(self) -> ComposeResult:
        """Why, then what can be done."""
        yield self.box(self._facts)

    def on_resize(self) -> None:
        """Give the facts the lines they need, as far as there is room."""
        self.fit_text(self._facts, 6)

    def action_weaken(self) -> None:
        """Ask once more; only `y` agrees."""
        question = f"Press y to {self._weaker} until this session ends"
        self.app.push_screen(ConfirmDialog(question, self._promise), self._agreed)

    def _agreed(self, sure: bool | None) -> None:
        if sure:
            self.dismiss("accept")
