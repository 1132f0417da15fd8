"""A guided session, a debate, a pipeline or a build: its parts, what one of them gave, and what is asked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from engine.core.text import clean, clean_line
from engine.value import dataclass
from widgets.base.asked import Asked, asked_lines
from widgets.base.dialog import DialogKey, ListDialog, WriteDialog
from widgets.base.facts import FactsPane, LongText, Section
from widgets.base.line_pane import Notice, RowChosen, RowHighlighted
from widgets.base.rows import Row

SessionRequest = Literal["step_mode", "again", "end"]
PART = " part "
"""What stands in the key of a row between the row whose text it shares and its own number."""


@dataclass(frozen=True, slots=True)
class SessionModel:
    """What the dialog shows."""

    id: str = ""
    """The handoff or build, for the opener of the dialog."""
    title: str = ""
    state: str = ""
    """Mark and word."""
    head: str = ""
    """What it is about, such as a motion."""
    rows: tuple[Row, ...] = ()
    texts: tuple[tuple[str, tuple[Section, ...]], ...] = ()
    """By key of a row: what is read of it; by an empty key what is read of all others."""
    asked: Asked | None = None
    writes: Literal["", "line", "long"] = ""
    """Where the answer is written as soon as it is asked for: in a line, in a larger field, or nowhere."""
    value: str = ""
    """What stands there at first."""
    may: frozenset[SessionRequest] = frozenset()
    """What can be asked for now."""
    why_not: str = ""
    """Why the rest cannot."""
    said: str = ""
    notice: Notice | None = None


ANSWERS = DialogKey("", "", "answer", shown="0–9")


class SessionDialog(ListDialog[SessionModel]):
    """Posts answers and what is wanted; its opener brings another model by `show`."""

    WIDE, SHORT, CLASSES, LIST_TITLE = 118, 30, "-full", "Parts"
    WRITTEN_MOST = 20_000
    EMPTY = "Nothing of it is there yet."
    # These come before the focus, so that a burst of keys is taken in its order.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", show=False, priority=True),
        *(Binding(key, f"digit({key})", "Answer", show=False, priority=True) for key in "0123456789"),
    ]

    def __init__(self, model: SessionModel) -> None:
        super().__init__(model)
        self._head, self._text = Static(id="head"), LongText(title="Text", id="text")
        self._asks = FactsPane(title="Asked", id="asks", classes="-below")
        self._offered = ""
        """The question for which a field was opened."""
        self._answered_question = ("", "")
        """Title and answer of the question that was answered last."""
        self.parts = (self._head, self.halves(self.list, self._text), self._asks, self.said, self.line)

    def rows(self) -> Sequence[Row]:
        """Those of the model."""
        return self.model.rows

    def show(self, model: SessionModel) -> None:
        """Show this; what is being written stays while the question is the same."""
        super().show(model)
        self.set_title(model.title, f"{clean_line(model.state, limit=100)} · esc close")
        self._head.update(Content(clean(model.head, limit=2_000)))
        self._head.display = bool(model.head)
        self.show_possible(model.may, *([ANSWERS] if model.asked is not None else []))
        self._look()
        self._show_asked()
        asked = model.asked.id if model.asked is not None else ""
        if asked != self._offered:
            self._offered = asked
            self.stop_writing()
            if model.asked is not None and model.writes:
                title, answer = self._answered_question
                self._write(0, "answer:", answer if title == model.asked.title else model.value)

    @on(RowHighlighted, "#list")
    def _look(self) -> None:
        texts, cursor = dict(self.model.texts), self.list.cursor
        text = texts.get(cursor) or texts.get(cursor.partition(PART)[0]) or texts.get("")
        self._text.show(text or (Section("", "It gave nothing yet."),))

    @on(RowChosen, "#list")
    def _to_text(self) -> None:
        self._text.focus()

    def on_resize(self) -> None:
        """The question is cut to the room there is."""
        self.call_after_refresh(self._show_asked)

    def _show_asked(self) -> None:
        asked, height = self.model.asked, max(1, self._asks.content_size.height)
        self._asks.display = asked is not None
        if asked is not None:
            self._asks.show_text((asked, height), lambda width: asked_lines(asked, width, height))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a line is written, its letters are the line's."""
        if self.writing and action in ("digit", "request"):
            return False
        return super().check_action(action, parameters)

    def action_digit(self, number: int) -> None:
        """Choose an answer by its number; 0 writes one."""
        asked = self.model.asked
        if asked is None:
            self.say(self.model.why_not or "nothing is asked now")
        elif number == 0 and asked.free:
            self._write(0, "answer:", self.model.value)
        elif not 1 <= number <= len(asked.options):
            self.say(f"{asked.id} has no answer {number}")
        elif (option := asked.options[number - 1]).text:
            self._write(number, f"{clean_line(option.label)}:", option.draft)
        else:
            self._send(asked.id, number, "")

    def _write(self, number: int, label: str, text: str) -> None:
        asked = self.model.asked
        assert asked is not None
        if "\n" in text or (number == 0 and self.model.writes == "long"):
            dialog = WriteDialog(asked.title, asked.question, text)
            self.app.push_screen(dialog, partial(self._long_written, asked.id, number))
        else:
            self.write(str(number), label, clean_line(text, limit=self.WRITTEN_MOST))

    def _long_written(self, asked: str, number: int, text: str | None) -> None:
        if text:
            self._send(asked, number, text)

    def _send(self, asked: str, number: int, text: str) -> None:
        now = self.model.asked
        if now is None or now.id != asked:
            self.say(f"{clean_line(asked)} is open no longer; what was written is not sent")
        else:
            self._answered_question = ("", "") if number else (now.title, text)
            self.request("answered", self.model.id, asked, number, text)

    def written(self, what: str, text: str) -> bool:
        """Take an answer."""
        asked, number = self.model.asked, int(what)
        may_be_empty = asked is not None and number and asked.options[number - 1].text == "may"
        if not text and not may_be_empty:
            self.say("write something, or leave with esc")
            return False
        self._send(self._offered, number, text)
        return True

    def action_request(self, request: SessionRequest) -> None:
        """Ask for something that can be asked for now."""
        if request in self.model.may:
            self.request("wanted", self.model.id, request)
        else:
            self.say(f"{self.key_of(request).words}: {self.model.why_not or 'that cannot be asked for now'}")


class BuilderDialog(SessionDialog):
    """A build of an agent: its phases, what was found, the file to be, and the choice that it needs."""
