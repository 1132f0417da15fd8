"""The plan: its steps, and one of them in detail."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, Self

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from engine.core.text import clean, clean_line
from engine.value import dataclass, field
from widgets.base.facts import FactsPane
from widgets.base.line_pane import LinePane, Notice, Requested, RowChosen, RowHighlighted
from widgets.base.pane_words import Described
from widgets.base.rows import Row
from widgets.base.text_layout import Piece, Pieces, labelled, source_pieces, wrap

StepMark = Literal["planned", "next", "running", "completed", "failed", "skipped", "forced", "unknown"]

STEP_MARKS: dict[str, tuple[str, str]] = {
    "planned": ("·", "dim"),
    "next": ("▷", "accent"),
    "running": ("▶", "accent"),
    "completed": ("✓", "success"),
    "failed": ("✗", "error"),
    "skipped": ("»", "dim"),
    "forced": ("✎", "warning"),
    "unknown": ("!", "warning"),
}
STEP_WORDS = {"unknown": "outcome unknown", "forced": "result by hand"}
ON_PLAN = "on plan"
"""A step of the plan that the operator accepted, as they accepted it."""
FOLD = 12
"""Lines of one argument shown before the rest is folded."""
_NAMED = re.compile(r"s\d+")
"""Ids that a line of the command bar takes."""


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step as the pane shows it."""

    id: str
    text: str
    """What it does, in a line: `run pip install httpx`."""
    status: StepMark = "planned"
    breakpoint: bool = False
    held: bool = False
    """True while the gate holds it for the operator."""
    tool: str = ""
    command: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    corrected: tuple[str, ...] = ()
    """What of the arguments was changed and why, a sentence each."""
    thinker: str = ""
    """Who proposed it: `operator` or a thinker's name."""
    recipe: str = ""
    clause: str = ""
    """The clause of the goal's text it serves."""
    clause_index: int = 0
    """From 1; 0 when it serves none."""
    attempts: int = 0
    given_up: bool = False
    """Whether the agent goes on without it, although it was tried."""
    course: str = ""
    """How it stands to the accepted plan, such as `off plan`; empty where none was accepted."""
    summary: str = ""
    error: str = ""
    depends_on: tuple[str, ...] = ()
    group: str = ""
    source: bool = False
    """Whether the text is a step of an AgentSpeak(L) program."""
    waits: str = ""
    """What it waits for, which is shown instead of its status."""


@dataclass(frozen=True, slots=True)
class PlanModel:
    """What the pane shows."""

    steps: tuple[StepLine, ...] = ()
    goal: str = ""
    revision: int = 0
    notice: Notice | None = None


class StepList(LinePane):
    """The steps of a plan, one a line."""

    BINDING_GROUP_TITLE = "Plan"
    LOADS = MARKS = True
    EMPTY = (
        "The plan will appear here. Press : and type a goal, then s steps through its plan, space runs it."
    )


class StepDetail(FactsPane):
    """One step with its tool, arguments, provenance and outcome."""

    BINDING_GROUP_TITLE = "Step"
    EMPTY = "The selected step's tool, arguments and result will appear here."
    BORDER_TITLE = "step"

    _step: StepLine | None = None

    def show(self, step: StepLine | None) -> None:
        """Show this step, or nothing."""
        other = step is None or self._step is None or step.id != self._step.id
        self._step = step
        self.show_text(step, partial(detail_lines, step) if step else lambda _width: (), from_start=other)


class PlanPane(Described, Vertical):
    """The steps above, the selected one in detail below."""

    BORDER_TITLE = "2 Plan"
    BINDING_GROUP_TITLE = "Plan"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._model = PlanModel()
        self.steps = StepList()
        """The list of steps."""
        self.detail = StepDetail(classes="-empty")
        """The selected step in detail."""

    def compose(self) -> ComposeResult:
        """The list and the detail."""
        yield self.steps
        yield self.detail

    @property
    def looks_elsewhere(self) -> bool:
        """Whether another step is selected than the one that would run next."""
        return self.selected not in ("", _pending(self._model))

    @property
    def selected(self) -> str:
        """Id of the selected step, or the empty string."""
        return self.steps.cursor

    def focus(self, scroll_visible: bool = True, from_app_focus: bool = False) -> Self:
        """Focus the list, which is what the pane's number key means."""
        self.steps.focus(scroll_visible)
        return self

    def show(self, model: PlanModel) -> None:
        """Show this model."""
        self.steps.loaded()
        if model == self._model:
            return
        followed = _pending(self._model)
        head = (model.revision, len(model.steps)) != (self._model.revision, len(self._model.steps))
        before, self._model = self._model, model
        self.steps.set_notice(model.notice)
        # A step that was next and is behind another of before was moved; it keeps the cursor and may go
        # further. In the same order the plan has begun anew, as a reasoner's does.
        moved = (_status(before, followed), _status(model, followed)) == ("next", "planned")
        moved = moved and _order(before) != _order(model) and bool(_status(before, _pending(model)))
        follow = not self.steps.cursor or (self.steps.cursor == followed and not moved)
        cells = max((len(step.id) for step in model.steps if _NAMED.fullmatch(step.id)), default=0)
        self.steps.set_rows([_row(step, cells) for step in model.steps])
        if follow and (pending := _pending(model)):
            self.steps.move_cursor(pending)
        self.detail.set_class(not model.steps, "-empty")
        self._show_detail()
        if head:
            self.border_subtitle = Content(f"revision {model.revision}") if model.revision > 1 else None

    def select(self, step_id: str) -> None:
        """Put the cursor on a step, as when another pane points at it."""
        self.steps.move_cursor(step_id)
        self._show_detail()

    def action_toggle_detail(self) -> None:
        """Show or hide the detail."""
        self.detail.display = not self.detail.display

    @on(RowChosen)
    def _edit(self) -> None:
        self.post_message(Requested("PlanPane", "edit"))

    @on(RowHighlighted)
    def _show_detail(self) -> None:
        self.detail.show(next((step for step in self._model.steps if step.id == self.steps.cursor), None))


