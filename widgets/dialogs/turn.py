"""The operator's turn: what went wrong and what can be done, and the hand-over of the shell."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from textual import on
from textual.content import Content
from textual.widgets import Input, Static

from engine.core.sandbox import OfferedBelief
from engine.core.text import clean, clean_line
from engine.value import dataclass, field
from widgets.base.dialog import BoxDialog, ConfirmDialog
from widgets.base.facts import Fact, FactsPane
from widgets.base.line_pane import LinePane, RowChosen
from widgets.base.rows import Row
from widgets.base.text_layout import Piece


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
    Offer.EDIT_AND_RETRY: ("e", "edit and retry", "change the call, then run the step again"),
    Offer.RETRY: ("r", "retry now", "run the step again as it is"),
    Offer.RUN_UNSAVED: ("n", "run unsaved", "run the step without a snapshot: it cannot be undone then"),
    Offer.GIVE_RESULT: ("h", "result by hand", "you did it yourself: write its result"),
    Offer.SKIP: ("x", "skip", "go on with the next step"),
    Offer.REPLACE_REST: ("p", "replace the rest", "say in words what to do instead of the remaining steps"),
    Offer.TAKE_SHELL: ("t", "take the shell", "work in the sandbox yourself, then hand it back"),
    Offer.ABORT: ("D", "give the goal up", "asks once more"),
}
QUESTION = "What should happen?"
WRITTEN: dict[Offer, str] = {
    Offer.GIVE_RESULT: "The result, as the agent should see it",
    Offer.REPLACE_REST: "What to do instead, as you would word a goal",
}
"""The offers that need a text, with what is asked for."""


@dataclass(frozen=True, slots=True)
class InterventionModel:
    """What the dialog shows."""

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

    idle: bool = False
    """Whether no goal is open, so that nothing can be done but to take the shell or to leave."""

    @property
    def asks(self) -> bool:
        """Whether the agent asks, and not the operator took the turn."""
        return bool(self.error_kind) or self.unsaved

    @property
    def offers(self) -> tuple[Offer, ...]:
        """What is offered at all."""
        if self.idle:
            return (Offer.TAKE_SHELL,)
        return tuple(offer for offer in OFFERS if self.unsaved or offer is not Offer.RUN_UNSAVED)


@dataclass(frozen=True, slots=True)
class InterventionChoice:
    """What the operator chose."""

    offer: Offer
    text: str = ""
    """The result, or the clauses of the new rest of the plan."""


class InterventionDialog(BoxDialog[InterventionChoice | None]):
    """Gives the operator's choice, or None: then the agent still waits in the background."""

    TITLE_TEXT, CLASSES = "Manual intervention", "-question"

    def __init__(self, model: InterventionModel, *, unasked: bool = False) -> None:
        super().__init__(unasked=unasked)
        self._model = model
        self._facts = FactsPane(_facts(model))
        self._offers = LinePane(title="Intervention", id="offers")
        self._question = Static(Content(QUESTION), id="line")
        self.hint = "esc leaves it open" if model.asks else "esc gives the turn back"
        self.parts = (self._facts, self._question, self._offers, self.line)

    def on_mount(self) -> None:
        """The offers have the focus."""
        letters = {OFFERS[offer][0]: offer.value for offer in self._model.offers}
        self._facts.letters = self._offers.letters = letters
        self._offers.styles.height = len(self._model.offers)
        self._offers.set_rows([self._row(offer) for offer in self._model.offers])
        self._offers.focus()

    def on_resize(self) -> None:
        """Give the facts the lines they need, as far as the offers leave room."""
        self.fit_text(self._facts, 6 + len(self._model.offers))

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

    @on(RowChosen)
    def _chosen(self, event: RowChosen) -> None:
        self.choose(Offer(event.key))

    def choose(self, offer: Offer) -> None:
        """Take an offer: ask for its text, ask again before aborting, refuse a disabled one and say why."""
        if reason := self._model.disabled.get(offer):
            self._tell(f"Not possible now: {clean_line(reason)}")
        elif offer is Offer.ABORT:
            question, about = "Give this goal up?", "It fails, and so does what it serves; nothing is undone."
            self.app.push_screen(ConfirmDialog(question, about, "give it up", "keep it"), self._sure)
        elif offer in WRITTEN:
            self._tell(f"{WRITTEN[offer]} — enter sends, esc goes back")
            self.write(offer, "")
        else:
            self.dismiss(InterventionChoice(offer))

    def _sure(self, sure: bool | None) -> None:
        if sure:
            self.dismiss(InterventionChoice(Offer.ABORT))

    def written(self, what: str, text: str) -> bool:
        """Give the offer with what is written."""
        if text:
            self.dismiss(InterventionChoice(Offer(what), clean(text)))
        else:
            self._tell("Nothing is written yet — enter sends, esc goes back")
        return False

    def action_close(self) -> None:
        """Go back from writing; else leave, and choose nothing."""
        if self.writing:
            self.stop_writing()
            self._tell(QUESTION)
            self._offers.focus()
        else:
            self.dismiss(None)

    def _tell(self, text: str) -> None:
        self._question.update(Content(text), layout=False)


