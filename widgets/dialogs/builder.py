"""A build of an agent: seven phases, what was found with its place, the type, and the agent.yaml to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from engine.domain.text import clean, clean_line
from widgets.choices import ChoiceList
from widgets.dialogs.box import BoxDialog
from widgets.dialogs.long_text import LongText, Section
from widgets.facts import FactsPane
from widgets.phase_list import PhaseLine, PhaseList
from widgets.pieces import Piece, Pieces, wrap

WIDE = 118
SHORT = 30
"""Lines of a screen below which the file makes room for a choice."""


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
    """By what it is known to whoever opened the dialog."""
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


class FindingsPane(FactsPane):
    """What was noticed, errors first, each with its place."""

    BINDING_GROUP_TITLE = "Findings"
    EMPTY = "Nothing was found wrong."
    DEFAULT_CSS = """
    FindingsPane, FindingsPane:focus {
        border: none; border-top: solid $border-blurred; height: 1fr; min-height: 3;
    }
    FindingsPane:focus { border-top: heavy $border; }
    """

    _findings: tuple[FindingLine, ...] = ()

    def show(self, findings: tuple[FindingLine, ...]) -> None:
        """Show these."""
        if findings != self._findings:
            self._findings = findings
            self.text_changed(from_start=False)

    def lines_for(self, width: int) -> tuple[Pieces, ...]:
        """Mark, place, code and message; what to do stands below."""
        lines: list[Pieces] = []
        for one in self._findings:
            where = clean_line(one.where, limit=120)
            words = (
                Piece(f"{one.mark} ", one.style),
                Piece(f"{where} " if where else "", "accent"),
                Piece(f"{clean_line(one.code, limit=60)} ", one.style),
                Piece(clean_line(one.message, limit=1_000)),
            )
            lines += wrap(words, width, indent=2, most=6)
            if one.hint:
                lines += wrap(
                    (Piece(f"  → {clean_line(one.hint, limit=600)}", "dim"),), width, indent=4, most=4
                )
        return tuple(lines)


class Preview(LongText):
    """The agent.yaml to be."""

    BINDING_GROUP_TITLE = "agent.yaml"
    DEFAULT_CSS = """
    Preview, Preview:focus { border: none; border-top: solid $border-blurred; height: 1fr; min-height: 3; }
    Preview:focus { border-top: heavy $border; }
    """


class BuilderDialog(BoxDialog[None]):
    """Posts what is chosen; whoever opens it answers by `show`."""

    DEFAULT_CSS = """
    BuilderDialog > Vertical { width: 98%; height: 98%; max-width: 220; max-height: 98%; }
    BuilderDialog #decision { height: auto; max-height: 4; }
    BuilderDialog #question { height: auto; max-height: 4; color: $text-warning; text-style: bold; }
    BuilderDialog #all { height: 1fr; layout: vertical; }
    BuilderDialog #left { height: 2fr; layout: vertical; }
    BuilderDialog PhaseList, BuilderDialog PhaseList:focus { height: 2fr; }
    BuilderDialog.-wide #all { layout: horizontal; }
    BuilderDialog.-wide #left { width: 1fr; height: 100%; }
    BuilderDialog.-wide Preview, BuilderDialog.-wide Preview:focus {
        width: 45%; height: 100%; border-top: none; border-left: solid $border-blurred;
    }
    BuilderDialog.-wide Preview:focus { border-left: heavy $border; }
    BuilderDialog.-short.-asks Preview { display: none; }
    BuilderDialog.-bare Preview { display: none; }
    BuilderDialog ChoiceList { display: none; }
    BuilderDialog.-asks ChoiceList { display: block; }
    BuilderDialog #said { height: auto; max-height: 2; color: $text-warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "again", "Build again", id="builder.again"),
        Binding("c", "cancel", "Cancel", id="builder.cancel"),
        Binding("q", "close", "Close", show=False, id="builder.close"),
    ]

    @dataclass
    class Chosen(Message):
        """The operator chose one of the options."""

        build: str
        option: str

    @dataclass
    class AgainWanted(Message):
        """The same is to be built once more."""

        build: str

    @dataclass
    class CancelWanted(Message):
        """The build is to end."""

        build: str

    def __init__(self, model: BuilderModel) -> None:
        super().__init__()
        self._model, self._box = model, Vertical()
        self._list, self._findings, self._preview = PhaseList(), FindingsPane(), Preview()
        self._decision, self._question = Static(id="decision"), Static(id="question")
        self._choices = ChoiceList()
        self._said, self._keys = Static(id="said"), Static(classes="-keys")

    @property
    def model(self) -> BuilderModel:
        """What is shown."""
        return self._model

    @property
    def choices(self) -> ChoiceList:
        """What can be chosen."""
        return self._choices

    def compose(self) -> ComposeResult:
        """The phases, the findings, the type, the file to be, and the keys."""
        with self._box:
            with Container(id="all"):
                with Container(id="left"):
                    yield self._list
                    yield self._findings
                yield self._preview
            yield self._decision
            yield self._question
            yield self._choices
            yield self._said
            yield self._keys

    def on_mount(self) -> None:
        """The phases have the focus, or the choice where there is one."""
        self._list.focus()
        self.show(self._model)

    def on_resize(self, event: events.Resize) -> None:
        """Put the file beside the phases where there is room."""
        self.set_class(event.size.width >= WIDE, "-wide")
        self.set_class(event.size.height < SHORT, "-short")

    def show(self, model: BuilderModel) -> None:
        """Show this build."""
        asked = (self._model.question, self._model.options) if self.has_class("-asks") else None
        self._model = model
        box = self._box
        box.border_title = Content(f"Build {clean_line(model.source, limit=100)}".rstrip())
        box.border_subtitle = Content(f"{clean_line(model.state)} · esc close".lstrip(" ·"))
        self._list.show(model.phases)
        self._findings.show(model.findings)
        text = model.preview or "It is there once the second phase has passed."
        self.set_class(not model.preview and not model.running, "-bare")
        self._preview.show((Section("agent.yaml", text),))
        self._decision.update(Content(clean(model.decision, limit=2_000)))
        self._decision.display = bool(model.decision)
        self._question.update(Content(f"? {clean_line(model.question, limit=600)}" if model.question else ""))
        self._question.display = bool(model.question)
        self.say(model.said)
        self._keys.update(_keys(model))
        self.set_class(bool(model.options), "-asks")
        if model.options and asked != (model.question, model.options):
            self._choices.offer(model.options)
            # It takes the focus only once it is displayed.
            self.call_after_refresh(self._choices.focus)
        elif not model.options and self._choices.has_focus:
            self._list.focus()

    def say(self, text: str) -> None:
        """Say something until the next key's answer comes."""
        self._said.display = bool(text)
        self._said.update(Content(clean_line(text)))

    @on(ChoiceList.Chosen)
    def _option_chosen(self) -> None:
        if self._model.options and not self._model.running:
            self.post_message(self.Chosen(self._model.build, self._choices.chosen[0]))

    @on(PhaseList.Opened)
    def _to_findings(self) -> None:
        self._findings.focus()

    def action_again(self) -> None:
        """Build the same once more."""
        if self._model.running:
            self.say("it is being built; c cancels it")
        else:
            self.post_message(self.AgainWanted(self._model.build))

    def action_cancel(self) -> None:
        """End the build; nothing is left of it."""
        if self._model.running:
            self.post_message(self.CancelWanted(self._model.build))
        else:
            self.say("nothing is being built")


def _keys(model: BuilderModel) -> Content:
    """The keys that do something now."""
    ends = "[@click=screen.cancel][bold]c[/] cancel[/]"
    again = "[@click=screen.again][bold]b[/] build again[/]"
    parts = [ends if model.running else again, "[bold]tab[/] findings, agent.yaml"]
    parts += [f"[bold]1–{len(model.options)}[/] [bold]enter[/] choose"] if model.options else []
    return Content.from_markup("   ".join(parts))