def _pending(model: PlanModel) -> str:
    """The step that runs or would run next; the cursor follows it until the operator moves it."""
    open_ = ("next", "running", "failed", "unknown")
    return next((step.id for step in model.steps if step.status in open_ and not step.given_up), "")


def _order(model: PlanModel) -> list[str]:
    return [step.id for step in model.steps]


def _status(model: PlanModel, step_id: str) -> str:
    return next((step.status for step in model.steps if step.id == step_id), "")


def _row(step: StepLine, cells: int) -> Row:
    """A step; its id takes so many cells, so that all texts begin below each other."""
    glyph, style = STEP_MARKS[step.status]
    text = clean_line(step.text)
    emphasis = {"running": "strong", "next": "strong", "completed": "text", "skipped": "dim"}.get(
        step.status, "text"
    )
    tail: list[Piece] = []
    if step.held:
        tail.append(Piece("held ", "warning"))
    if step.breakpoint:
        tail.append(Piece("● break ", "error"))
    if step.course and step.course != ON_PLAN:
        tail.append(Piece(f"{step.course} ", "warning"))
    if step.waits:
        tail.append(Piece(step.waits, "warning"))
    elif step.status in ("failed", "skipped", "forced", "unknown", "running", "next"):
        tail.append(Piece(STEP_WORDS.get(step.status, step.status), style))
    elif step.clause_index:
        tail.append(Piece(f"§{step.clause_index}", "dim"))
    named = (Piece(f"{step.id:<{cells}} ", "dim"),) if _NAMED.fullmatch(step.id) else ()
    words = source_pieces(text, emphasis) if step.source else (Piece(text, emphasis),)
    return Row(step.id, (*named, *words), tail=tuple(tail), mark=Piece(glyph, style), copy=text)


def detail_lines(step: StepLine, width: int) -> tuple[Pieces, ...]:
    """A step in detail, as lines of at most `width` cells; long argument values are folded after 12 lines."""
    word = STEP_WORDS.get(step.status, step.status)
    glyph, style = STEP_MARKS[step.status]
    called = ".".join(part for part in (clean_line(step.tool), clean_line(step.command)) if part)
    lines = [*labelled("step", clean_line(step.text), width, style="strong")]
    lines += labelled(
        "status",
        f"{glyph} {step.waits or word}" + (", held for you" if step.held else ""),
        width,
        style=style,
    )
    lines += labelled("course", step.course, width, style="text" if step.course == ON_PLAN else "warning")
    lines += labelled("tool", called, width, style="accent")
    for name, value in step.args.items():
        lines += _argument(clean_line(str(name)), value, width)
    for correction in step.corrected:
        words = (Piece("  corrected: ", "dim"), Piece(clean_line(correction), "warning"))
        lines += wrap(words, width, indent=4, most=FOLD)
    lines += labelled("clause", _clause(step), width)
    lines += labelled(
        "from", " ".join(clean_line(part) for part in (step.thinker, step.recipe) if part), width
    )
    lines += labelled("after", ", ".join(clean_line(each) for each in step.depends_on), width)
    lines += labelled("group", clean_line(step.group), width)
    lines += labelled("attempts", str(step.attempts) if step.attempts else "", width)
    lines += labelled(
        "result", clean_line(step.summary), width, style="success" if step.status == "completed" else "text"
    )
    lines += labelled("error", clean_line(step.error), width, style="error")
    return tuple(lines)


def _clause(step: StepLine) -> str:
    clause = clean_line(step.clause)
    return f"§{step.clause_index} {clause}" if clause and step.clause_index else clause


def _argument(name: str, value: object, width: int) -> tuple[Pieces, ...]:
    """An argument; one that is a long text or a structure is laid out below its name."""
    text = clean(
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)
    )
    rows = text.strip("\n").split("\n")
    label = f"  {name} "
    if len(rows) == 1:
        return wrap((Piece(label, "dim"), Piece(text)), width, indent=4, most=FOLD)
    lines: list[Pieces] = [(Piece(label, "dim"), Piece(f"{len(rows)} lines", "dim"))]
    lines += [(Piece("    "), Piece(row)) for row in rows[:FOLD]]
    if len(rows) > FOLD:
        lines.append((Piece(f"    … {len(rows) - FOLD} more lines; e shows them all", "dim"),))
    return tuple(lines)
