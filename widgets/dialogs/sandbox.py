"""The sandbox: what programs may do, and the choices where no jail works as the policy requires."""

from __future__ import annotations

from enum import StrEnum

from textual.app import ComposeResult

from engine.value import dataclass
from widgets.base.dialog import BoxDialog, ConfirmDialog, ConfirmModel, DialogKey
from widgets.base.facts import Fact, FactsPane


class NoJailChoice(StrEnum):
    """What the operator can choose; the value is the key that chooses it."""

    FILES_ONLY = "f"
    ACCEPT = "u"
    LEAVE = "q"


@dataclass(frozen=True, slots=True)
class NoJailModel:
    """What the dialog shows."""

    facts: tuple[Fact, ...]
    """Why no program may run, what is missing, and what to do about it."""
    weaker: str
    """What the weaker choice does: `run programs UNCONFINED`."""
    promise: str
    """What the tier that this machine gives holds and what it does not."""


class NoJailDialog(BoxDialog[NoJailChoice | None]):
    """Gives the choice, or None for the harmless one; a weaker jail takes a second key."""

    TITLE_TEXT, HINT = "No jail for programs", "esc: file commands only"
    KEYS = (
        DialogKey("f", "choose('f')", "file commands only"),
        DialogKey("u", "weaken", "run programs all the same …"),
        DialogKey("q", "choose('q')", "leave and mend it"),
    )
    DEFAULT_CSS = """
    NoJailDialog > Vertical { border: round $error; }
    NoJailDialog FactsPane { height: auto; max-height: 14; }
    """

    def __init__(self, model: NoJailModel) -> None:
        super().__init__()
        self._model = model
        self._facts = FactsPane(model.facts)

    def compose(self) -> ComposeResult:
        """Why, then what can be done."""
        yield self.box(self._facts)

    def on_resize(self) -> None:
        """Give the facts the lines they need, as far as there is room."""
        self.fit_text(self._facts, 6)

    def action_choose(self, choice: str) -> None:
        """Choose."""
        self.dismiss(NoJailChoice(choice))

    def action_weaken(self) -> None:
        """Ask once more; only `y` agrees."""
        question = f"Press y to {self._model.weaker} until this session ends"
        self.app.push_screen(ConfirmDialog(ConfirmModel(question, self._model.promise)), self._agreed)

    def _agreed(self, sure: bool | None) -> None:
        if sure:
            self.dismiss(NoJailChoice.ACCEPT)
