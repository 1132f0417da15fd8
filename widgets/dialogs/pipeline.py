"""A pipeline and a build of an agent: phases with their checks, what each gave, and how it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.widgets import Input, Static, TextArea

from engine.core.text import clean, clean_line
from engine.value import dataclass
from widgets.base.choices import ChoiceList
from widgets.base.dialog import BoxDialog, DialogKey
from widgets.base.facts import FactsPane, LongText, Section
from widgets.base.line_pane import LinePane, RowChosen, RowHighlighted
from widgets.base.rows import Row
from widgets.base.text_layout import Piece, Pieces, wrap

CHECK = " check "


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One criterion of a checkpoint."""

    mark: str
    """✓, ✗, or · where nothing could be said."""
    style: str
    what: str
    measured: str = ""
    """What was measured, as `17 < 20`."""


@dataclass(frozen=True, slots=True)
class PhaseLine:
    """A phase."""

    id: str
    name: str
    mark: str
    style: str
    word: str
    """Where it stands."""
    checks: tuple[CheckLine, ...] = ()
    about: str = ""


class PhaseList(LinePane):
    """Phases one below the other."""

    BINDING_GROUP_TITLE = "Phases"
    MARKS = True

    @property
    def phase(self) -> str:
        """The phase under the cursor, or whose check is under it."""
        return self.cursor.partition(CHECK)[0]

    def show(self, phases: Sequence[PhaseLine]) -> None:
        """Show these; the cursor stays on its row."""
        self.set_rows([row for phase in phases for row in _phase_rows(phase)])


def _phase_rows(phase: PhaseLine) -> list[Row]:
    name = clean_line(phase.name, limit=200)
    word = clean_line(phase.word, limit=80)
    about = clean_line(phase.about, limit=400)
    head = Row(
        phase.id,
        (Piece(name, "strong"), Piece(f"  {about}" if about else "", "dim")),
        tail=(Piece(word, phase.style),),
        mark=Piece(phase.mark, phase.style),
        most=2,
        copy=f"{name} {word}".strip(),
    )
    return [head, *(_check_row(phase.id, at, check) for at, check in enumerate(phase.checks))]


def _check_row(phase: str, at: int, check: CheckLine) -> Row:
    what, measured = clean_line(check.what, limit=400), clean_line(check.measured, limit=400)
    return Row(
        f"{phase}{CHECK}{at}",
        (
            Piece(f"  {check.mark} ", check.style),
            Piece(what),
            Piece(f"  {measured}" if measured else "", check.style),
        ),
        indent=4,
        most=3,
        copy=f"{check.mark} {what} {measured}".strip(),
    )


PipelineWish = Literal["step_mode", "go_on", "edit", "retry", "accept", "abort"]
TEXT_LIMIT = 200_000


@dataclass(frozen=True, slots=True)
class PipelineModel:
    """What the dialog shows."""

    handoff: str = ""
    title: str = ""
    state: str = ""
    """Mark and word."""
    phases: tuple[PhaseLine, ...] = ()
    outputs: tuple[tuple[str, tuple[Section, ...]], ...] = ()
    """By phase: what it gave."""
    question: str = ""
    """What is asked of the operator; empty for nothing."""
    asked: str = ""
    """The question, by its id."""
    draft: str = ""
    """The outputs under way, to be edited."""
    may: frozenset[PipelineWish] = frozenset()
    why_not: str = ""
    said: str = ""


