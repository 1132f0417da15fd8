"""May it? One question of an agent's, or several of one shape, and how far the answer reaches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from engine.domain.text import clean, clean_line
from widgets.dialogs.box import BoxDialog
from widgets.dialogs.long_text import LongText, Section, shown

How = Literal["once", "session", "always", "deny", "edit"]
RULE_LIMIT = 2_000


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
class AskedCall:
    """One question."""

    title: str
    """Agent, action and command."""
    text: str
    """All arguments, as they would be used."""
    notes: tuple[str, ...] = ()
    """Why it is asked, whether it can be undone, since when."""


@dataclass(frozen=True, slots=True)
class ApprovalModel:
    """What the dialog shows."""

    title: str
    questions: tuple[AskedCall, ...]
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


_ASKED: dict[str, str] = {
    "once": "Allow once whatever of these the rule covers — enter confirms, esc goes back",
    "session": "Until this session ends, unasked — enter confirms, esc goes back",
    "always": "From now on, unasked, until you revoke it — enter confirms, esc goes back",
    "deny": "Why not, as the agent is to see it (may be empty) — enter denies, esc goes back",
}


class ApprovalDialog(BoxDialog[ApprovalChoice | None]):
    """Gives an `ApprovalChoice`, or None: then the agents go on waiting."""

    DEFAULT_CSS = """
    ApprovalDialog > Vertical { border: round $warning; max-width: 120; height: auto; }
    ApprovalDialog LongText { height: auto; max-height: 60vh; min-height: 3; }
    ApprovalDialog #asked { height: auto; color: $text-warning; }
    ApprovalDialog #scope { display: none; height: auto; max-height: 6; }
    ApprovalDialog Input { display: none; }
    ApprovalDialog.-answering Input { display: block; }
    ApprovalDialog.-granting #scope { display: block; }
    ApprovalDialog.-answering .-keys { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "answer('once')", "Allow once", id="approval.once"),
        Binding("s", "answer('session')", "Allow for this session", id="approval.session"),
        Binding("A", "answer('always')", "Allow always", id="approval.always"),
        Binding("d", "answer('deny')", "Deny", id="approval.deny"),
        Binding("e", "answer('edit')", "Change the arguments", id="approval.edit"),
    ]

    def __init__(
        self, model: ApprovalModel, scope_of: ScopeOf, *, begin: How | None = None, unasked: bool = False
    ) -> None:
        super().__init__(unasked=unasked)
        self._model = model
        self._scope_of = scope_of
        self._begin = begin
        self._how: How | None = None
        self._text = LongText()
        self._asked = Static(id="asked")
        self._scope = Static(id="scope")
        self._input = Input(max_length=RULE_LIMIT)

    @property
    def how(self) -> How | None:
        """The answer that is being written; None while it is chosen."""
        return self._how

    def compose(self) -> ComposeResult:
        """The questions, the answer with its scope, and the keys."""
        edit = "   [@click=screen.answer('edit')][bold]e[/] edit it[/]" if self._model.editable else ""
        with Vertical() as box:
            box.border_title = Content(clean_line(self._model.title, limit=200))
            box.border_subtitle = "esc leaves it waiting"
            yield self._text
            yield self._asked
            yield self._input
            yield self._scope
            yield Static(
                Content.from_markup(
                    "[@click=screen.answer('once')][bold]a[/] allow once[/]   "
                    "[@click=screen.answer('session')][bold]s[/] this session …[/]   "
                    "[@click=screen.answer('always')][bold]A[/] always …[/]   "
                    "[@click=screen.answer('deny')][bold]d[/] deny …[/]" + edit
                ),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """The questions are read first."""
        self._text.show(tuple(Section(one.title, one.text, notes=one.notes) for one in self._model.questions))
        self._choose_again()
        if self._begin is not None:
            self.action_answer(self._begin)

    def on_resize(self) -> None:
        """Give the questions the lines they need, as far as there is room."""
        width = max(8, min(120, self.size.width * 92 // 100) - 6)
        self._text.styles.height = max(3, min(len(self._text.lines_for(width)), self.size.height - 12))

    def action_answer(self, how: How) -> None:
        """Allow once at once; ask for the scope or the reason of every other answer first."""
        if self._how is not None:
            return
        if self.unmeant:
            self._asked.update(Content("This has just opened; press the key again if you meant it."))
        elif how == "edit" and not self._model.editable:
            self._asked.update(Content("The arguments of this cannot be changed here."))
        elif how == "edit" or (how == "once" and len(self._model.questions) == 1):
            self.dismiss(ApprovalChoice(how))
        else:
            self._write(how)

    def _write(self, how: How) -> None:
        self._how = how
        self._input.value = "" if how == "deny" else shown(self._model.rule)
        self.set_class(True, "-answering")
        self.set_class(how != "deny", "-granting")
        self._asked.update(Content(_ASKED[how]))
        self._show_scope()
        self._input.focus()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self._show_scope()

    def _show_scope(self) -> None:
        if self._how in (None, "deny"):
            return
        view = self._scope_of(self._input.value)
        lines = [f"✗ {view.error}"] if view.error else [f"allows {view.words}"]
        lines += [f"✗ not covered: {line}" for line in view.refused]
        self._scope.update(Content("\n".join(clean_line(line, limit=600) for line in lines)))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        how, value = self._how, clean(event.value).strip()
        if how is None:
            return
        if how == "deny":
            self.dismiss(ApprovalChoice(how, reason=value))
            return
        view = self._scope_of(value)
        # Of several questions those that are covered are answered; of one it has to be that one.
        if not view.error and len(view.refused) < len(self._model.questions):
            self.dismiss(ApprovalChoice(how, value))

    def _choose_again(self) -> None:
        self._how = None
        self.remove_class("-answering", "-granting")
        several = len(self._model.questions)
        self._asked.update(Content("May it?" if several == 1 else f"May these {several}?"))
        self._text.focus()

    def action_close(self) -> None:
        """Go back from an answer; else leave it waiting."""
        if self._how is not None and self._begin is None:
            self._choose_again()
        else:
            self.dismiss(None)