def _facts(model: InterventionModel) -> tuple[Fact, ...]:
    facts = [Fact("goal", model.goal or "none is open", "strong"), Fact("step", model.step)]
    if model.error_kind or model.error:
        facts.append(
            Fact("error", " ".join(part for part in (model.error_kind, model.error) if part), "error")
        )
    if model.tried:
        facts.append(Fact("tried", "\n".join(clean_line(line) for line in model.tried)))
    return tuple(facts)


NOTE_LIMIT = 2_000
"""Characters of a note."""


@dataclass(frozen=True, slots=True)
class HandBack:
    """The operator is done with the shell, or only looks elsewhere while it stays open."""

    note: str = ""
    looks_elsewhere: bool = False


class HandBackDialog(BoxDialog[HandBack | None]):
    """Asks for a note; None means back to the shell. The key that opened it hands back at once."""

    TITLE_TEXT, HINT, CLASSES = "Hand the shell back", " ", "-question"

    def __init__(self) -> None:
        super().__init__()
        self._input = Input(placeholder="a note to the agent; may be empty", max_length=NOTE_LIMIT)
        self.parts = (self._input,)

    def on_mount(self) -> None:
        """The note can be typed at once."""
        self._input.focus()

    def on_input_submitted(self) -> None:
        """Hand back with what is written."""
        self.action_hand_back()

    def action_hand_back(self) -> None:
        """Hand back with what is written."""
        self.dismiss(HandBack(clean_line(self._input.value)))

    def action_look_elsewhere(self) -> None:
        """Keep the shell, and give the keys to the other panes."""
        self.dismiss(HandBack(looks_elsewhere=True))


CHANGE_LINES = 40
"""Lines that a change may take."""


@dataclass(frozen=True, slots=True)
class HandoverModel:
    """What is put to the operator."""

    changes: tuple[OfferedBelief, ...] = ()
    goes_on: str = ""
    """Where the shell ended, such as `./shop with .venv`; empty when the agent continues where it was."""
    stays: str = ""
    """Where the agent was."""


@dataclass(frozen=True, slots=True)
class HandoverDecision:
    """What the agent is to know."""

    accept: tuple[str, ...]
    """Keys of changes."""
    follow: bool = True
    """Whether the agent continues where the shell ended."""


class ChangeList(LinePane):
    """The changes, each with a mark; the last row says where the agent continues. A click marks a row."""

    def step(self, by: int) -> None:
        """Show the rest of a row before going to the next one."""
        if by == 1 and self.cursor_lines().stop > self.top + self.content_size.height:
            self.scroll_lines_to(self.top + 1)
        else:
            super().step(by)


class HandoverDialog(BoxDialog[HandoverDecision | None]):
    """Gives the decision, or None: then the hand-over stays open and the agent waits."""

    TITLE_TEXT, CLASSES = "What is the agent to know?", "-question"
    HINT = "esc leaves it open; the agent waits"

    def __init__(self, model: HandoverModel, *, unasked: bool = False) -> None:
        super().__init__(unasked=unasked)
        self._model = model
        self._marked = [True] * (len(model.changes) + bool(model.goes_on))
        self._list = ChangeList(title="Hand-over", marks=True, click_chooses=True)
        self.parts = (Static(Content("While you held the shell:"), classes="-label"), self._list)

    def on_mount(self) -> None:
        """The changes have the focus."""
        self._show()
        self._list.focus()

    def on_resize(self) -> None:
        """Give the changes the lines they need, as far as there is room for what stands around them."""
        lines = self._list.list.lines_at(max(8, min(100, self.size.width * 92 // 100) - 8))
        self._list.styles.height = max(1, min(lines, self.size.height * 96 // 100 - 6))

    def _show(self) -> None:
        """Rows go by number: a key may be anything, and the last row is no change."""
        model = self._model
        lines = [(change.text, change.key) for change in model.changes]
        if model.goes_on:
            lines.append((f"continues in {model.goes_on if self._marked[-1] else model.stays}", ""))
        self._list.set_rows(
            [
                _row(str(number), text, key, marked)
                for number, ((text, key), marked) in enumerate(zip(lines, self._marked, strict=True))
            ]
        )

    def action_switch(self) -> None:
        """Mark the row under the cursor, or take its mark away."""
        self._toggle(self._list.cursor)

    @on(RowChosen)
    def _clicked(self, event: RowChosen) -> None:
        self._toggle(event.key)

    def _toggle(self, row: str) -> None:
        if row:
            self._marked[int(row)] = not self._marked[int(row)]
            self._show()

    def action_mark(self, on: bool) -> None:
        """Mark all rows, or none."""
        self._marked = [on] * len(self._marked)
        self._show()

    def action_accept(self) -> None:
        """Tell the agent what is marked."""
        changes = self._model.changes
        accept = tuple(change.key for change, on in zip(changes, self._marked, strict=False) if on)
        self.dismiss(HandoverDecision(accept, follow=all(self._marked[len(changes) :])))


def _row(key: str, text: str, belief: str, marked: bool) -> Row:
    return Row(
        key,
        (Piece(clean_line(text), "text" if marked else "dim"),),
        tail=(Piece(clean_line(belief), "dim"),) if belief else (),
        indent=2,
        most=CHANGE_LINES,
        mark=Piece("✓", "success") if marked else Piece("–", "dim"),
    )