class PipelineDialog(BoxDialog[None]):
    """Posts what is wanted of the pipeline; its opener answers by `show`."""

    WIDE = 118
    DEFAULT_CSS = """
    PipelineDialog > Vertical.-full { height: 96%; max-width: 200; }
    PipelineDialog #outputs { height: 40%; }
    PipelineDialog #question { height: auto; max-height: 5; color: $text-warning; }
    PipelineDialog #edited { height: 1fr; min-height: 4; display: none; }
    PipelineDialog.-editing #edited { display: block; }
    """
    KEYS = (
        DialogKey("g", "wish('go_on')", "go on", priority=True),
        DialogKey("e", "wish('edit')", "edit output"),
        DialogKey("r", "wish('retry')", "try again"),
        DialogKey("a", "wish('accept')", "accept anyway"),
        DialogKey("x", "wish('abort')", "end it"),
        DialogKey("s", "wish('step_mode')", "step mode"),
        DialogKey("ctrl+s", "send", priority=True),
        DialogKey("q", "close"),
    )

    def __init__(self, model: PipelineModel) -> None:
        super().__init__()
        self.model = model
        """What is shown."""
        self.phases = PhaseList()
        """The phases."""
        self._outputs = LongText(title="Outputs", id="outputs")
        self._question = Static(id="question")
        self._edited = TextArea(id="edited", tab_behavior="focus")

    def compose(self) -> ComposeResult:
        """The phases, the outputs of one of them, what is asked, and the keys."""
        halves = self.halves(self.phases, self._outputs)
        parts = (halves, self._question, self._edited, self.line, self.said, self.keys)
        yield self.box(*parts, classes="-full")

    def on_mount(self) -> None:
        """The phases have the focus."""
        self.show(self.model)
        self.phases.focus()

    def show(self, model: PipelineModel) -> None:
        """Show this pipeline; what is being edited stays."""
        other = model.asked != self.model.asked
        self.model = model
        self.set_title(clean_line(model.title, limit=120), f"{model.state} · esc close")
        self.phases.show(model.phases)
        self._question.update(Content(f"? {clean(model.question, limit=2_000)}" if model.question else ""))
        self._question.display = bool(model.question)
        self.say(model.said)
        self.show_possible(model.may, DialogKey("", "", "outputs", shown="tab"))
        if other:
            self._stop_editing()
            self.stop_writing()
        self._show_outputs()

    @on(RowHighlighted)
    def _show_outputs(self) -> None:
        outputs = dict(self.model.outputs)
        self._outputs.show(outputs.get(self.phases.phase) or (Section("", "It gave nothing yet."),))

    @on(RowChosen)
    def _go_to_outputs(self) -> None:
        self._outputs.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`g` comes before the panes, where it begins a chord, but not where a text is typed."""
        if action == "wish" and isinstance(self.focused, Input | TextArea):
            return False
        return super().check_action(action, parameters)

    def action_wish(self, wish: PipelineWish) -> None:
        """Ask for something that can be asked for now, with words where it needs some."""
        if wish not in self.model.may:
            self.say(f"{self.key_of(wish).words}: {self.model.why_not or 'that cannot be asked for now'}")
        elif wish == "edit":
            self._edited.load_text(clean(self.model.draft, limit=TEXT_LIMIT))
            self.set_class(True, "-editing")
            self._edited.focus()
            self.say("^s checks it again and goes on where it holds; esc drops it")
        elif wish == "accept":
            self.write(wish, "why it counts anyway:")
        else:
            self.request("wanted", self.model.handoff, wish)

    def action_send(self) -> None:
        """Have everything that was typed before this key checked again."""
        self._edited.call_later(self._send)

    def _send(self) -> None:
        text = self._edited.text
        if not self.has_class("-editing"):
            return
        if not text.strip():
            self.say("there is nothing to check yet")
            return
        self.request("wanted", self.model.handoff, "edit", text)
        self._stop_editing()

    def written(self, what: str, text: str) -> bool:
        """Accept what failed, with a reason."""
        if text:
            self.request("wanted", self.model.handoff, what, text)
        else:
            self.say("accepting what failed needs a reason")
        return bool(text)

    def _stop_editing(self) -> None:
        if self.has_class("-editing"):
            self.remove_class("-editing")
            self.phases.focus()

    def action_close(self) -> None:
        """Leave what is written; else close."""
        if self.has_class("-editing"):
            self._stop_editing()
        elif not self.writing:
            self.dismiss(None)
        self.stop_writing()
        self.say("")


@dataclass(frozen=True, slots=True)
class FindingLine:
    """Something that was noticed."""

    mark: str
    style: str
    code: str
    where: str
    """`SKILL.md:12`, or a path in YAML."""
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class BuilderModel:
    """What the dialog shows."""

    build: str = ""
    """Its id, for the opener of the dialog."""
    source: str = ""
    state: str = ""
    """Mark and word."""
    phases: tuple[PhaseLine, ...] = ()
    findings: tuple[FindingLine, ...] = ()
    decision: str = ""
    """The type, with the points of all five."""
    preview: str = ""
    """The text of agent.yaml."""
    question: str = ""
    """What the operator is to choose; empty for nothing."""
    options: tuple[str, ...] = ()
    running: bool = False
    said: str = ""


def _finding_lines(findings: tuple[FindingLine, ...], width: int) -> Iterator[Pieces]:
    """Errors first, each with mark, place, code and message; what to do stands below."""
    for finding in findings:
        where = clean_line(finding.where, limit=120)
        words = (
            Piece(f"{finding.mark} ", finding.style),
            Piece(f"{where} " if where else "", "accent"),
            Piece(f"{clean_line(finding.code, limit=60)} ", finding.style),
            Piece(clean_line(finding.message, limit=1_000)),
        )
        yield from wrap(words, width, indent=2, most=6)
        if finding.hint:
            hint = Piece(f"  → {clean_line(finding.hint, limit=600)}", "dim")
            yield from wrap((hint,), width, indent=4, most=4)


class BuilderDialog(BoxDialog[None]):
    """Posts what is chosen; its opener answers by `show`."""

    WIDE, SHORT = 118, 30
    """On a short screen the file makes room for a choice."""
    DEFAULT_CSS = """
    BuilderDialog #decision { height: auto; max-height: 4; }
    BuilderDialog #question { height: auto; max-height: 4; color: $text-warning; text-style: bold; }
    BuilderDialog #left { height: 2fr; layout: vertical; }
    BuilderDialog PhaseList { height: 2fr; }
    BuilderDialog.-short.-asks #preview { display: none; }
    BuilderDialog.-bare #preview { display: none; }
    BuilderDialog ChoiceList { display: none; }
    BuilderDialog.-asks ChoiceList { display: block; }
    """
    KEYS = (DialogKey("b", "again"), DialogKey("c", "cancel"), DialogKey("q", "close"))

    def __init__(self, model: BuilderModel) -> None:
        super().__init__()
        self.model = model
        """What is shown."""
        self._list, self._preview = PhaseList(), LongText(title="agent.yaml", id="preview")
        self._findings = FactsPane(title="Findings", empty="Nothing was found wrong.", classes="-below")
        self._decision, self._question = Static(id="decision"), Static(id="question")
        self.choices = ChoiceList()
        """What can be chosen."""

    def compose(self) -> ComposeResult:
        """The phases, the findings, the type, the file to be, and the keys."""
        halves = self.halves(Container(self._list, self._findings, id="left"), self._preview)
        parts = (halves, self._decision, self._question, self.choices, self.said, self.keys)
        yield self.box(*parts, classes="-full")

    def on_mount(self) -> None:
        """The phases have the focus, or the choice where there is one."""
        self._list.focus()
        self.show(self.model)

    def show(self, model: BuilderModel) -> None:
        """Show this build."""
        asked = (self.model.question, self.model.options) if self.has_class("-asks") else None
        self.model = model
        self.set_title(f"Build {clean_line(model.source, limit=100)}", f"{model.state} · esc close")
        self._list.show(model.phases)
        self._findings.show_text(model.findings, partial(_finding_lines, model.findings), from_start=False)
        text = model.preview or "It is there once the second phase has passed."
        self.set_class(not model.preview and not model.running, "-bare")
        self._preview.show((Section("agent.yaml", text),))
        self._decision.update(Content(clean(model.decision, limit=2_000)))
        self._decision.display = bool(model.decision)
        self._question.update(Content(f"? {clean_line(model.question, limit=600)}" if model.question else ""))
        self._question.display = bool(model.question)
        self.say(model.said)
        step = DialogKey("", "cancel", "cancel", shown="c")
        again = DialogKey("", "again", "build again", shown="b")
        choose = DialogKey("", "", "choose", shown=f"1–{len(model.options)} enter")
        between = DialogKey("", "", "findings, agent.yaml", shown="tab")
        self.show_keys([step if model.running else again, between, *([choose] if model.options else [])])
        self.set_class(bool(model.options), "-asks")
        if model.options and asked != (model.question, model.options):
            self.choices.offer(model.options)
            # It takes the focus only once it is displayed.
            self.call_after_refresh(self.choices.focus)
        elif not model.options and self.choices.has_focus:
            self._list.focus()

    @on(ChoiceList.Chosen)
    def _option_chosen(self) -> None:
        if self.model.options and not self.model.running:
            self.request("chosen", self.model.build, self.choices.chosen[0])

    @on(RowChosen, "PhaseList")
    def _to_findings(self) -> None:
        self._findings.focus()

    def action_again(self) -> None:
        """Build the same once more."""
        if self.model.running:
            self.say("it is being built; c cancels it")
        else:
            self.request("again", self.model.build)

    def action_cancel(self) -> None:
        """End the build; nothing is left of it."""
        if self.model.running:
            self.request("cancel", self.model.build)
        else:
            self.say("nothing is being built")
