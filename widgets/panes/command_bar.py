"""The command bar: one line in which the operator types what is to be done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os.path import commonprefix
from typing import Literal, Self

from rich.cells import cell_len, set_cell_size
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from engine.core.text import clean, clean_line
from engine.value import dataclass
from widgets.base.line_pane import LinePane, Requested, RowChosen
from widgets.base.pane_words import Described
from widgets.base.rows import Row
from widgets.base.text_layout import Piece, width_of

HISTORY_KEPT = 500
LINE_LIMIT = 20_000
"""Characters of a line."""
POPUP_LINES = 8
POPUP_FRAME = 5
"""Cells of a completion's line that its border, its gutter and its scroll bar take."""
MESSAGE_MARKS: dict[str, str] = {"ok": "✓", "error": "✗ error:", "asks": "?", "note": "·"}
CUT = " … :notices"
"""Behind a message that is longer than the line."""
ABOUT = "a command, or a goal for the agent"
HINT = "tab completes · ↑ history · ctrl+o what would it do? · esc leaves"


@dataclass(frozen=True, slots=True)
class Completion:
    """A way the line may continue."""

    text: str
    """The whole line as it would be."""
    help: str = ""
    """What it does, in a few words."""


MessageKind = Literal["ok", "error", "asks", "note"]


class CompletionList(LinePane, can_focus=False):
    """The completions above the line; the input keeps the focus, and a click takes one."""

    STARTS_ON_FIRST = False


