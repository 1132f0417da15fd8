"""No jail as the policy requires it: why, how to mend it, and what the operator chooses meanwhile.

Source: sandbox spec §5.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.facts import Fact, FactsPane
from widgets.pieces import Piece
from widgets.rows import Row, RowPane


class NoJailChoice(StrEnum):
    """What the operator can choose; the value is the key that chooses it."""

    FILES_ONLY = "f"
    ACCEPT = "u"
    LEAVE = "q"


@dataclass(frozen=True, slots=True)
class NoJailModel:
    """What the operator is told."""

    reason: str
    """Why no program may run, in a sentence."""
    given: str
    """The tier that this machine gives."""
    promise: str
    """What that tier holds and what it does not."""
    mends: tuple[tuple[str, str, str], ...]
    """What is missing: the layer, why it does not work, and what to do."""


class NoJailChoices(RowPane):
    """The choices, one a line with its key."""

    BINDING_GROUP_TITLE = "No jail"
    DEFAULT_CSS = """
    NoJailChoices { height: 3; border: none; &:focus { border: none; } }
    """

    @dataclass
    class Chosen(Message):
        """A choice was made with enter or a double click."""

        choice: NoJailChoice

    def row_chosen(self, key: str) -> None:
        """Tell which."""
        self.post_message(self.Chosen(NoJailChoice(key)))


class NoJailDialog(BoxDialog[NoJailChoice | None]):
    """Gives the choice, or None for the harmless one; a weaker jail takes a second key."""

    DEFAULT_CSS = """
    NoJailDialog > Vertical { border: round $error; }
    NoJailDialog FactsPane { height: auto; max-height: 14; min-height: 3; border: none; }
    NoJailDialog FactsPane:focus { border: none; }
    NoJailDialog #line { height: 2; margin: 1 0 0 0; color: $text-warning; }
    """

    def __init__(self, model: NoJailModel) -> None:
        super().__init__()
        self._model = model
        self._facts = FactsPane(_facts(model))
        self._choices = NoJailChoices()
        self._line = Static(id="line")
        self._asked = False

    def compose(self) -> ComposeResult:
        """Why, then what can be done."""
        with Vertical() as box:
            box.border_title = "No jail for programs"
            box.border_subtitle = "esc: file commands only"
            yield self._facts
            yield self._line
            yield self._choices

    def on_mount(self) -> None:
        """The choices have the focus, the harmless one first."""
        told = {
            NoJailChoice.FILES_ONLY: "work with the file commands only; programs stay refused",
            NoJailChoice.ACCEPT: f"{self._weaker} until this session ends; asks once more",
            NoJailChoice.LEAVE: "leave, mend it, and come back",
        }
        self._choices.set_rows(
            [Row(key, (Piece(f"{key}  ", "accent"), Piece(words))) for key, words in told.items()]
        )
        self._choices.focus()
        self._ask(False)

    def on_resize(self) -> None:
        """Give the facts the lines they need, as far as the choices leave room."""
        lines = len(self._facts.lines_for(max(8, min(100, self.size.width * 92 // 100) - 7)))
        self._facts.styles.height = max(3, min(lines, self.size.height - 10))

    @property
    def _weaker(self) -> str:
        given = clean_line(self._model.given)
        return "run programs UNCONFINED" if given == "PATHS" else f"run programs in the weaker jail {given}"

    def on_key(self, event: events.Key) -> None:
        """The key of a choice makes it; once the weaker jail was asked for, only `y` agrees."""
        if self._asked:
            event.stop()
            event.prevent_default()
            self._ask(False)
            if event.character == "y":
                self.dismiss(NoJailChoice.ACCEPT)
        elif event.character in tuple(NoJailChoice):
            event.stop()
            event.prevent_default()
            self._choose(NoJailChoice(event.character))

    def on_no_jail_choices_chosen(self, event: NoJailChoices.Chosen) -> None:
        """A choice was made in the list."""
        event.stop()
        self._choose(event.choice)

    def _choose(self, choice: NoJailChoice) -> None:
        if choice is NoJailChoice.ACCEPT:
            self._ask(True)
        else:
            self.dismiss(choice)

    def _ask(self, asked: bool) -> None:
        self._asked = asked
        promise = clean_line(self._model.promise)
        question = f"Press y to {self._weaker}: {promise}. Any other key goes back."
        self._line.update(Content(question if asked else "What should happen?"), layout=False)


def _facts(model: NoJailModel) -> tuple[Fact, ...]:
    facts = [Fact("why", model.reason, "error")]
    for layer, reason, fix in model.mends:
        facts.append(Fact("missing", f"{layer}: {reason}"))
        facts += [Fact("mend", fix, "strong")] if fix else []
    return tuple(facts)
