"""Questions of agents that the operator answers: calls, servers that may start, and plans with an envelope.

Each says how far the answer reaches: an allowed call by a rule, an accepted plan by its envelope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static, TextArea

from engine.core.text import clean, clean_line
from engine.value import dataclass
from widgets.base.dialog import BoxDialog, DialogKey
from widgets.base.facts import LongText, Section
from widgets.base.text_layout import escape_unprintable

How = Literal["once", "session", "always", "deny", "edit"]


@dataclass(frozen=True, slots=True)
class ScopeView:
    """What a rule means for the questions at hand."""

    words: str = ""
    """What it allows, in words."""
    refused: tuple[str, ...] = ()
    """Questions that it does not cover, each with the reason."""
    error: str = ""
    """Why it cannot be read; empty when it can."""


ScopeOf = Callable[[str], ScopeView]
"""Takes a rule on a line."""


@dataclass(frozen=True, slots=True)
class ApprovalModel:
    """What the dialog shows."""

    title: str
    questions: tuple[Section, ...]
    """Agent, action and command of each, all arguments as they would be used, and why it is asked."""
    rule: str = ""
    """The narrowest rule that covers them."""
    editable: bool = False
    """Whether the arguments can be changed."""


@dataclass(frozen=True, slots=True)
class ApprovalChoice:
    """What the operator chose."""

    how: How
    rule: str = ""
    """The rule on a line; empty for once and one question."""
    reason: str = ""


_HOWS: dict[str, How] = {"once": "once", "session": "session", "always": "always"}
_ASKED: dict[str, str] = {
    "once": "Allow once whatever of these the rule covers — enter confirms, esc goes back",
    "session": "Until this session ends, unasked — enter confirms, esc goes back",
    "always": "From now on, unasked, until you revoke it — enter confirms, esc goes back",
    "deny": "Why not, as the agent is to see it (may be empty) — enter denies, esc goes back",
}

_NO_STEP = "It waits for your answer: a allows it once, and s, pressed again, until this session ends."


class ApprovalDialog(BoxDialog[ApprovalChoice | None]):
    """Gives an `ApprovalChoice`, or None: then the agents keep waiting."""

    HINT = "esc leaves it waiting"

    def __init__(
        self, model: ApprovalModel, scope_of: ScopeOf, *, begin: How | None = None, unasked: bool = False
    ) -> None:
        super().__init__(unasked=unasked)
        self._model = model
        self._scope_of = scope_of
        self._begin = begin
        self._steps = unasked
        """Whether `s` may be meant for the next step: it has not been said what it does here."""
        self._text = LongText()
        self._asked = Static(id="asked")
        self._scope = Static(id="scope")

    def compose(self) -> ComposeResult:
        """The questions, the answer with its scope, and the keys."""
        parts = (self._text, self._asked, self.line, self._scope)
        yield self.box(*parts, title=self._model.title, classes="-question")
        if self._model.editable:
            self.show_keys((*self.KEYS, DialogKey("e", "answer('edit')", "edit it")))

    def on_mount(self) -> None:
        """The questions are read first."""
        self._text.show(self._model.questions)
        self.stop_writing()
        if self._begin is None:
            self._text.focus()
        else:
            self.action_answer(self._begin)

    def on_resize(self) -> None:
        """Give the questions the lines they need, as far as there is room."""
        self.fit_text(self._text, 12, widest=121)

    def action_answer(self, how: How) -> None:
        """Allow once at once; ask for the scope or the reason of every other answer first."""
        if self.writing:
            return
        if how == "session" and self._steps:
            self._steps = False
            self._asked.update(Content(_NO_STEP))
        elif how == "edit" and not self._model.editable:
            self._asked.update(Content("The arguments of this cannot be changed here."))
        elif how == "edit" or (how == "once" and len(self._model.questions) == 1):
            self.dismiss(ApprovalChoice(how))
        else:
            self._write(how)

    def _write(self, how: How) -> None:
        self.set_class(how != "deny", "-granting")
        self._asked.update(Content(_ASKED[how]))
        self.write(how, "", "" if how == "deny" else escape_unprintable(self._model.rule))
        self._show_scope()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self._show_scope()

    def _show_scope(self) -> None:
        if self.writing in ("", "deny"):
            return
        view = self._scope_of(self.field.value)
        lines = [f"✗ {view.error}"] if view.error else [f"allows {view.words}"]
        lines += [f"✗ not covered: {line}" for line in view.refused]
        self._scope.update(Content("\n".join(clean_line(line, limit=600) for line in lines)))

    def written(self, what: str, text: str) -> bool:
        """Give the answer, where its rule covers what is asked."""
        value = clean(text).strip()
        if what == "deny":
            self.dismiss(ApprovalChoice("deny", reason=value))
            return False
        view = self._scope_of(value)
        # Of several questions those that are covered are answered; of one it has to be that one.
        if not view.error and len(view.refused) < len(self._model.questions):
            self.dismiss(ApprovalChoice(_HOWS[what], value))
        return False

    def stop_writing(self) -> None:
        """Go back to the choice."""
        super().stop_writing()
        self.remove_class("-granting")
        several = len(self._model.questions)
        self._asked.update(Content("May it?" if several == 1 else f"May these {several}?"))

    def action_close(self) -> None:
        """Go back from an answer; else leave it waiting."""
        if self._begin is not None:
            self.dismiss(None)
        else:
            super().action_close()


_WARNING = (
    "The file mcp.json of this workspace names it. Whoever wrote that file chose what is started here; "
    "allow only what you know."
)


class PermissionDialog(BoxDialog[bool]):
    """`y` allows it, `d` refuses it, escape leaves the question open.

    Enter does nothing, so that no habit agrees.

    Args:
        server: its name.
        facts: all of its entry, as labels and texts.
    """

    HINT, CLASSES = "nothing of it runs yet", "-question"

    def __init__(self, server: str, facts: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self.server, self.heading = server, f"May {clean_line(server, limit=40)} start?"
        text = LongText()
        text.show((Section(_WARNING, title_style="warning"), *(Section(*fact) for fact in facts)))
        self.parts = (text,)


EnvelopeCheck = Callable[[str], str]
"""Takes an envelope's parts, and says what is wrong with them; empty when nothing is."""


