"""A pipeline: its phases with their checks, what the phase under the cursor gave, and how it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static, TextArea

from engine.domain.text import clean, clean_line
from widgets.dialogs.box import BoxDialog
from widgets.dialogs.long_text import LongText, Section
from widgets.phase_list import PhaseLine, PhaseList

PipelineWish = Literal["step_mode", "go_on", "edit", "retry", "accept", "abort"]
WIDE = 118
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


class Outputs(LongText):
    """What a phase gave."""

    BINDING_GROUP_TITLE = "Outputs"
    DEFAULT_CSS = """
    Outputs, Outputs:focus { border: none; border-top: solid $border-blurred; height: 40%; min-height: 3; }
    Outputs:focus { border-top: heavy $border; }
    """


class PipelineDialog(BoxDialog[None]):
    """Posts what is wanted of the pipeline; whoever opens it answers by `show`."""

    DEFAULT_CSS = """
    PipelineDialog > Vertical { width: 98%; height: 96%; max-width: 200; max-height: 98%; }
    PipelineDialog #both { height: 1fr; layout: vertical; }
    PipelineDialog.-wide #both { layout: horizontal; }
    PipelineDialog.-wide PhaseList { width: 1fr; height: 100%; }
    PipelineDialog.-wide Outputs, PipelineDialog.-wide Outputs:focus {
        width: 45%; height: 100%; border-top: none; border-left: solid $border-blurred;
    }
    PipelineDialog #question { height: auto; max-height: 5; color: $text-warning; }
    PipelineDialog #said { height: auto; max-height: 2; color: $text-warning; }
    PipelineDialog #edited { height: 1fr; min-height: 4; display: none; }
    PipelineDialog #reason { height: 3; display: none; }
    PipelineDialog #reason Static { width: auto; padding: 1 1 0 0; color: $foreground-muted; }
    PipelineDialog #reason Input { width: 1fr; }
    PipelineDialog.-editing #edited, PipelineDialog.-accepting #reason { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "wish('step_mode')", "Step mode", id="pipeline.step-mode"),
        Binding("g", "wish('go_on')", "Go on", priority=True, id="pipeline.go-on"),
        Binding("e", "wish('edit')", "Edit the output", id="pipeline.edit"),
        Binding("r", "wish('retry')", "Try again", id="pipeline.retry"),
        Binding("a", "wish('accept')", "Accept anyway", id="pipeline.accept"),
        Binding("x", "wish('abort')", "End it", id="pipeline.abort"),
        Binding("ctrl+s", "send", "Check again", priority=True, id="pipeline.send"),
        Binding("q", "close", "Close", show=False, id="pipeline.close"),
    ]

    @dataclass
    class Wanted(Message):
        """Something is wanted of the pipeline."""

        handoff: str
        wish: PipelineWish
        text: str = ""

    def __init__(self, model: PipelineModel) -> None:
        super().__init__()
        self._model, self._box = model, Vertical()
        self._list, self._outputs = PhaseList(), Outputs()
        self._question, self._said = Static(id="question"), Static(id="said")
        self._edited = TextArea(id="edited", tab_behavior="focus")
        self._reason = Input(max_length=2_000)
        self._keys = Static(classes="-keys")

    @property
    def model(self) -> PipelineModel:
        """What is shown."""
        return self._model

    @property
    def phases(self) -> PhaseList:
        """The phases."""
        return self._list

    def compose(self) -> ComposeResult:
        """The phases, what one of them gave, what is asked, and the keys."""
        with self._box:
            with Container(id="both"):
                yield self._list
                yield self._outputs
            yield self._question
            yield self._edited
            with Horizontal(id="reason"):
                yield Static(Content("why it counts anyway:"))
                yield self._reason
            yield self._said
            yield self._keys

    def on_mount(self) -> None:
        """The phases have the focus."""
        self.show(self._model)
        self._list.focus()

    def on_resize(self, event: events.Resize) -> None:
        """Put the outputs beside the phases where there is room."""
        self.set_class(event.size.width >= WIDE, "-wide")

    def show(self, model: PipelineModel) -> None:
        """Show this pipeline; what is being edited stays."""
        other = model.asked != self._model.asked
        self._model = model
        box = self._box
        box.border_title = Content(clean_line(model.title, limit=120))
        box.border_subtitle = Content(f"{clean_line(model.state)} · esc close".lstrip(" ·"))
        self._list.show(model.phases)
        self._question.update(Content(f"? {clean(model.question, limit=2_000)}" if model.question else ""))
        self._question.display = bool(model.question)
        self.say(model.said)
        self._keys.update(_keys(model))
        if other:
            self._stop_writing()
        self._show_outputs()

    def say(self, text: str) -> None:
        """Say something until the next key's answer comes."""
        self._said.display = bool(text)
        self._said.update(Content(clean_line(text)))

    @on(PhaseList.Moved)
    def _show_outputs(self) -> None:
        outputs = dict(self._model.outputs)
        self._outputs.show(outputs.get(self._list.phase) or (Section("", "It gave nothing yet."),))

    @on(PhaseList.Opened)
    def _go_to_outputs(self) -> None:
        self._outputs.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`g` comes before the panes, where it begins a chord, but not where a text is typed."""
        if action == "wish" and isinstance(self.focused, Input | TextArea):
            return False
        return super().check_action(action, parameters)

    def action_wish(self, wish: PipelineWish) -> None:
        """Ask for something that can be asked for now, with words where it needs some."""
        if wish not in self._model.may:
            self.say(f"{_NAMES[wish][1]}: {self._model.why_not or 'that cannot be asked for now'}")
        elif wish == "edit":
            self._edited.load_text(clean(self._model.draft, limit=TEXT_LIMIT))
            self.set_class(True, "-editing")
            self._edited.focus()
            self.say("^s checks it again and goes on where it holds; esc drops it")
        elif wish == "accept":
            self._reason.value = ""
            self.set_class(True, "-accepting")
            self._reason.focus()
        else:
            self.post_message(self.Wanted(self._model.handoff, wish))

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
        self.post_message(self.Wanted(self._model.handoff, "edit", text))
        self._stop_writing()

    @on(Input.Submitted)
    def _accepted(self) -> None:
        if text := self._reason.value.strip():
            self.post_message(self.Wanted(self._model.handoff, "accept", text))
            self._stop_writing()
        else:
            self.say("accepting what failed needs a reason")

    def _stop_writing(self) -> None:
        if self.has_class("-editing") or self.has_class("-accepting"):
            self.set_class(False, "-editing")
            self.set_class(False, "-accepting")
            self._list.focus()

    def action_close(self) -> None:
        """Leave what is written; else close."""
        if self.has_class("-editing") or self.has_class("-accepting"):
            self._stop_writing()
            self.say("")
        else:
            self.dismiss(None)


_NAMES: dict[PipelineWish, tuple[str, str]] = {
    "go_on": ("g", "go on"),
    "edit": ("e", "edit output"),
    "retry": ("r", "try again"),
    "accept": ("a", "accept anyway"),
    "abort": ("x", "end it"),
    "step_mode": ("s", "step mode"),
}


def _keys(model: PipelineModel) -> Content:
    parts = [
        f"[@click=screen.wish('{wish}')][bold]{key}[/] {name}[/]"
        for wish, (key, name) in _NAMES.items()
        if wish in model.may
    ]
    return Content.from_markup("   ".join([*parts, "[bold]tab[/] outputs"]))
