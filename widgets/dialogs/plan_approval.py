"""Accepting a plan with an envelope, or a re-plan as its difference from the accepted one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static, TextArea

from engine.domain.text import clean, clean_line
from widgets.dialogs.box import BoxDialog
from widgets.dialogs.long_text import LongText, Section, shown

EnvelopeCheck = Callable[[str], str]
"""Takes an envelope's parts, and says what is wrong with them; empty when nothing is."""


@dataclass(frozen=True, slots=True)
class PlanApprovalModel:
    """What the dialog shows."""

    title: str
    sections: tuple[tuple[str, str], ...]
    """Title and text: the steps, or what is added, removed and changed."""
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

    DEFAULT_CSS = """
    PlanApprovalDialog > Vertical { height: 96%; max-width: 120; border: round $warning; }
    PlanApprovalDialog TextArea { height: 9; }
    PlanApprovalDialog Input { display: none; }
    PlanApprovalDialog.-rejecting Input { display: block; }
    PlanApprovalDialog.-rejecting TextArea, PlanApprovalDialog.-rejecting #label { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "accept", "Accept", id="plan-approval.accept"),
        Binding("ctrl+s", "accept", "Accept", priority=True, id="plan-approval.save"),
        Binding("e", "edit", "Change the envelope", id="plan-approval.edit"),
        Binding("d", "reject", "Reject the re-plan", id="plan-approval.reject"),
    ]

    def __init__(
        self,
        model: PlanApprovalModel,
        check: EnvelopeCheck,
        *,
        rejects: bool = False,
        unasked: bool = False,
    ) -> None:
        super().__init__(unasked=unasked)
        self._model = model
        self._check = check
        self._rejects = rejects
        self._text = LongText()
        self._area = TextArea(shown(model.envelope), tab_behavior="focus")
        self._input = Input(placeholder="why not, as the thinker is to see it", max_length=2_000)
        self._problems = Static(classes="-problems")

    def compose(self) -> ComposeResult:
        """The plan, the envelope, and the keys."""
        reject = "   [@click=screen.reject][bold]d[/] reject …[/]" if self._model.replan else ""
        with Vertical() as box:
            box.border_title = Content(clean_line(self._model.title, limit=200))
            box.border_subtitle = "esc leaves it as it is"
            yield self._text
            yield Static(
                Content("unasked within this envelope (globs, | between them); outside of it you are asked"),
                id="label",
                classes="-label",
            )
            yield self._area
            yield self._input
            yield self._problems
            yield Static(
                Content.from_markup(
                    "[@click=screen.accept][bold]a[/] accept[/]   "
                    "[@click=screen.edit][bold]e[/] change the envelope[/] (ctrl+s accepts)" + reject
                ),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """The plan is read first."""
        self._text.show(tuple(Section(title, text) for title, text in self._model.sections))
        self._text.focus()
        if self._rejects:
            self.action_reject()

    @on(TextArea.Changed)
    def _changed(self) -> None:
        self._problems.update(Content(clean(self._check(self._area.text))))

    def action_accept(self) -> None:
        """Accept the plan within the envelope as it stands."""
        if self.unmeant:
            self._problems.update(Content("This has just opened; press the key again if you meant it."))
        elif self.has_class("-rejecting"):
            return
        elif problem := self._check(self._area.text):
            self._problems.update(Content(clean(problem)))
        else:
            self.dismiss(PlanApproval(True, envelope=self._area.text))

    def action_edit(self) -> None:
        """Change the envelope."""
        self._area.focus()

    def action_reject(self) -> None:
        """Say why the re-plan is not wanted."""
        if self._model.replan:
            self.set_class(True, "-rejecting")
            self._input.focus()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(PlanApproval(False, reason=clean(event.value).strip()))

    def action_close(self) -> None:
        """Go back from the envelope or the reason; else leave the plan as it is."""
        if self.has_class("-rejecting") and not self._rejects:
            self.remove_class("-rejecting")
            self._text.focus()
        elif self._area.has_focus:
            self._text.focus()
        else:
            self.dismiss(None)
