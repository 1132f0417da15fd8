"""What all dialogs are made from: a bordered column in the middle of a dimmed screen, and its parts.

The keys of a dialog stand in `dialog_keys.txt` and its style in `dialogs.tcss`, by its name. It hands its
panes and fields to `BoxDialog.box`: rows and what is known of one (a list), a text to be read, fields with
checks (a form), or pages behind tabs. `ConfirmDialog` asks before something that is not undone easily.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from engine.core.text import clean, clean_line
from engine.value import dataclass
from widgets.base.facts import FactsPane, ListModel, LongText, Render, Section
from widgets.base.line_pane import LinePane, Requested, RowChosen
from widgets.base.rows import Row

Result = TypeVar("Result")
Model = TypeVar("Model")

JUST_OPENED = "it has just opened: press the key again"
DEAF_S = 0.3
"""How long a dialog that opened by itself takes no key: those were meant for what it covers."""
_SHOWN = {"plus": "+", "minus": "-", "slash": "/", "delete": "del"}


@dataclass(frozen=True, slots=True)
class DialogKey:
    """A key of a dialog."""

    keys: str
    """As Textual names them, separated by commas; empty where the focused pane has it."""
    action: str = ""
    """What it runs; `request('NAME')` for what can be asked for at times. Empty where it is only shown."""
    words: str = ""
    """What the last line says that it does."""
    shown: str = ""
    """How the last line names it, where not by the first of its keys."""
    why_not: str = ""
    """Why it cannot be asked for, when it cannot."""
    priority: bool = False

    @property
    def request(self) -> str:
        """What its action asks for; empty for actions that are always possible."""
        return self.action[9:-2] if self.action.startswith("request(") else ""

    @property
    def label(self) -> str:
        """How the last line names it."""
        first = self.keys.partition(",")[0]
        return self.shown or _SHOWN.get(first, first)


def _keys() -> dict[str, list[DialogKey]]:
    """The keys of each dialog, by its name."""
    keys: dict[str, list[DialogKey]] = {}
    for line in Path(__file__).with_name("dialog_keys.txt").read_text("utf-8").splitlines()[1:]:
        dialog, key, action, words, shown, why_not, first = map(str.strip, line.split("|"))
        keys.setdefault(dialog, []).append(DialogKey(key, action, words, shown, why_not, bool(first)))
    return keys


_KEYS = _keys()
_STYLES = Path(__file__).with_name("dialogs.tcss").read_text("utf-8").split("\n\n")
_CSS = {rules.split(maxsplit=1)[0]: rules for rules in _STYLES}
"""The style of each dialog, by its name, with which its rules begin; blank lines part them."""


def keys_line(keys: Iterable[DialogKey], gap: str = "  ") -> Content:
    """The keys of a dialog, each of which can be clicked; those without words are left out."""
    parts = [
        _pressable(
            f"screen.{key.action}" if key.action else _press(key.label),
            "[bold]$key[/]$words",
            key=key.label,
            words=f" {key.words}" if key.words else "",
        )
        for key in keys
        if key.words or key.shown
    ]
    return Content(gap).join(parts)


def hint_line(hint: str) -> Content:
    """What the lower border says; its parts, between ` · `, can be clicked where they begin with a key."""
    parts = [_pressable(_press(part.partition(" ")[0]), "$words", words=part) for part in hint.split(" · ")]
    return Content(" · ").join(parts)


def _press(name: str) -> str:
    """The action that presses the key which a line names; empty for what is no single key."""
    key = {"esc": "escape"}.get(name, name)
    single = re.fullmatch(r"[A-Za-z]|ctrl\+.|enter|space|escape", key)
    return f"screen.press('{key}')" if single else ""


def _pressable(action: str, markup: str, **values: str) -> Content:
    return Content.from_markup(f"[@click={action}]{markup}[/]" if action else markup, **values)


class BoxDialog(ModalScreen[Result]):
    """A modal screen whose first child is the box; escape closes it without a choice.

    Args:
        unasked: it opens by itself, so that the first keys are not meant for it.
    """

    TITLE_TEXT: ClassVar[str] = ""
    HINT: ClassVar[str] = "esc close"
    CLASSES: ClassVar[str] = ""
    """Those of the box."""
    KEYS: ClassVar[Sequence[DialogKey]] = ()
    """Its keys: bindings are made from them, and the last line offers those that have words."""
    AGREES: ClassVar[bool] = False
    """Whether `y` agrees here, and copies no row."""
    WRITTEN_MOST: ClassVar[int] = 2_000
    """Characters that can be written in its line."""
    WIDE: ClassVar[int] = 0
    """Cells of a screen from which on halves stand side by side; 0 for never."""
    SHORT: ClassVar[int] = 0
    """Lines of a screen below which less is shown; 0 for never."""
    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text("utf-8")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close", id="dialog.close")]

    def __init_subclass__(cls, **options: Any) -> None:
        keys = _KEYS.get(cls.__name__, [])
        cls.KEYS = keys or cls.KEYS
        cls.DEFAULT_CSS = _CSS.get(cls.__name__, "")
        cls.AGREES = any(key.keys == "y" for key in cls.KEYS)
        own = [Binding(key.keys, key.action, priority=key.priority) for key in keys]
        cls.BINDINGS = [
            *cls.__dict__.get("BINDINGS", ()),
            *(each for each in own if each.key and each.action),
        ]
        super().__init_subclass__(**options)

    def __init__(self, *, unasked: bool = False) -> None:
        super().__init__()
        self.deaf_until = math.inf if unasked else 0.0
        """Keys that were pressed before this moment were meant for what it covers."""
        self._answered = False
        self.label, self.field = Static(), Input(max_length=self.WRITTEN_MOST)
        self.line = Horizontal(self.label, self.field, classes="-written")
        """A line to write in, hidden at first; see `write`."""
        self.writing = ""
        """What is written there; empty for nothing."""
        self.said = Static(id="said")
        """What the last key did, or why it did nothing."""
        self.keys = Static(classes="-keys")
        """The last line; see `show_keys`."""
        self.heading, self.hint = self.TITLE_TEXT, self.HINT
        """What the upper and the lower border say at first."""
        self.parts: Sequence[Widget] = ()
        """What stands in the box, from above; the keys stand below it."""
        self._box: Vertical | None = None
        """None until it is composed: what is shown before is shown again by `on_mount`."""

    def compose(self) -> ComposeResult:
        """The parts, and the keys."""
        yield self.box(*self.parts, classes=self.CLASSES)

    def box(self, *parts: Widget, title: str = "", classes: str = "") -> Vertical:
        """The box with its parts, and below them the keys, where the dialog has some."""
        if self.keys not in parts and (offered := keys_line(self.KEYS)):
            self.keys.update(offered)
            parts = (*parts, self.keys)
        self._box = box = Vertical(*parts, classes=classes)
        box.border_title = Content(clean_line(title or self.heading, limit=200))
        box.border_subtitle = hint_line(self.hint) if self.hint.strip() else None
        return box

    def halves(self, left: Widget, right: Widget) -> Container:
        """Two parts one below the other, side by side on a wide screen."""
        right.add_class("-below")
        return Container(left, right, classes="-halves")

    def set_title(self, title: str, hint: str) -> None:
        """Show another title, and what the lower border says."""
        if self._box is not None:
            self._box.border_title = Content(clean_line(title, limit=200).strip())
            self._box.border_subtitle = hint_line(clean_line(hint).lstrip(" ·"))

    def show_keys(self, keys: Iterable[DialogKey]) -> None:
        """Show the keys that do something now."""
        self.keys.update(keys_line(keys))

    def show_possible(self, may: Collection[str], *more: DialogKey) -> None:
        """Show the keys of what can be asked for now, and some others."""
        self.show_keys([*(key for key in self.KEYS if not key.request or key.request in may), *more])

    def key_of(self, request: str) -> DialogKey:
        """The key that asks for something."""
        return next(key for key in self.KEYS if key.request == request)

    def request(self, what: str, *args: object) -> None:
        """Have something done that the dialog cannot do itself; see `Requested`."""
        self.post_message(Requested(type(self).__name__, what, args))

    def say(self, text: str) -> None:
        """Say something until the next key's answer comes; line breaks stay."""
        self.said.update(Content("\n".join(clean_line(line) for line in text.splitlines())))
        self.said.display = bool(text)

    def write(self, what: str, label: str, text: str = "") -> None:
        """Let the operator write something in the line behind a label; `written` takes it."""
        self.writing, self.field.value = what, text
        self.label.update(Content(label))
        self.line.display = True
        self.add_class("-writing")
        # At once, so that letters typed fast behind the key are in the line.
        self.set_focus(self.field)

    def written(self, what: str, text: str) -> bool:
        """Take what was written; tells whether that was all of it."""
        return True

    def stop_writing(self) -> None:
        """Hide the line, and give the keys to the first pane again."""
        if self.writing:
            self.writing, self.line.display = "", False
            self.remove_class("-writing")
            self.set_focus(self.query(LinePane).first())

    @on(Input.Submitted)
    def _line_entered(self, event: Input.Submitted) -> None:
        if event.input is self.field and self.writing:
            event.stop()
            if self.written(self.writing, event.value.strip()):
                self.stop_writing()

    def on_mount(self) -> None:
        """Take keys a moment after it is seen; Textual calls it beside a subclass's own, as all of these."""
        self.call_after_refresh(self._hear)

    def _hear(self) -> None:
        self.deaf_until = monotonic() + DEAF_S if self.deaf_until else 0.0

    def refuse_early_key(self) -> None:
        """Say why a key does nothing yet."""
        if self._box is not None:
            self._box.border_subtitle = Content(JUST_OPENED)

    def on_resize(self) -> None:
        """Lay the halves out by the room there is."""
        self.set_class(0 < self.WIDE <= self.size.width, "-wide")
        self.set_class(self.size.height < self.SHORT, "-short")

    def fit_text(self, pane: FactsPane | LongText, others: int, *, widest: int = 100) -> None:
        """Give a text the lines that it needs, as far as other parts leave room."""
        lines = len(pane.lines_for(max(8, min(widest, self.size.width * 92 // 100) - 7)))
        pane.styles.height = max(3, min(lines, self.size.height - others))

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close with a choice; whatever comes behind it in a burst of keys chooses nothing any more."""
        if self._answered:
            return AwaitComplete()
        self._answered = True
        return super().dismiss(result)

    def action_open_editor(self) -> None:
        """Let the operator change the text of the larger field in an editor of their own."""
        self.run_worker(self._edit(self.query_one(TextArea)), exit_on_error=False)

    async def _edit(self, field: TextArea) -> None:
        from widgets.base.external_editor import EditorError, edited  # late: few ever come here

        try:
            field.load_text(clean(await edited(self.app, field.text)))
        except EditorError as error:
            self.notify(str(error), severity="error")

    def action_picture(self) -> None:
        """Show as a picture what the dialog lists."""
        self.request("picture")

    def action_press(self, key: str) -> None:
        """Press a key, as a click on its name does; from the box it would not bubble past the box."""
        self.app.call_later(self.app.simulate_key, key)

    def action_choose(self, choice: Any) -> None:
        """Close with a choice."""
        self.dismiss(choice)

    def action_close(self) -> None:
        """Leave the line; else close without choosing anything."""
        if self.writing:
            self.stop_writing()
        else:
            self.dismiss(None)


class ListDialog(BoxDialog[None], Generic[Model]):
    """A list of what a model has; its opener brings another model by `show`.

    A dialog of this kind says how its rows are made, and asks for what is wanted by `request`.
    """

    LIST_TITLE: ClassVar[str] = ""
    """What the keys of the list are listed under."""
    EMPTY: ClassVar[str] = ""
    """What is said where there are no rows."""
    MARKS: ClassVar[bool] = True

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        """What is shown."""
        self.list = LinePane(title=self.LIST_TITLE, empty=self.EMPTY, marks=self.MARKS, loads=True, id="list")
        self.heading = getattr(model, "title", "") or self.TITLE_TEXT
        self.parts = (self.list, self.said)

    def rows(self) -> Sequence[Row]:
        """The rows of the model."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """The list has the focus, unless the model has something written at once."""
        self.set_focus(self.list)
        self.show(self.model)

    def show(self, model: Model) -> None:
        """Show this model; the cursor stays on its row, and what the dialog itself said last stays, too."""
        before, self.model = self.model, model
        self.list.set_notice(getattr(model, "notice", None))
        self.list.set_rows(self.rows())
        if (message := getattr(model, "said", "")) != getattr(before, "said", "") or before is model:
            self.say(message)


class RowsDialog(ListDialog[ListModel]):
    """Rows that the projection made; keys ask for something of the row under the cursor."""

    CHOOSING: ClassVar[str] = ""
    """What enter and a double click ask for."""

    def show(self, model: ListModel) -> None:
        """Show this model; the cursor and what was said stay."""
        self.model = model
        self.list.set_notice(model.notice)
        self.list.set_rows(model.rows)

    def action_ask(self, what: str) -> None:
        """Ask for something of the row under the cursor; its key is empty where there is none."""
        if not self.writing:
            self.request(what, self.list.cursor)

    @on(RowChosen, "#list")
    def _asked(self) -> None:
        if self.CHOOSING:
            self.action_ask(self.CHOOSING)


def show_problems(status: Static, problems: Sequence[str], fine: str) -> None:
    """Show what is wrong with a field, or that nothing is."""
    status.set_class(not problems, "-fine")
    lines = [f"✗ {clean_line(problem)}" for problem in problems[:4]] or [f"✓ {fine}"]
    status.update(Content("\n".join(lines)))


class ConfirmDialog(BoxDialog[bool]):
    """Asks; `y` agrees, all else that closes it does not. Enter does nothing, so that no habit agrees.

    Args:
        question: what is asked.
        consequence: what will happen, and whether it can be undone.
        yes: what agreeing is called.
        no: what not agreeing is called.
    """

    TITLE_TEXT, HINT, CLASSES = "Please confirm", " ", "-question"

    def __init__(self, question: str, consequence: str = "", yes: str = "yes", no: str = "no") -> None:
        super().__init__()
        parts = [Static(Content(clean(question)), id="question")]
        if consequence:
            parts.append(Static(Content(clean(consequence)), id="consequence"))
        keys = (DialogKey("y", "agree", clean_line(yes)), DialogKey("n", "close", clean_line(no)))
        self.parts = (*parts, Static(keys_line(keys, "     "), classes="-keys"))

    def action_agree(self) -> None:
        """Agree."""
        self.dismiss(True)

    def action_close(self) -> None:
        """Do not agree."""
        self.dismiss(False)


TEXT_LIMIT = 200_000
"""Characters that are taken."""


class TextDialog(BoxDialog[str]):
    """A text to be read: in sections, made for each width, or as it is with its first line as a heading."""

    AUTO_FOCUS = "LinePane"
    HINT = "↑ ↓ scroll · Y copy · esc close"

    def __init__(self, title: str, text: str | Sequence[Section] | Render) -> None:
        super().__init__()
        self.heading = title
        self._made = callable(text)
        if callable(text):
            self._text: LinePane = FactsPane(render=text)
            return
        if isinstance(text, str):
            head, _, rest = text.partition("\n")
            text = (Section(head, rest, "text"),)
        self._text = long = LongText()
        long.show(tuple(text))

    def compose(self) -> ComposeResult:
        """The text, which has the focus, so that arrows scroll."""
        yield self.box(self._text, classes="" if self._made else "-long")


class WriteDialog(BoxDialog[str]):
    """Gives what was written, or None.

    Args:
        title: above the text.
        about: what happens to it.
        text: what stands there at first; cleaned.
        check: says what is wrong with a text, in sentences.
    """

    HINT = "ctrl+s send · ctrl+e your editor · esc cancel"

    def __init__(
        self, title: str, about: str, text: str = "", check: Callable[[str], list[str]] = lambda text: []
    ) -> None:
        super().__init__()
        self.heading, self._check = title, check
        self._before, self._warned = clean(text), False
        self._text = TextArea(self._before)
        self._problem = Static(classes="-problems")
        self.parts = (Static(Content(clean(about)), id="about"), self._text, self._problem)

    def on_mount(self) -> None:
        """It can be typed at once."""
        self._text.focus()
        self._changed()

    @on(TextArea.Changed)
    def _changed(self) -> None:
        self._warned = False
        problems = self._check(self._text.text)
        self._problem.update(Content("\n".join(f"✗ {clean_line(each)}" for each in problems[:4])))

    def action_close(self) -> None:
        """Leave; what was changed is dropped only by a second escape."""
        if self._text.text != self._before and not self._warned:
            self._warned = True
            self._problem.update(Content("esc again drops what you wrote; ctrl+s sends it"))
        else:
            self.dismiss(None)

    def action_send(self) -> None:
        """Give everything that was typed before this key."""
        self._text.call_later(self._send)

    def _send(self) -> None:
        text = self._text.text.strip()
        if not text:
            self._problem.update(Content("there is nothing to send yet"))
        elif len(text) > TEXT_LIMIT:
            self._problem.update(Content(f"{len(text):,} characters; {TEXT_LIMIT:,} are taken"))
        elif not self._check(text):
            self.dismiss(text)
