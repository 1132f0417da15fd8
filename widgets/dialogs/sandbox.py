"""The sandbox: what programs may do, and the choices where no jail works as the policy requires."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from engine.core.text import clean_line
from widgets.base.dialog import BoxDialog, DialogKey, TextDialog
from widgets.base.facts import Fact, FactsPane
from widgets.base.line_pane import LinePane, RowChosen
from widgets.base.rows import Row
from widgets.base.text_layout import Piece, Pieces, wrap


class NoJailChoice(StrEnum):
    """What the operator can choose; the value is the key that chooses it."""

    FILES_ONLY = "f"
    ACCEPT = "u"
    LEAVE = "q"


@dataclass(frozen=True, slots=True)
class NoJailModel:
    """What the dialog shows."""

    reason: str
    """Why no program may run, in a sentence."""
    given: str
    """The tier that this machine gives."""
    promise: str
    """What that tier holds and what it does not."""
    mends: tuple[tuple[str, str, str], ...]
    """What is missing: the layer, why it does not work, and what to do."""


class NoJailDialog(BoxDialog[NoJailChoice | None]):
    """Gives the choice, or None for the harmless one; a weaker jail takes a second key."""

    TITLE_TEXT, HINT = "No jail for programs", "esc: file commands only"
    DEFAULT_CSS = """
    NoJailDialog > Vertical { border: round $error; }
    NoJailDialog FactsPane { height: auto; max-height: 14; }
    NoJailDialog #choices { height: 3; }
    NoJailDialog #line { height: 2; margin: 1 0 0 0; }
    """

    def __init__(self, model: NoJailModel) -> None:
        super().__init__()
        self._model = model
        self._facts = FactsPane(_facts(model))
        self._choices = LinePane(title="No jail", id="choices")
        self._line = Static(id="line")
        self._asked = False

    def compose(self) -> ComposeResult:
        """Why, then what can be done."""
        yield self.box(self._facts, self._line, self._choices)

    def on_mount(self) -> None:
        """The choices have the focus, the harmless one first."""
        choices = {
            NoJailChoice.FILES_ONLY: "work with the file commands only; programs stay refused",
            NoJailChoice.ACCEPT: f"{self._weaker} until this session ends; asks once more",
            NoJailChoice.LEAVE: "leave, mend it, and come back",
        }
        self._choices.set_rows(
            [Row(key, (Piece(f"{key}  ", "accent"), Piece(words))) for key, words in choices.items()]
        )
        self._choices.focus()
        self._ask(False)

    def on_resize(self) -> None:
        """Give the facts the lines they need, as far as the choices leave room."""
        self.fit_text(self._facts, 10)

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

    @on(RowChosen)
    def _row_chosen(self, event: RowChosen) -> None:
        self._choose(NoJailChoice(event.key))

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


LABEL_CELLS = 13


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One row; without a text it is a heading."""

    mark: str
    label: str
    text: str
    style: str = "text"


@dataclass(frozen=True, slots=True)
class PolicyModel:
    """What the dialog shows."""

    agent: str
    rows: tuple[PolicyRow, ...]


def policy_lines(model: PolicyModel, width: int) -> Iterator[Pieces]:
    """The rows of a policy; it is read on the screen and changed nowhere there."""
    for row in model.rows:
        label = clean_line(row.label)
        if not row.text:
            yield from ((Piece(""),), (Piece(label, "heading"),))
            continue
        head = (Piece(f"{row.mark:<2}", row.style), Piece(f"{label:<{LABEL_CELLS}}", "dim"))
        style = row.style if row.style in ("error", "warning") else "text"
        yield from wrap((*head, Piece(clean_line(row.text), style)), width, indent=LABEL_CELLS + 2, most=20)


class PolicyDialog(TextDialog):
    """The policy of an agent."""

    KEYS = (DialogKey("P", "close"),)

    def __init__(self, model: PolicyModel) -> None:
        agent = clean_line(model.agent)
        super().__init__(f"Sandbox of {agent}" if agent else "Sandbox", partial(policy_lines, model))
