"""Manual intervention: what went wrong, what was tried, and what the operator can do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea

from engine.domain.text import clean, clean_line
from widgets.dialogs.box import BoxDialog
from widgets.facts import Fact, FactsPane
from widgets.pieces import Piece
from widgets.rows import Row, RowPane


class Offer(StrEnum):
    """What the operator can do."""

    EDIT_AND_RETRY = "edit_and_retry"
    GIVE_RESULT = "give_result"
    SKIP = "skip"
    RETRY = "retry"
    RUN_UNSAVED = "run_unsaved"
    REPLACE_REST = "replace_rest"
    TAKE_SHELL = "take_shell"
    ABORT = "abort"


OFFERS: dict[Offer, tuple[str, str, str]] = {
    Offer.EDIT_AND_RETRY: (
        "e",
        "edit and retry",
        "change the tool or its arguments, then run the step again",
    ),
    Offer.RETRY: ("r", "retry now", "run the step again as it is"),
    Offer.RUN_UNSAVED: ("u", "run unsaved", "run the step without a snapshot: it cannot be undone then"),
    Offer.GIVE_RESULT: ("h", "result by hand", "you did it yourself: say what came of it"),
    Offer.SKIP: ("x", "skip", "go on with the next step"),
    Offer.REPLACE_REST: ("p", "replace the rest", "say in words what to do instead of the remaining steps"),
    Offer.TAKE_SHELL: ("t", "take the shell", "work in the sandbox yourself, then hand it back"),
    Offer.ABORT: ("A", "abort the goal", "give the goal up; asks once more"),
}
QUESTION = "What should happen?"
WRITTEN: dict[Offer, str] = {
    Offer.GIVE_RESULT: "The result, as the agent should see it",
    Offer.REPLACE_REST: "What to do instead, as you would word a goal",
}
"""The offers that need a text, with what is asked for."""


@dataclass(frozen=True, slots=True)
class InterventionModel:
    """What the operator is told."""

    goal: str
    step: str
    error_kind: str = ""
    """The failure kind, such as `NETWORK_ERROR`; empty when the operator intervened unasked."""
    error: str = ""
    tried: tuple[str, ...] = ()
    """What recovery tried, in order, one line each."""
    disabled: Mapping[Offer, str] = field(default_factory=dict)
    """Offers that cannot be taken now, each with the reason."""
    unsaved: bool = False
    """Whether the step waits because the workspace could not be saved; only then can it be run without."""

    @property
    def offers(self) -> tuple[Offer, ...]:
        """What is offered at all."""
        return tuple(offer for offer in OFFERS if self.unsaved or offer is not Offer.RUN_UNSAVED)


@dataclass(frozen=True, slots=True)
class InterventionChoice:
    """What the operator chose."""

    offer: Offer
    text: str = ""
    """The result, or the clauses of the new rest of the plan."""


class OfferList(RowPane):
    """The offers, one a line with its key."""

    BINDING_GROUP_TITLE = "Intervention"
    DEFAULT_CSS = """
    OfferList { border: none; &:focus { border: none; } }
    """

    @dataclass
    class Chosen(Message):
        """An offer was chosen with enter or a double click."""

        offer: Offer

    def row_chosen(self, key: str) -> None:
        """Tell which."""
        self.post_message(self.Chosen(Offer(key)))


class InterventionDialog(BoxDialog[InterventionChoice | None]):
    """Gives the operator's choice, or None: then the agent goes on waiting in the background."""

    DEFAULT_CSS = """
    InterventionDialog > Vertical { border: round $warning; }
    InterventionDialog FactsPane { height: auto; max-height: 14; min-height: 3; border: none; }
    InterventionDialog FactsPane:focus { border: none; }
    InterventionDialog #line { height: 1; margin: 1 0 0 0; color: $text-warning; }
    InterventionDialog TextArea { display: none; height: 7; }
    InterventionDialog.-writing TextArea { display: block; }
    InterventionDialog.-writing OfferList { display: none; }
    """

    def __init__(self, model: InterventionModel, *, unasked: bool = False) -> None:
        super().__init__(unasked=unasked)
        self._model = model
        self._writing: Offer | None = None
        self._aborting = False
        self._facts = FactsPane(_facts(model))
        self._offers = OfferList()
        self._line = Static(Content(QUESTION), id="line")
        self._area = TextArea(tab_behavior="focus")

    def compose(self) -> ComposeResult:
        """What happened, then what can be done."""
        with Vertical() as box:
            box.border_title = "Manual intervention"
            box.border_subtitle = "esc leaves it open in the background"
            yield self._facts
            yield self._line
            yield self._offers
            yield self._area

    def on_mount(self) -> None:
        """The offers have the focus."""
        self._offers.styles.height = len(self._model.offers)
        self._offers.set_rows([self._row(offer) for offer in self._model.offers])
        self._offers.focus()

    def on_resize(self) -> None:
        """Give the facts the lines they need, as far as the offers leave room."""
        lines = len(self._facts.lines_for(max(8, min(100, self.size.width * 92 // 100) - 7)))
        self._facts.styles.height = max(3, min(lines, self.size.height - 6 - len(self._model.offers)))

    def _row(self, offer: Offer) -> Row:
        key, name, what = OFFERS[offer]
        reason = clean_line(self._model.disabled.get(offer, ""))
        if reason:
            return Row(
                offer, (Piece(f"{key}  {name:<18}", "dim"), Piece(f"– {reason}", "dim")), selectable=False
            )
        style = "error" if offer is Offer.ABORT else "text"
        return Row(offer, (Piece(f"{key}  ", "accent"), Piece(f"{name:<18}", style), Piece(what, "dim")))

    # Choosing

    def on_key(self, event: events.Key) -> None:
        """The key of an offer chooses it; while a text is written, ctrl+s sends it."""
        if self._writing is not None:
            if event.key == "ctrl+s":
                event.stop()
                self._send()
            return
        for offer in self._model.offers:
            if event.character == OFFERS[offer][0]:
                event.stop()
                event.prevent_default()
                self.choose(offer)
                return
        if self._aborting and event.key != "escape":
            self._aborting = False
            self._say(QUESTION)

    def on_offer_list_chosen(self, event: OfferList.Chosen) -> None:
        """An offer was chosen in the list."""
        event.stop()
        self.choose(event.offer)

    def choose(self, offer: Offer) -> None:
        """Take an offer: ask for its text, ask again before aborting, refuse a disabled one and say why."""
        if self.unmeant:
            self._say("This has just opened; press the key again if you meant it.")
        elif reason := self._model.disabled.get(offer):
            self._say(f"Not possible now: {clean_line(reason)}")
        elif offer is Offer.ABORT and not self._aborting:
            self._aborting = True
            self._say("Give this goal up? Press A once more to abort it; any other choice keeps it.")
        elif offer in WRITTEN:
            self._aborting = False
            self._write(offer)
        else:
            self._aborting = False
            self.dismiss(InterventionChoice(offer))

    def _write(self, offer: Offer) -> None:
        self._writing = offer
        self._say(f"{WRITTEN[offer]} — ctrl+s sends, esc goes back")
        self.add_class("-writing")
        self._area.focus()

    def _send(self) -> None:
        text = clean(self._area.text).strip()
        if not text:
            self._say("Nothing is written yet — ctrl+s sends, esc goes back")
        elif self._writing is not None:
            self.dismiss(InterventionChoice(self._writing, text))

    def action_close(self) -> None:
        """Go back from writing or from the question; else leave, and choose nothing."""
        if self._writing is not None or self._aborting:
            self._writing, self._aborting = None, False
            self.remove_class("-writing")
            self._say(QUESTION)
            self._offers.focus()
            return
        self.dismiss(None)

    def _say(self, text: str) -> None:
        self._line.update(Content(text), layout=False)


def _facts(model: InterventionModel) -> tuple[Fact, ...]:
    facts = [Fact("goal", model.goal, "strong"), Fact("step", model.step)]
    if model.error_kind or model.error:
        facts.append(
            Fact("error", " ".join(part for part in (model.error_kind, model.error) if part), "error")
        )
    if model.tried:
        facts.append(Fact("tried", "\n".join(clean_line(line) for line in model.tried)))
    return tuple(facts)
