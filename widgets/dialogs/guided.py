"""A guided session: one step is asked, the others stand beside it with what was answered so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from engine.core.text import clean, clean_line
from engine.value import dataclass
from widgets.base.choices import ChoiceList
from widgets.base.dialog import BoxDialog, DialogKey
from widgets.base.facts import LongText, Section
from widgets.base.line_pane import LinePane, RowChosen
from widgets.base.rows import Row
from widgets.base.text_layout import Piece

Kind = Literal["text", "long_text", "choice", "multi", "number", "confirm"]
GuidedWish = Literal["answer", "back", "skip", "jump", "suggest", "save", "finish", "resume"]
Answer = str | tuple[str, ...] | bool
Check = Callable[[str, Answer], str]
"""Takes a step's id and an answer, and gives what is wrong with it; empty when it can be stored."""


@dataclass(frozen=True, slots=True)
class StepLine:
    """A step on the rail."""

    id: str
    title: str
    mark: str
    style: str
    word: str
    """Where it stands, in a word; the mark says no more."""


@dataclass(frozen=True, slots=True)
class GuidedStepRequest:
    """The step that is asked."""

    id: str
    title: str
    prompt: str
    kind: Kind
    options: tuple[str, ...] = ()
    value: Answer = ""
    """What was answered before."""
    note: str = ""
    """Whether it is required, or to be looked at again."""
    skippable: bool = False


@dataclass(frozen=True, slots=True)
class GuidedModel:
    """What the dialog shows."""

    handoff: str = ""
    title: str = ""
    place: str = ""
    """As `4/9`."""
    state: str = ""
    """Mark and word."""
    rail: tuple[StepLine, ...] = ()
    asked: str = ""
    """The question that waits, by its id; empty while nothing is asked."""
    step: GuidedStepRequest | None = None
    """None when all were gone through."""
    told: tuple[str, ...] = ()
    """When it was saved, and what has changed since."""
    refused: str = ""
    """Why the last move was not made."""
    draft: str = ""
    """What a model wrote; stored nowhere."""
    partial: tuple[Section, ...] = ()
    """The result so far."""
    missing: tuple[str, ...] = ()
    """Why it cannot be finished yet."""
    paused: bool = False
    over: bool = False


SHOWN_MOST = 20_000
"""Characters of a prompt or a draft that are shown."""
YES_NO = ("yes", "no")
STEP = "step "
REASON_LIMIT = 2_000
SKIPPING = "-skipping"
"""The class while it is written why a step is skipped."""


