"""Search everything: words in, what was found as it comes, and one of these in full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.dialogs.long_text import LongText, Section
from widgets.line_pane import Notice
from widgets.pieces import Piece
from widgets.rows import Row, RowPane

WORDS_LIMIT = 400


@dataclass(frozen=True, slots=True)
class SearchLine:
    """One thing that was found."""

    key: str
    """Its place in the search, which is its own."""
    source: str
    """`event`, `memory` or `file`."""
    ref: str
    when: str
    who: str
    kind: str
    text: str
    goes: bool = False
    """Whether it is an event of an agent, whose past can be looked at there."""


@dataclass(frozen=True, slots=True)
class SearchModel:
    """What the dialog shows; the words are those that these lines answer."""

    words: str = ""
    found: tuple[SearchLine, ...] = ()
    standing: str = ""
    """How far the search is, in words."""
    notice: Notice | None = None


class FoundList(RowPane):
    """What was found, newest first."""

    BINDING_GROUP_TITLE = "Found"
    EMPTY = "Type words and press enter: events, outputs, thoughts, prompts, memories and files are searched."
    DEFAULT_CSS = """
    FoundList, FoundList:focus { border: none; height: 1fr; min-height: 2; }
    """

    @dataclass
    class Chosen(Message):
        """One of them is to be read."""

        key: str

    def row_chosen(self, key: str) -> None:
        """Tell which was chosen."""
        self.post_message(self.Chosen(key))


class FoundText(LongText):
    """One of them in full."""


class SearchDialog(BoxDialog[None]):
    """Posts `SearchRequested` and `OpenRequested`; whoever opens it answers by `show` and `show_whole`."""

    DEFAULT_CSS = """
    SearchDialog > Vertical { height: 96%; max-width: 180; }
    SearchDialog FoundText { display: none; }
    SearchDialog.-reading FoundText { display: block; }
    SearchDialog.-reading FoundList { display: none; }
    SearchDialog #standing { height: 1; color: $foreground-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", id="search.words"),
        Binding("backspace,left", "back", "Back to the list", id="search.back"),
        Binding("v", "view", "Read it whole", id="search.view"),
        Binding("q", "close", "Close", id="search.close"),
    ]

    @dataclass
    class SearchRequested(Message):
        """The operator looks for something; empty words end the search."""

        words: str

    @dataclass
    class OpenRequested(Message):
        """The operator wants to see something that was found."""

        found: SearchLine

    @dataclass
    class GoRequested(Message):
        """The operator wants to be where something was found: at an event, in its agent's past."""

        found: SearchLine

    def __init__(self, words: str = "") -> None:
        super().__init__()
        self._model = SearchModel(words)
        self._words = words
        self._wanted = ""
        self._input = Input(words, placeholder='words, or "words together"', max_length=WORDS_LIMIT)
        self._list = FoundList()
        self._text = FoundText()
        self._standing = Static(id="standing")

    def compose(self) -> ComposeResult:
        """The words, what was found or one of it, and how far the search is."""
        with Vertical() as box:
            box.border_title = Content("Search everything")
            box.border_subtitle = "esc close"
            yield self._input
            yield self._list
            yield self._text
            yield self._standing
            yield Static(
                Content.from_markup(
                    "[@click=screen.search][bold]/[/] search[/]   [bold]enter[/] go there   "
                    "[@click=screen.view][bold]v[/] read it whole   "
                    "[@click=screen.back][bold]←[/] back to the list[/]   [bold]Y[/] copy"
                ),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """Words come first; where there are some, they are looked for."""
        if self._words:
            self._ask(self._words)
        else:
            self._input.focus()

    @property
    def words(self) -> str:
        """What is looked for now."""
        return self._words

    def show(self, model: SearchModel) -> None:
        """Show these, unless they answer older words."""
        if model.words == self._words:
            self._model = model
            self._list.set_notice(model.notice)
            self._list.set_rows([_row(one) for one in model.found])
            self._standing.update(Content(clean_line(model.standing)), layout=False)

    def show_whole(self, key: str, sections: tuple[Section, ...], *, at: int = 0) -> None:
        """Show one of them in full, with this section at the top."""
        if key == self._wanted:
            self._text.show(sections)
            self.set_class(True, "-reading")
            self._text.go_to(at)
            self._text.focus()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._ask(event.value.strip())

    def _ask(self, words: str) -> None:
        self._words = words
        self.action_back()
        self.show(SearchModel(words, notice=Notice("searching …", "loading") if words else None))
        self.post_message(self.SearchRequested(words))

    @on(FoundList.Chosen)
    def _chosen(self, event: FoundList.Chosen) -> None:
        event.stop()
        found = self._line(event.key)
        if found is not None and found.goes:
            self.post_message(self.GoRequested(found))
        elif found is not None:
            self._read(found)

    def _line(self, key: str) -> SearchLine | None:
        return next((one for one in self._model.found if one.key == key), None)

    def _read(self, found: SearchLine) -> None:
        self._wanted = found.key
        self.post_message(self.OpenRequested(found))

    def action_view(self) -> None:
        """Read what is under the cursor whole."""
        found = self._line(self._list.cursor)
        if found is not None:
            self._read(found)

    def action_search(self) -> None:
        """Type other words."""
        self.action_back()
        self._input.focus()

    def action_back(self) -> None:
        """Go back to the list."""
        self._wanted = ""
        self.set_class(False, "-reading")
        self._list.focus()

    def action_close(self) -> None:
        """Leave what is read; else close."""
        if self.has_class("-reading"):
            self.action_back()
        else:
            self.dismiss(None)


def _row(one: SearchLine) -> Row:
    head = f"{clean_line(one.when)} {clean_line(one.who, limit=24)} "
    return Row(
        one.key,
        (
            Piece(head, "dim"),
            Piece(f"{clean_line(one.kind, limit=40)} ", "accent"),
            Piece(clean_line(one.text)),
        ),
        tail=(Piece(clean_line(one.ref, limit=60), "dim"),),
        indent=2,
        most=3,
        copy=f"{clean_line(one.ref)} {clean_line(one.text)}",
    )