class CommandBar(Described, Vertical):
    """Prompt, input, completions above it, and below it the result of the last command.

    The completion callable is asked at every change of the line, on the event loop: it must
    answer from memory.
    """

    BINDING_GROUP_TITLE = "Command"

    def __init__(
        self,
        complete: Callable[[str], Sequence[Completion]] | None = None,
        *,
        hint: Callable[[str], str] | None = None,
        history: Iterable[str] = (),
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._complete = complete
        self._hint = hint
        self._history = list(history)[-HISTORY_KEPT:]
        self._place = len(self._history)
        self._draft = ""
        self.message: tuple[str, MessageKind] = ("", "note")
        """The result of the last command."""
        self.completions: tuple[Completion, ...] = ()
        """The completions on offer."""
        self._at = -1
        self._list = CompletionList(click_chooses=True)
        self.input = Input(compact=True, select_on_focus=False, placeholder=ABOUT, max_length=LINE_LIMIT)
        """The line itself."""
        self._message = Static(Content(HINT), id="message", classes="-note")

    def compose(self) -> ComposeResult:
        """Popup, line and message."""
        yield self._list
        with Horizontal():
            yield Static(Content("❯"), id="prompt")
            yield self.input
        yield self._message

    @property
    def history(self) -> tuple[str, ...]:
        """What was entered, the newest last."""
        return tuple(self._history)

    def focus(self, scroll_visible: bool = True, from_app_focus: bool = False) -> Self:
        """Focus the line."""
        self.input.focus(scroll_visible)
        return self

    def show(self, text: str, kind: MessageKind) -> None:
        """Show the result of the last command."""
        if (text, kind) != self.message:
            self.message = (text, kind)
            self._show_message()

    def clear(self) -> None:
        """Take the line away, as when what it says was done."""
        self._close_popup()
        self._fill("")
        self._show_message()

    def begin(self, text: str) -> None:
        """Begin a line; what stands there goes where `up` finds it."""
        self._remember()
        self.clear()
        self.set_text(text)

    def _remember(self) -> str:
        text = one_line(self.input.value)
        if text and self._history[-1:] != [text]:
            self._history = [*self._history, text][-HISTORY_KEPT:]
        self._place, self._draft = len(self._history), ""
        return text

    def set_text(self, text: str) -> None:
        """Put a text into the line for the operator to finish; a blank at its end stays."""
        self._fill(one_line(text) + " " * text.endswith(" "))

    def _show_message(self) -> None:
        text, shown = clean_line(self.message[0]), self.message[1]
        line = f"{MESSAGE_MARKS[shown]} {text}" if text else HINT
        if text and cell_len(line) > (width := self._message.size.width) > len(CUT):
            line = set_cell_size(line, width - len(CUT)) + CUT
        self._message.update(Content(line), layout=False)
        for kind in MESSAGE_MARKS:
            self._message.set_class(shown == kind, f"-{kind}")

    def _request(self, what: str, *args: object) -> None:
        self.post_message(Requested("CommandBar", what, args))

    # The line

    def _fill(self, text: str) -> None:
        with self.prevent(Input.Changed):
            self.input.value = text
        self.input.cursor_position = len(text)
        self._request("line", text)

    @on(Input.Changed)
    def _line_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._offer(event.value)
        self._show_hint(event.value)
        self._request("line", event.value)

    def _show_hint(self, line: str) -> None:
        """Say how the word at hand is used, while it is typed; else the result of the last command."""
        text = self._hint(line) if self._hint is not None and line.strip() else ""
        if text:
            self._message.update(Content(f"  {clean_line(text)}"), layout=False)
        else:
            self._show_message()

    def action_enter(self) -> None:
        """Have done what the line says; it stays until it is cleared."""
        self._close_popup()
        self._show_message()
        if text := self._remember():
            self._request("entered", text)

    def action_preview(self) -> None:
        """Ask what the line would do; it stays as it is."""
        text = one_line(self.input.value)
        if text:
            self._close_popup()
            self._request("preview", text)

    def action_leave(self) -> None:
        """Leave the bar; `up` gives the line back."""
        text = self._remember()
        self.clear()
        self._request("leave", text)

    # History

    def action_older(self) -> None:
        """The entry before; what is being typed is kept for the way back."""
        if self._place == len(self._history):
            self._draft = self.input.value
        if self._place > 0:
            self._go_to(self._place - 1)

    def action_newer(self) -> None:
        """The entry after, and in the end what was being typed."""
        if self._place < len(self._history):
            self._go_to(self._place + 1)

    def _go_to(self, place: int) -> None:
        self._close_popup()
        self._place = place
        self._fill(self._history[place] if place < len(self._history) else self._draft)

    # Completion

    def _offer(self, line: str) -> None:
        self.completions = tuple(self._complete(line)) if self._complete and line.strip() else ()
        self._at = -1
        if not self.completions or [each.text for each in self.completions] == [line]:
            self._close_popup()
            return
        self._list.move_cursor("")
        rows = _in_columns(self.completions, self.size.width // 2)
        self._list.set_rows(rows)
        lines = min(POPUP_LINES, len(self.completions))
        width = max(width_of(row.pieces) for row in rows) + POPUP_FRAME
        self._list.styles.width = max(24, min(self.size.width - 2, width))
        self._list.styles.height = lines + 2
        self._list.styles.offset = (1, -(lines + 2))
        self._list.display = True

    def _close_popup(self) -> None:
        self.completions, self._at = (), -1
        self._list.display = False

    def action_complete(self, by: int) -> None:
        """Complete as far as all completions agree; after that go through them."""
        if not self.completions:
            self._offer(self.input.value)
        if not self.completions:
            return
        texts = [each.text for each in self.completions]
        common = commonprefix(texts)  # noqa: RUF071 - by characters, as it is meant
        line = self.input.value
        if self._at < 0 and len(common) > len(line) and common.startswith(line):
            self._fill(common)
            if len(texts) == 1:
                self._close_popup()
            return
        self._at = (self._at + by) % len(texts) if self._at >= 0 else (0 if by > 0 else len(texts) - 1)
        self._list.move_cursor(texts[self._at])
        self._fill(texts[self._at])

    @on(RowChosen)
    def _picked(self, event: RowChosen) -> None:
        event.stop()
        self._close_popup()
        self._fill(event.key)


def one_line(text: str) -> str:
    """What was typed, without control characters and with every blank that stands within it."""
    return clean(text).replace("\n", " ").strip()


def _in_columns(completions: Sequence[Completion], most: int) -> list[Row]:
    """Completions one below the other, and in a second column, after at most so many cells, what they do."""
    texts = [clean_line(each.text) for each in completions]
    column = min(max(map(cell_len, texts)), most)
    return [
        Row(
            each.text,
            (
                Piece(text + " " * (column - cell_len(text))),
                Piece(f"  {clean_line(each.help)}" if each.help else "", "dim"),
            ),
        )
        for each, text in zip(completions, texts, strict=True)
    ]
