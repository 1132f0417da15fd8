"""What the journal answers: why something is, and what was found; and what happened since the last look."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.content import Content
from textual.widgets import Input, Static

from engine.core.journal import of_agent
from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.dialog import BoxDialog, ListDialog
from widgets.base.facts import LongText, Section
from widgets.base.line_pane import LinePane, Notice, RowChosen
from widgets.base.rows import Row, blank
from widgets.base.text_layout import Piece

STYLES = {
    "goal": "strong",
    "plan": "accent",
    "success": "success",
    "warning": "warning",
    "error": "error",
    "missing": "error",
    "operator": "accent",
    "thought": "dim",
    "session": "dim",
}
"""Styles of the kinds of lines; others have that of text."""


@dataclass(frozen=True, slots=True)
class WhyModel:
    """What the dialog shows."""

    what: str
    """What was asked about, as it can be asked again; empty where nothing was."""
    way: str
    """`backward`, `forward` or `wrong`; any other word for lines that only name their events."""
    title: str
    rows: Sequence[Row] = ()
    """An event each, as `why_row` makes them."""
    notes: tuple[str, ...] = ()
    """What is to be said beside the chain."""
    notice: Notice | None = None


def _rows(model: WhyModel) -> list[Row]:
    """The chain, an event a row, and the notes below it; above it where they say what is in doubt."""
    rows = [*model.rows]
    notes = [
        Row(f"note:{at}", (Piece(clean_line(note), "warning"),), selectable=False, indent=2, most=3)
        for at, note in enumerate(model.notes)
    ]
    between = [blank("blank")] if notes and rows else []
    return [*notes, *between, *rows] if model.way == "wrong" else [*rows, *between, *notes]


def why_row(at: int, ref: str, lead: str, glyph: str, kind: str, text: str, time: str = "") -> Row:
    """An event of the chain; its key names it, unless it is missing.

    Args:
        at: its place.
        ref: its reference; empty for a line that is no event.
        lead: the branches that it lies on, drawn before its text.
        glyph: its sign.
        kind: what it is; `missing` for an event that the journal lacks.
        text: in words.
        time: of day.
    """
    text, style = clean_line(text), STYLES.get(kind, "text")
    return Row(
        f"{at} {'' if kind == 'missing' else ref}",
        (Piece(lead, "dim"), Piece(text, style)),
        tail=(Piece(f" {clean_line(ref)} {clean_line(time)}", "dim"),),
        mark=Piece(clean_line(glyph) or " ", style),
        indent=len(lead) + 2,
        most=3,
        copy=f"{clean_line(ref)} {text}",
    )


class WhyDialog(ListDialog[WhyModel]):
    """A chain; enter asks on from the event under the cursor, backspace goes back to the last question."""

    LIST_TITLE, EMPTY = "Why", "Nothing is recorded of it."

    def __init__(self, model: WhyModel) -> None:
        super().__init__(model)
        self._before: list[tuple[str, str]] = []

    def rows(self) -> list[Row]:
        """The chain, an event a row, and the notes."""
        return _rows(self.model)

    def show(self, model: WhyModel) -> None:
        """Show another chain, from its first line on."""
        super().show(model)
        self.set_title(clean_line(model.title, limit=120), self.HINT)
        self.list.move_cursor(model.rows[0].key if model.rows else "")

    @property
    def _event(self) -> str:
        """The event under the cursor; empty for none."""
        return self.list.cursor.partition(" ")[2]

    def action_event(self, what: str) -> None:
        """Have the event under the cursor marked as wrong or no more, or what depends on it taken back."""
        if self._event:
            self.request(what, self._event)

    @on(RowChosen)
    def action_ask(self) -> None:
        """Ask for the causes of the event under the cursor."""
        if self._event not in ("", self.model.what):
            self._ask(self._event, "forward" if self.model.way in ("forward", "wrong") else "backward")

    def action_way(self, way: str) -> None:
        """Ask the other way about the same thing."""
        if self.model.what and way != self.model.way:
            self._ask(self.model.what, way)

    def _ask(self, what: str, way: str) -> None:
        if self.model.what:
            self._before.append((self.model.what, self.model.way))
        self.request("asked", what, way)

    def action_back(self) -> None:
        """Go back to the question before."""
        if self._before:
            self.request("asked", *self._before.pop())


WORDS_LIMIT = 400


@dataclass(frozen=True, slots=True)
class SearchModel:
    """What the dialog shows; the words are those that these lines answer."""

    words: str = ""
    found: tuple[Row, ...] = ()
    """Keys are source and reference: `event:pilot-1:7`."""
    standing: str = ""
    """How far the search is, in words."""
    notice: Notice | None = None


class SearchDialog(BoxDialog[None]):
    """Posts `SearchRequested` and `OpenRequested`; its opener answers by `show` and `show_whole`."""

    TITLE_TEXT = "Search everything"

    def __init__(self, words: str = "") -> None:
        super().__init__()
        self._model = SearchModel(words)
        self.words = words
        """What is looked for now."""
        self._reads = ""
        self._input = Input(words, placeholder='words, or "words together"', max_length=WORDS_LIMIT)
        empty = "Type words and press enter: events, outputs, thoughts, prompts and memories are searched."
        self._list = LinePane(title="Results", empty=empty, id="results")
        self._text = LongText()
        self._standing = Static(id="standing")
        self.parts = (self._input, self._list, self._text, self._standing)

    def on_mount(self) -> None:
        """Words come first; where there are some, they are looked for."""
        if self.words:
            self._ask(self.words)
        else:
            self._input.focus()

    def show(self, model: SearchModel) -> None:
        """Show these, unless they answer older words."""
        if model.words == self.words:
            self._model = model
            self._list.set_notice(model.notice)
            self._list.set_rows(model.found)
            self._standing.update(Content(clean_line(model.standing)), layout=False)

    def show_whole(self, key: str, sections: tuple[Section, ...]) -> None:
        """Show one of them in full."""
        if key == self._reads:
            self._text.show(sections)
            self.set_class(True, "-reading")
            self._text.go_to(0)
            self._text.focus()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._ask(event.value.strip())

    def _ask(self, words: str) -> None:
        self.words = words
        self.action_back()
        self.show(SearchModel(words, notice=Notice("searching …", "loading") if words else None))
        self.request("search", words)

    @on(RowChosen)
    def _chosen(self) -> None:
        source, _, ref = self._list.cursor.partition(":")
        if source == "event" and of_agent(ref.rpartition(":")[0]):
            self.request("go", ref)
        else:
            self.action_view()

    def action_view(self) -> None:
        """Read what is under the cursor whole."""
        self._reads = self._list.cursor
        if self._reads:
            self.request("open", self._reads)

    def action_search(self) -> None:
        """Type other words."""
        self.action_back()
        self._input.focus()

    def action_back(self) -> None:
        """Go back to the list."""
        self._reads = ""
        self.set_class(False, "-reading")
        self._list.focus()

    def action_close(self) -> None:
        """Leave what is read; else close."""
        if self.has_class("-reading"):
            self.action_back()
        else:
            self.dismiss(None)
