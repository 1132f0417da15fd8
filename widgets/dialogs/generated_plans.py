"""Plans that a model made: what it was asked, what it answered, and whether the plans are installed."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from textual.content import Content
from textual.widgets import Static

from engine.core.reasoner import Generation
from engine.core.text import clean, clean_line
from engine.value import dataclass
from widgets.base.dialog import BoxDialog, WriteDialog
from widgets.base.facts import LongText, Section
from widgets.base.text_layout import escape_unprintable

PlansCheck = Callable[[str], list[str]]
"""Takes plans as AgentSpeak text, and gives what is wrong with them, in sentences."""
QUESTION = "What should happen with these plans?"


class GeneratedPlansOffer(StrEnum):
    """What the operator can do."""

    APPROVE = "approve"
    EDIT = "edit"
    ASK_AGAIN = "ask_again"
    REJECT = "reject"


WRITTEN: dict[GeneratedPlansOffer, str] = {
    GeneratedPlansOffer.ASK_AGAIN: "What the model is to do better",
    GeneratedPlansOffer.REJECT: "Why not, as the agent should see it; it may be empty",
}
"""The offers that come with words, and what is asked for."""


@dataclass(frozen=True, slots=True)
class GeneratedPlansChoice:
    """What the operator chose."""

    offer: GeneratedPlansOffer
    text: str = ""
    """The edited plans, what to do better, or why the plans are rejected."""


class GeneratedPlansDialog(BoxDialog[GeneratedPlansChoice | None]):
    """Gives the operator's choice, or None: then the plans wait in the background."""

    HINT, CLASSES = "esc leaves them waiting in the background", "-question"

    def __init__(
        self, generation: Generation, attempts: int, check: PlansCheck, *, unasked: bool = False
    ) -> None:
        super().__init__(unasked=unasked)
        self._generation, self._check = generation, check
        self._text = LongText()
        self._question = Static(Content(QUESTION), id="line")
        self.heading = f"Plans for {clean_line(generation.goal, limit=180)}"
        head = Static(Content(_head(generation, attempts)), id="head")
        self.parts = (head, self._text, self._question, self.line)

    def on_mount(self) -> None:
        """The plans are read first."""
        self._text.show(_sections(self._generation))
        self._text.focus()

    def action_offer(self, name: str) -> None:
        """Take an offer: ask for what is written with it, refuse one that is not possible and say why."""
        offer = GeneratedPlansOffer(name)
        if self.writing:
            return
        if reason := self._refusal(offer):
            self._tell(f"Not possible now: {reason}")
        elif offer is GeneratedPlansOffer.APPROVE:
            self.dismiss(GeneratedPlansChoice(offer))
        elif offer is GeneratedPlansOffer.EDIT:
            before = "\n\n".join(escape_unprintable(plan.text).strip() for plan in self._generation.plans)
            about = "The plans as they will be installed; to go on without plans, reject them."
            self.app.push_screen(WriteDialog("Edit the plans", about, before, self._check), self._edited)
        else:
            self._tell(f"{WRITTEN[offer]} — enter sends, esc goes back")
            self.write(offer, "")

    def _refusal(self, offer: GeneratedPlansOffer) -> str:
        """Why an offer cannot be taken; empty when it can."""
        if offer is GeneratedPlansOffer.APPROVE and not any(plan.accepted for plan in self._generation.plans):
            return "no plan was accepted; edit the plans, ask again, or reject them"
        return ""

    def _edited(self, text: str | None) -> None:
        if text:
            self.dismiss(GeneratedPlansChoice(GeneratedPlansOffer.EDIT, text))

    def written(self, what: str, text: str) -> bool:
        """Send the words."""
        if not text and what == GeneratedPlansOffer.ASK_AGAIN:
            self._tell("Nothing is written yet — enter sends, esc goes back")
        else:
            self.dismiss(GeneratedPlansChoice(GeneratedPlansOffer(what), clean(text)))
        return False

    def action_close(self) -> None:
        """Go back from writing; else leave, and choose nothing."""
        if self.writing:
            self.stop_writing()
            self._tell(QUESTION)
        else:
            self.dismiss(None)

    def _tell(self, text: str) -> None:
        self._question.update(Content(text), layout=False)


def _head(made: Generation, attempts: int) -> str:
    """Who made the plans, at which attempt, and at what cost."""
    made_by = clean_line(made.model, limit=60) or "model unknown"
    took = f"took {made.duration_ms / 1000:.1f} s · tokens {made.tokens} · {made.trigger}"
    return f"{made_by} · attempt {made.attempt} of {attempts} · {took}"


def _sections(made: Generation) -> tuple[Section, ...]:
    """The plans with their verdicts, then the answer as it came, and what was asked."""
    problems = filter(None, (made.reason, *made.problems))
    sections = [Section(f"✗ {problem}", title_style="error") for problem in problems]
    for number, plan in enumerate(made.plans, 1):
        verdict, style = ("✓ accepted", "success") if plan.accepted else ("✗ refused", "error")
        sections.append(Section(f"{verdict}: plan {number}", plan.text, style, plan.reasons))
    sections += [] if sections else [Section("The answer holds no plans.", title_style="warning")]
    asked = (("The answer as it came", made.answer), ("System prompt", made.system), ("Prompt", made.prompt))
    return (*sections, *(Section(f"── {title} ──", text) for title, text in asked if text))
