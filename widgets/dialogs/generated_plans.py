"""Plans that a model made: what it was asked, what it answered, and whether the plans are installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static, TextArea

from engine.core.text import clean, clean_line
from engine.value import dataclass, field
from widgets.base.dialog import JUST_OPENED, BoxDialog, DialogKey, show_problems
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
class ProposedPlan:
    """A plan of the answer."""

    text: str
    """As AgentSpeak, or as it stood in the answer where it could not be read."""
    accepted: bool = True
    reasons: tuple[str, ...] = ()
    """Why it was refused, or what is to be noted."""


@dataclass(frozen=True, slots=True)
class GeneratedPlansModel:
    """What the operator is shown."""

    goal: str
    """The event that plans were asked for, such as `+!reach(home)`."""
    plans: tuple[ProposedPlan, ...] = ()
    model: str = ""
    attempt: int = 1
    attempts: int = 1
    problems: tuple[str, ...] = ()
    """What is wrong with the answer as a whole."""
    answer: str = ""
    system: str = ""
    """The system prompt."""
    user: str = ""
    """The user prompt."""
    facts: tuple[tuple[str, str], ...] = ()
    """Label and text, such as the cost."""
    disabled: Mapping[GeneratedPlansOffer, str] = field(default_factory=dict)
    """Offers that cannot be taken now, each with the reason."""


@dataclass(frozen=True, slots=True)
class GeneratedPlansChoice:
    """What the operator chose."""

    offer: GeneratedPlansOffer
    text: str = ""
    """The edited plans, what to do better, or why the plans are rejected."""


class GeneratedPlansDialog(BoxDialog[GeneratedPlansChoice | None]):
    """Gives the operator's choice, or None: then the plans wait in the background."""

    HINT = "esc leaves them waiting in the background"
    KEYS = (
        DialogKey("a", "offer('approve')", "install"),
        DialogKey("e", "offer('edit')", "edit"),
        DialogKey("r", "offer('ask_again')", "ask again"),
        DialogKey("d", "offer('reject')", "reject"),
        DialogKey("ctrl+s", "send", priority=True),
    )
    DEFAULT_CSS = """
    GeneratedPlansDialog > Vertical { height: 96%; }
    GeneratedPlansDialog #head { height: 1; color: $foreground-muted; }
    GeneratedPlansDialog TextArea { display: none; height: 1fr; min-height: 3; }
    GeneratedPlansDialog #problems { display: none; }
    GeneratedPlansDialog.-editing {
        & TextArea, & #problems { display: block; }
        & LongText, & .-keys { display: none; }
    }
    """

    def __init__(self, model: GeneratedPlansModel, check: PlansCheck, *, unasked: bool = False) -> None:
        super().__init__(unasked=unasked)
        self._model = model
        self._check = check
        self._warned = False
        self._text = LongText()
        self._question = Static(Content(QUESTION), id="line")
        self._before = "\n\n".join(escape_unprintable(plan.text).strip() for plan in model.plans)
        self._plans = TextArea(self._before, id="plans", show_line_numbers=True)
        self._problems = Static(id="problems", classes="-problems")

    def compose(self) -> ComposeResult:
        """Whence the plans are, all that there is to read, and what can be done."""
        head = Static(Content(_head(self._model)), id="head")
        parts = (head, self._text, self._plans, self._problems, self._question, self.line)
        title = f"Plans for {clean_line(self._model.goal, limit=180)}"
        yield self.box(*parts, title=title, classes="-question")

    def on_mount(self) -> None:
        """The plans are read first."""
        self._text.show(_sections(self._model))
        self._text.focus()

    @property
    def _editing(self) -> bool:
        return self.has_class("-editing")

    @property
    def _edited(self) -> bool:
        return self._plans.text != self._before

    def action_offer(self, name: str) -> None:
        """Take an offer: ask for what is written with it, refuse one that is not possible and say why."""
        offer = GeneratedPlansOffer(name)
        if self.writing or self._editing:
            return
        if self.unmeant:
            self._tell(JUST_OPENED)
        elif reason := self._refusal(offer):
            self._tell(f"Not possible now: {reason}")
        elif offer is GeneratedPlansOffer.APPROVE:
            self.dismiss(GeneratedPlansChoice(offer))
        elif offer is GeneratedPlansOffer.EDIT:
            self._warned = False
            self._tell("The plans as they will be installed — ctrl+s sends, esc goes back")
            self._changed()
            self.add_class("-editing")
            self._plans.focus()
        else:
            self._tell(f"{WRITTEN[offer]} — enter sends, esc goes back")
            self.write(offer, "")

    def _refusal(self, offer: GeneratedPlansOffer) -> str:
        """Why an offer cannot be taken; empty when it can."""
        if reason := self._model.disabled.get(offer):
            return clean_line(reason)
        if offer is GeneratedPlansOffer.APPROVE and self._edited:
            return "the plans were edited: e goes back to them, ctrl+s there sends them"
        if offer is GeneratedPlansOffer.APPROVE and not any(plan.accepted for plan in self._model.plans):
            return "no plan was accepted; edit the plans, ask again, or reject them"
        return ""

    def problems(self) -> list[str]:
        """What is wrong with the edited plans; empty when they can be sent."""
        text = self._plans.text
        return (
            self._check(text) if text.strip() else ["nothing is written: to go on without plans, reject them"]
        )

    @on(TextArea.Changed)
    def _changed(self) -> None:
        self._warned = False
        show_problems(self._problems, self.problems(), "can be installed")

    def action_send(self) -> None:
        """Send the edited plans, if nothing is wrong with them."""
        if self._editing and not self.problems():
            self.dismiss(GeneratedPlansChoice(GeneratedPlansOffer.EDIT, self._plans.text))

    def written(self, what: str, text: str) -> bool:
        """Send the words."""
        if not text and what == GeneratedPlansOffer.ASK_AGAIN:
            self._tell("Nothing is written yet — enter sends, esc goes back")
        else:
            self.dismiss(GeneratedPlansChoice(GeneratedPlansOffer(what), clean(text)))
        return False

    def action_close(self) -> None:
        """Go back from writing; else leave, and choose nothing. Only a second escape drops an edit."""
        if self.writing or self._editing:
            self.stop_writing()
            self.remove_class("-editing")
            self._tell("Your edit is kept, but not sent: e goes back to it." if self._edited else QUESTION)
            self._text.focus()
        elif self._edited and not self._warned:
            self._warned = True
            self._tell("esc again leaves and drops your edit; e goes back to it.")
        else:
            self.dismiss(None)

    def _tell(self, text: str) -> None:
        self._question.update(Content(text), layout=False)


def _head(model: GeneratedPlansModel) -> str:
    """Who made the plans, at which attempt, and at what cost."""
    made_by = clean_line(model.model, limit=60) or "model unknown"
    parts = [made_by, f"attempt {model.attempt} of {model.attempts}"]
    parts += [f"{clean_line(label, limit=20)} {clean_line(text, limit=40)}" for label, text in model.facts]
    return " · ".join(parts)


def _sections(model: GeneratedPlansModel) -> tuple[Section, ...]:
    """The plans with their verdicts, then the answer as it came, and what was asked."""
    sections = [Section(f"✗ {problem}", title_style="error") for problem in model.problems]
    for number, plan in enumerate(model.plans, 1):
        verdict, style = ("✓ accepted", "success") if plan.accepted else ("✗ refused", "error")
        sections.append(Section(f"{verdict}: plan {number}", plan.text, style, plan.reasons))
    sections += [] if sections else [Section("The answer holds no plans.", title_style="warning")]
    asked = (("The answer as it came", model.answer), ("System prompt", model.system), ("Prompt", model.user))
    return (*sections, *(Section(f"── {title} ──", text) for title, text in asked if text))