@dataclass(frozen=True, slots=True)
class PlanApprovalModel:
    """What the dialog shows."""

    title: str
    sections: tuple[Section, ...]
    """The steps, or what is added, removed and changed."""
    envelope: str
    """The proposed envelope, a part on a line."""
    replan: bool = False
    """Whether it is a re-plan, which can be rejected."""


@dataclass(frozen=True, slots=True)
class PlanApproval:
    """What the operator chose."""

    accepted: bool
    envelope: str = ""
    reason: str = ""


class PlanApprovalDialog(BoxDialog[PlanApproval | None]):
    """Gives a `PlanApproval`, or None: then the plan stays as it is."""

    HINT = "esc leaves it as it is"

    def __init__(
        self, model: PlanApprovalModel, check: EnvelopeCheck, *, rejects: bool = False, unasked: bool = False
    ) -> None:
        super().__init__(unasked=unasked)
        self._model = model
        self._check = check
        self._rejects = rejects
        self._text = LongText()
        self._area = TextArea(escape_unprintable(model.envelope), tab_behavior="focus")
        self._problems = Static(classes="-problems")

    def compose(self) -> ComposeResult:
        """The plan, the envelope, and the keys."""
        text = "unasked within this envelope (globs, | between them); outside of it you are asked"
        label = Static(Content(text), id="label", classes="-label")
        parts = (self._text, label, self._area, self.line, self._problems)
        yield self.box(*parts, title=self._model.title, classes="-question")
        if self._model.replan:
            self.show_keys((*self.KEYS, DialogKey("d", "reject", "reject …")))

    def on_mount(self) -> None:
        """The plan is read first."""
        self._text.show(self._model.sections)
        if self._rejects:
            self.action_reject()
        else:
            self._text.focus()

    @on(TextArea.Changed)
    def _changed(self) -> None:
        self._problems.update(Content(clean(self._check(self._area.text))))

    def action_accept(self) -> None:
        """Accept the plan within the envelope as it stands."""
        if self.writing:
            return
        if problem := self._check(self._area.text):
            self._problems.update(Content(clean(problem)))
        else:
            self.dismiss(PlanApproval(True, envelope=self._area.text))

    def action_edit(self) -> None:
        """Change the envelope."""
        self._area.focus()

    def action_reject(self) -> None:
        """Say why the re-plan is not wanted."""
        if self._model.replan:
            self.write("reason", "why not, as the thinker is to see it:")

    def written(self, what: str, text: str) -> bool:
        """Reject the re-plan with a reason, which may be empty."""
        self.dismiss(PlanApproval(False, reason=clean(text).strip()))
        return False

    def action_close(self) -> None:
        """Go back from the envelope or the reason; else leave the plan as it is."""
        if self._area.has_focus:
            self._text.focus()
        elif self._rejects:
            self.dismiss(None)
        else:
            super().action_close()