class GuidedDialog(BoxDialog[None]):
    """Posts the operator's moves; its opener answers by `show` or `say`.

    Args:
        model: what is shown at first.
        check: says what is wrong with an answer while it is typed.
    """

    WIDE, SHORT = 118, 30
    KEYS = (
        DialogKey("ctrl+n,ctrl+enter", "next", "next", shown="^n", priority=True),
        DialogKey("ctrl+b,f2", "move('back')", "back", shown="^b·F2", priority=True),
        DialogKey("ctrl+k,f3", "skip", "skip", shown="^k·F3", priority=True),
        DialogKey("ctrl+j,f4", "jump", "jump", shown="^j·F4", priority=True),
        DialogKey("ctrl+g,f5", "suggest", "suggest", shown="^g·F5", priority=True),
        DialogKey("ctrl+s", "save", "save, leave", shown="^s", priority=True),
        DialogKey("f9", "move('finish')", "finish", shown="F9", priority=True),
    )
    DEFAULT_CSS = """
    GuidedDialog > Vertical.-full { max-width: 200; }
    GuidedDialog #notes { height: auto; max-height: 4; color: $text-warning; }
    GuidedDialog #body { height: 1fr; layout: horizontal; }
    GuidedDialog #body > LinePane { width: 27; height: 100%; border-right: solid $border-blurred; }
    GuidedDialog #body > LinePane:focus { border-right: heavy $border; }
    GuidedDialog.-wide #body > LinePane { width: 36; }
    GuidedDialog #asked { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
    GuidedDialog #prompt, GuidedDialog #draft { height: auto; }
    GuidedDialog #draft { color: $text-primary; }
    GuidedDialog TextArea { height: 8; min-height: 3; }
    GuidedDialog.-short TextArea { height: 5; }
    GuidedDialog #partial { height: 7; }
    GuidedDialog.-short #partial { height: 5; }
    """

    def __init__(self, model: GuidedModel, check: Check) -> None:
        super().__init__()
        self.model = model
        """What is shown."""
        self._check = check
        self._loaded: str | None = None
        """What the input was laid out for."""
        self._sent = ""
        """The question that a move was made for."""
        self._refused = ""
        """The question with which a refusal was shown."""
        self._early: tuple[str, GuidedWish, Answer, str, str] | None = None
        """A move that was made before its question waited, with what was shown then."""
        self._warned = False
        self._before: Answer = ""
        self._rail = LinePane(title="Steps", marks=True)
        self._partial = LongText(title="Result so far", id="partial")
        self._notes, self._prompt = Static(id="notes"), Static(id="prompt")
        self._problem, self._draft = Static(id="problem", classes="-problems"), Static(id="draft")
        self._line, self._long, self._choices = Input(), TextArea(tab_behavior="focus"), ChoiceList()
        self._reason = Input(max_length=REASON_LIMIT)
        self._why = Horizontal(Static(Content("skip it, because:")), self._reason, classes="-written")
        self._field: Widget = self._rail
        """Where the answer is given."""

    def compose(self) -> ComposeResult:
        """What is to be known, the steps, the one that is asked, the result so far, and the keys."""
        fields = (self._line, self._long, self._choices, self._why, self._problem, self._draft)
        asked = VerticalScroll(self._prompt, *fields, id="asked", can_focus=False)
        body = Container(self._rail, self.halves(asked, self._partial), id="body")
        self.show_keys(self.KEYS)
        yield self.box(self._notes, body, self.keys, classes="-full")

    def on_mount(self) -> None:
        """The input has the focus."""
        self.show(self.model)

    def show(self, model: GuidedModel) -> None:
        """Show where it stands; what is being typed stays while the step is the same."""
        self.model = model
        self.set_title(f"{clean_line(model.title, limit=80)} {model.place}", f"{model.state} · esc close")
        self._notes.update(Content("\n".join(clean_line(line, limit=400) for line in model.told)))
        self._notes.display = bool(model.told)
        self._rail.set_rows([_step_row(step) for step in model.rail])
        if model.step is not None and not self._rail.has_focus:
            self._rail.move_cursor(model.step.id)
        self._partial.show(model.partial or (Section("Result so far", "nothing yet"),))
        self._show_prompt()
        if (stage := _stage(model)) != self._loaded:
            self._load(stage)
        if model.refused and model.asked not in ("", self._sent, self._refused):
            self._refused = model.asked
            self._say_problem(model.refused)
        if model.asked not in ("", self._sent) and self._early is not None:
            (before, *early), self._early = self._early, None
            if before == stage:
                self.call_later(self.move, *early)
        draft = clean(model.draft, limit=SHOWN_MOST)
        if draft and not self._draft.display:
            self._say_problem("")
        self._draft.display = bool(draft)
        self._draft.update(Content(f"draft, stored nowhere; ^g puts it into the field:\n{draft}"))

    def _show_prompt(self) -> None:
        model = self.model
        if model.over:
            lines = [Content(f"It is over: {clean_line(model.state)}").stylize("bold")]
        elif model.paused:
            lines = [Content("It was saved and waits. Enter goes on.").stylize("bold")]
        elif model.step is None:
            lines = [Content("Every step was gone through.").stylize("bold")]
            lines += [Content(f"! {clean_line(why, limit=300)}") for why in model.missing]
            lines += [] if model.missing else [Content("Enter returns the answers.")]
        else:
            step = model.step
            lines = [Content(clean_line(step.title, limit=300)).stylize("bold")]
            lines += [Content(clean(step.prompt, limit=SHOWN_MOST))] if step.prompt else []
            note = Content(clean_line(step.note, limit=300)).stylize("$foreground-muted")
            lines += [note] if step.note else []
        self._prompt.update(Content("\n").join(lines))

    def _load(self, stage: str) -> None:
        """Lay the input of the step out, with what was answered before."""
        model, self._loaded, self._warned = self.model, stage, False
        self._stop_skipping()
        asked = model.step if stage.startswith(STEP) else None
        kind = asked.kind if asked is not None else "none"
        for each in (self._line, self._long, self._choices):
            each.display = False
        self._say_problem("")
        field: Widget = self._rail
        if asked is None:
            if stage in ("paused", "finished"):
                self._choices.offer(("go on" if model.paused else "finish and return the answers",))
                field = self._choices
        elif kind in ("choice", "multi", "confirm"):
            options = YES_NO if kind == "confirm" else asked.options
            chosen = asked.value if isinstance(asked.value, tuple) else (_as_text(asked.value),)
            self._choices.offer(options, several=kind == "multi", chosen=chosen)
            field = self._choices
        elif kind == "long_text":
            self._long.load_text(clean(_as_text(asked.value), limit=200_000))
            self._long.move_cursor(self._long.document.end)
            field = self._long
        else:
            self._line.value = clean_line(_as_text(asked.value), limit=20_000)
            field = self._line
        self._field = field
        field.display = True
        self._before = self.value
        field.focus()

    def say(self, text: str) -> None:
        """Say why a move was not made; the next one can be."""
        self._sent = ""
        self._say_problem(text)

    def _say_problem(self, text: str, *, fine: bool = False) -> None:
        self._problem.set_class(fine, "-fine")
        mark = "✓" if fine else "✗"
        self._problem.update(Content(f"{mark} {clean_line(text, limit=600)}" if text else ""))

    @property
    def value(self) -> Answer:
        """What stands in the input."""
        step = self.model.step
        match step.kind if step is not None else "":
            case "choice":
                return next(iter(self._choices.chosen), "")
            case "multi":
                return self._choices.chosen
            case "confirm":
                return next(iter(self._choices.chosen), "") == YES_NO[0]
            case "long_text":
                return self._long.text
            case _:
                return self._line.value

    @on(Input.Changed)
    @on(TextArea.Changed)
    @on(ChoiceList.Changed)
    def _changed(self) -> None:
        step, self._warned = self.model.step, False
        asked = self._loaded is not None and self._loaded.startswith(STEP)
        if step is None or not asked or self.has_class(SKIPPING):
            return
        value = self.value
        if value in ("", ()) or value == self._before:
            self._say_problem("")
            return
        wrong = self._check(step.id, value)
        self._say_problem(wrong or "can be stored", fine=not wrong)

    @on(RowChosen)
    def _jump(self, event: RowChosen) -> None:
        self.move("jump", step=event.key)

    @on(Input.Submitted)
    @on(ChoiceList.Chosen)
    def _entered(self) -> None:
        self._next()

    def action_skip(self) -> None:
        """Ask in a line why the step is skipped, which may stay empty; one that cannot be says so."""
        step = self.model.step
        if self.has_class(SKIPPING):
            self._reason.call_later(self._skip)
        elif step is None or not step.skippable or self.model.over or self.model.paused:
            self.move("skip")
        else:
            self._reason.value = ""
            self.set_class(True, SKIPPING)
            self._why.display = True
            # At once, so that letters typed fast behind it are in the line.
            self.set_focus(self._reason)
            self._field.display = self._field is self._rail
            self._say_problem("enter skips it, with a reason or without; esc goes back", fine=True)

    def _skip(self) -> None:
        if not self.has_class(SKIPPING):
            return
        reason = self._reason.value.strip()
        self._stop_skipping()
        self.move("skip", reason=reason)

    def _stop_skipping(self) -> None:
        """Go back to the answer."""
        if self.has_class(SKIPPING):
            self.set_class(False, SKIPPING)
            self._why.display = False
            self._say_problem("")
            self._field.display = True
            self._field.focus()

    def move(self, move: GuidedWish, value: Answer = "", step: str = "", reason: str = "") -> None:
        """Make a move, once for each question."""
        model = self.model
        if model.over:
            self._say_problem(f"it is over: {model.state}")
        elif move in ("save", "resume") and not (move == "save" and model.paused):
            self.request("moved", model.handoff, move)
        elif model.paused:
            self._say_problem("it was saved and waits; enter goes on")
        elif not model.asked or model.asked == self._sent:
            # The step may be shown a moment before its question waits: a move made that early is made then.
            self._early = (_stage(model), move, value, step, reason)
        else:
            self._sent = model.asked
            self._say_problem("")
            self.request("moved", model.handoff, move, value, step, reason)

    def action_move(self, move: GuidedWish) -> None:
        """Make a move that needs no value."""
        self.move(move)

    def action_next(self) -> None:
        """Answer with everything that was typed before this key, which comes before the input's own keys."""
        (self.focused or self).call_later(self._next)

    def _next(self) -> None:
        """Answer; where nothing is asked any more, finish; where it was saved, go on."""
        step = self.model.step
        if self.has_class(SKIPPING):
            self._skip()
        elif self.model.paused:
            self.move("resume")
        elif step is None:
            self.move("finish")
        elif wrong := self._check(step.id, self.value):
            self._say_problem(wrong)
        else:
            self.move("answer", self.value)

    def action_jump(self) -> None:
        """Go to the steps to choose one; from there, jump to it."""
        if self._rail.has_focus and self._rail.cursor:
            self.move("jump", step=self._rail.cursor)
        else:
            self._rail.focus()
            self._say_problem("choose a step and press enter; tab goes back to the answer", fine=True)

    def action_suggest(self) -> None:
        """Have a draft written; once there is one, put it into the input, where it can be changed."""
        step, draft = self.model.step, self.model.draft
        if step is None or not draft:
            self.move("suggest")
            if self._sent:
                self._say_problem("a draft is being written …", fine=True)
        elif step.kind in ("choice", "multi", "confirm"):
            self._take_choice(draft)
        elif step.kind == "long_text":
            self._long.load_text(clean(draft, limit=200_000))
            self._long.move_cursor(self._long.document.end)
            self._long.focus()
        else:
            self._line.value = clean_line(draft, limit=20_000)
            self._line.cursor_position = len(self._line.value)
            self._line.focus()

    def _take_choice(self, draft: str) -> None:
        step = self.model.step
        assert step is not None
        options = YES_NO if step.kind == "confirm" else step.options
        text = draft.casefold()
        chosen = tuple(option for option in options if option.casefold() in text)
        if chosen:
            self._choices.offer(options, several=step.kind == "multi", chosen=chosen)
            self._choices.focus()
        else:
            self._say_problem("the draft names none of the options")

    def action_close(self) -> None:
        """Close; with an answer that was not given yet the first escape only warns."""
        if self.has_class(SKIPPING):
            self._stop_skipping()
            return
        if not self._warns("esc"):
            self.dismiss(None)

    def action_save(self) -> None:
        """Save and leave, with everything that was typed before this key looked at as escape does."""
        (self.focused or self).call_later(self._save)

    def _save(self) -> None:
        if not self._warns("^s"):
            self.move("save")

    def _warns(self, key: str) -> bool:
        """Whether there is an answer that was not given; it is said once before it is dropped."""
        asked = self.model.step is not None and _stage(self.model).startswith(STEP)
        if not asked or self.value == self._before or self._warned:
            return False
        self._warned = True
        self._say_problem(f"this answer was not given yet; {key} again drops it, ^n gives it")
        return True


def _stage(model: GuidedModel) -> str:
    """What the input is laid out for."""
    if model.over or model.paused:
        return "over" if model.over else "paused"
    if model.step is not None:
        return STEP + model.step.id
    return "unfinished" if model.missing else "finished"


def _as_text(value: Answer) -> str:
    if isinstance(value, bool):
        return YES_NO[0] if value else YES_NO[1]
    return ", ".join(value) if isinstance(value, tuple) else value


def _step_row(step: StepLine) -> Row:
    words = clean_line(step.title, limit=120)
    return Row(
        step.id,
        (Piece(words, "strong" if step.mark == "●" else "text"),),
        tail=(Piece(step.word, step.style),) if step.word else (),
        mark=Piece(step.mark, step.style),
        copy=f"{words} {step.word}".strip(),
    )
