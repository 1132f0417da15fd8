"""Plans that a model made: what it was asked, what it answered, and whether the plans are installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static, TextArea

from engine.core.text import clean, clean_line
from widgets.base.dialog import JUST_OPENED, BoxDialog, DialogKey, show_problems
from widgets.base.facts import LongText, Section
from widgets.base.pane_tabs import PaneTabs, TabLine, TabsModel
from widgets.base.text_layout import escape_unprintable

PlansCheck = Callable[[str], list[str]]
"""Takes plans as AgentSpeak text, and gives what is wrong with them, in sentences."""
EDIT_LIMIT = 50_000
"""Characters of plans that can be edited here."""
QUESTION = "What should happen with these plans?"


class Page(StrEnum):
    """What there is to read."""

    PLANS = "plans"
    ANSWER = "answer"
    PROMPT = "prompt"


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
        DialogKey("tab", "next_page", "plans, answer, prompt"),
        DialogKey("1", "page('plans')"),
        DialogKey("2", "page('answer')"),
        DialogKey("3", "page('prompt')"),
        DialogKey("ctrl+s", "send", priority=True),
    )
    DEFAULT_CSS = """
    GeneratedPlansDialog > Vertical { height: 96%; }
    GeneratedPlansDialog #head { height: 1; color: $foreground-muted; }
    GeneratedPlansDialog TextArea { display: none; }
    GeneratedPlansDialog #words { height: 6; }
    GeneratedPlansDialog #plans { height: 1fr; min-height: 3; }
    GeneratedPlansDialog #problems { display: none; }
    GeneratedPlansDialog.-writing #words { display: block; }
    GeneratedPlansDialog.-editing {
        & #plans, & #problems { display: block; }
        & LongText, & PaneTabs { display: none; }
    }
    GeneratedPlansDialog.-editing .-keys, GeneratedPlansDialog.-writing .-keys { display: none; }
    """

    def __init__(self, model: GeneratedPlansModel, check: PlansCheck, *, unasked: bool = False) -> None:
        super().__init__(unasked=unasked)
        self._model = model
        self._check = check
        self._writing: GeneratedPlansOffer | None = None
        self._warned = False
        self._page = Page.PLANS
        self._text = LongText()
        self._tabs = PaneTabs()
        self._line = Static(Content(QUESTION), id="line")
        self._words = TextArea(id="words", tab_behavior="focus")
        self._before = "\n\n".join(escape_unprintable(plan.text).strip() for plan in model.plans)
        self._plans = TextArea(id="plans", show_line_numbers=True)
        self._draft = ""
        """The edited plans; empty while they are as the model made them."""
        self._problems = Static(id="problems", classes="-problems")

    def compose(self) -> ComposeResult:
        """Whence the plans are, what there is to read, and what can be done."""
        head = Static(Content(_head(self._model)), id="head")
        reading = (head, self._tabs, self._text)
        parts = (*reading, self._plans, self._problems, self._line, self._words)
        title = f"Plans for {clean_line(self._model.goal, limit=180)}"
        yield self.box(*parts, title=title, classes="-question")

    def on_mount(self) -> None:
        """The plans are read first."""
        self.action_page(Page.PLANS)

    # Reading

    def action_page(self, name: str) -> None:
        """Show the plans, the answer or the prompt."""
        if self._writing is GeneratedPlansOffer.EDIT:
            return
        self._page = Page(name)
        self._text.show(_sections(self._model, self._page))
        self._tabs.show(TabsModel(_tabs(self._model), name))
        if self._writing is None:
            self._text.focus()

    def action_next_page(self) -> None:
        """Show the next of them; while words are written, go between them and the text."""
        if self._writing is None:
            pages = tuple(Page)
            self.action_page(pages[(pages.index(self._page) + 1) % len(pages)])
        else:
            self.focus_next()

    def on_pane_tabs_tab_chosen(self, event: PaneTabs.TabChosen) -> None:
        """A tab was clicked."""
        event.stop()
        self.action_page(event.tab_id)

    # Choosing

    def action_offer(self, name: str) -> None:
        """Take an offer: ask for what is written with it, refuse one that is not possible and say why."""
        offer = GeneratedPlansOffer(name)
        if self._writing is not None:
            return
        if self.unmeant:
            self._tell(JUST_OPENED)
        elif reason := self._refusal(offer):
            self._tell(f"Not possible now: {reason}")
        elif offer is GeneratedPlansOffer.APPROVE:
            self.dismiss(GeneratedPlansChoice(offer))
        elif offer is GeneratedPlansOffer.EDIT:
            self._edit()
        else:
            self._writing = offer
            self._tell(f"{WRITTEN[offer]} — ctrl+s sends, esc goes back")
            self.add_class("-writing")
            self._words.focus()

    def _refusal(self, offer: GeneratedPlansOffer) -> str:
        """Why an offer cannot be taken; empty when it can."""
        if reason := self._model.disabled.get(offer):
            return clean_line(reason)
        if offer is GeneratedPlansOffer.APPROVE:
            if self._draft:
                return "the plans were edited: e goes back to them, ctrl+s there sends them"
            if not any(plan.accepted for plan in self._model.plans):
                return "no plan was accepted; edit the plans, ask again, or reject them"
        if offer is GeneratedPlansOffer.EDIT and len(self._before) > EDIT_LIMIT:
            return f"{len(self._before):,} characters are too many to edit here ({EDIT_LIMIT:,} at most)"
        return ""

    def _edit(self) -> None:
        self._writing = GeneratedPlansOffer.EDIT
        self._warned = False
        self._plans.text = self._draft or self._before
        self._tell("The plans as they will be installed — ctrl+s sends, esc goes back")
        self._show_problems(self.problems())
        self.add_class("-editing")
        self._plans.focus()

    def problems(self) -> list[str]:
        """What is wrong with the edited plans; empty when they can be sent."""
        text = self._plans.text
        if not text.strip():
            return ["nothing is written: to go on without plans, reject them"]
        if len(text) > EDIT_LIMIT:
            return [f"{len(text):,} characters are too many ({EDIT_LIMIT:,} at most)"]
        return self._check(text)

    @on(TextArea.Changed, "#plans")
    def _changed(self) -> None:
        if self._writing is GeneratedPlansOffer.EDIT:
            text = self._plans.text
            self._draft = "" if text == self._before else text
            self._warned = False
            self._show_problems(self.problems())

    def _show_problems(self, problems: list[str]) -> None:
        show_problems(self._problems, problems, "can be installed")

    def action_send(self) -> None:
        """Send what is written, if nothing is wrong with it."""
        if self._writing is GeneratedPlansOffer.EDIT:
            if problems := self.problems():
                self._show_problems(problems)
            else:
                self.dismiss(GeneratedPlansChoice(self._writing, self._plans.text))
        elif self._writing is not None:
            text = clean(self._words.text).strip()
            if not text and self._writing is GeneratedPlansOffer.ASK_AGAIN:
                self._tell("Nothing is written yet — ctrl+s sends, esc goes back")
            else:
                self.dismiss(GeneratedPlansChoice(self._writing, text))

    def action_close(self) -> None:
        """Go back from writing; else leave, and choose nothing. Only a second escape drops an edit."""
        if self._writing is not None:
            self._writing = None
            self.remove_class("-writing", "-editing")
            self._tell("Your edit is kept, but not sent: e goes back to it." if self._draft else QUESTION)
            self._text.focus()
        elif self._draft and not self._warned:
            self._warned = True
            self._tell("esc again leaves and drops your edit; e goes back to it.")
        else:
            self.dismiss(None)

    def _tell(self, text: str) -> None:
        self._line.update(Content(text), layout=False)


def _head(model: GeneratedPlansModel) -> str:
    """Who made the plans, at which attempt, and at what cost."""
    made_by = clean_line(model.model, limit=60) or "model unknown"
    parts = [made_by, f"attempt {model.attempt} of {model.attempts}"]
    parts += [f"{clean_line(label, limit=20)} {clean_line(text, limit=40)}" for label, text in model.facts]
    return " · ".join(parts)


def _tabs(model: GeneratedPlansModel) -> tuple[TabLine, ...]:
    refused = sum(not plan.accepted for plan in model.plans) + bool(model.problems)
    return (
        TabLine(Page.PLANS, "1 plans", f"✗{refused}" if refused else ""),
        TabLine(Page.ANSWER, "2 answer"),
        TabLine(Page.PROMPT, "3 prompt"),
    )


def _sections(model: GeneratedPlansModel, page: Page) -> tuple[Section, ...]:
    if page is Page.ANSWER:
        return (Section("The answer as it came", model.answer or "(empty)"),)
    if page is Page.PROMPT:
        return (
            Section("System", model.system or "(none)"),
            Section("User", model.user or "(none)"),
        )
    sections = [Section(f"✗ {problem}", title_style="error") for problem in model.problems]
    for number, plan in enumerate(model.plans, 1):
        verdict, style = ("✓ accepted", "success") if plan.accepted else ("✗ refused", "error")
        sections.append(Section(f"{verdict}: plan {number}", plan.text, style, plan.reasons))
    return tuple(sections) or (Section("The answer holds no plans.", title_style="warning"),)
