"""The memory browser: what the agent remembers, found by words and likeness, with links and history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.line_pane import Notice
from widgets.memory_detail import DetailPane, MemoryDetail
from widgets.pieces import Piece, bar
from widgets.rows import Row, RowPane

WIDE = 112
"""Columns from which on results and detail stand side by side."""
QUERY_LIMIT = 2_000
BAR_CELLS = 5
IMPORTANCE_STEP = 1.0
MOST_IMPORTANT = 10.0


@dataclass(frozen=True, slots=True)
class MemorySearch:
    """What the operator looks for."""

    query: str = ""
    """Words; empty lists the newest."""
    level: str = ""
    """Empty for any."""
    type: str = ""
    everywhere: bool = False
    """True for the memories of all work, else those of the agent's present goal."""


@dataclass(frozen=True, slots=True)
class FoundLine:
    """One memory that was found."""

    id: str
    text: str
    level: str
    type: str
    age: str
    importance: float
    """From 0 to 10."""
    score: float | None = None
    """From 0 to 1; None where nothing was looked for."""
    how: str = ""
    """What the score is made of: `words 0.91 likeness 0.40`."""


@dataclass(frozen=True, slots=True)
class BrowserModel:
    """What the dialog shows; the search is that which these results answer."""

    agent: str = ""
    work: str = ""
    """The workflow of the agent's present goal, in words."""
    search: MemorySearch = MemorySearch()
    found: tuple[FoundLine, ...] = ()
    levels: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    note: str = ""
    """What is to be said of the search, such as that it is without likeness."""
    notice: Notice | None = None
    """Why there are no results."""


class ResultList(RowPane):
    """The memories found, best first."""

    BINDING_GROUP_TITLE = "Memories"
    EMPTY = "No memory fits. Press / to look for something else, W to look in all work."
    DEFAULT_CSS = """
    ResultList, ResultList:focus { border: none; height: 1fr; min-height: 2; }
    """

    @dataclass
    class Highlighted(Message):
        """The cursor is on a memory."""

        memory_id: str

    @dataclass
    class Chosen(Message):
        """A memory is to be read."""

        memory_id: str

    def row_highlighted(self, key: str) -> None:
        """Show it beside the list."""
        self.post_message(self.Highlighted(key))

    def row_clicked(self, key: str, chain: int) -> None:
        """A click shows it too."""
        self.post_message(self.Highlighted(key))
        super().row_clicked(key, chain)

    def row_chosen(self, key: str) -> None:
        """Go to its detail."""
        self.post_message(self.Chosen(key))


class MemoryBrowser(BoxDialog[None]):
    """Looks for memories, follows their links, and posts what the operator wants of them.

    Whoever opens it answers `SearchRequested` by `show`, and `OpenRequested` by `show_detail`.
    """

    DEFAULT_CSS = """
    MemoryBrowser > Vertical { height: 96%; max-width: 180; }
    MemoryBrowser #filters, MemoryBrowser #note { height: 1; }
    MemoryBrowser #filters { link-style: none; }
    MemoryBrowser #note { color: $text-warning; }
    MemoryBrowser #halves { height: 1fr; layout: vertical; }
    MemoryBrowser ResultList { height: 2fr; }
    MemoryBrowser DetailPane { height: 3fr; }
    MemoryBrowser.-wide #halves { layout: horizontal; }
    MemoryBrowser.-wide ResultList { width: 2fr; height: 1fr; }
    MemoryBrowser.-wide DetailPane { width: 3fr; height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", id="memories.search"),
        Binding("l", "level", "Level", id="memories.level"),
        Binding("t", "type", "Type", id="memories.type"),
        Binding("T", "type(-1)", "Type before", id="memories.type-back"),
        Binding("W", "everywhere", "All work", id="memories.everywhere"),
        Binding("tab", "other_half", "Results or detail", id="memories.half", priority=True),
        Binding("backspace,left", "back", "Back", id="memories.back"),
        Binding("plus", "more", "More important", id="memories.more"),
        Binding("minus", "less", "Less important", id="memories.less"),
        Binding("p", "pin", "Pin", id="memories.pin"),
        Binding("f", "focus_memory", "Focus", id="memories.focus"),
        Binding("E", "evict", "Take out of mind", id="memories.evict"),
        Binding("delete,D", "forget", "Forget", id="memories.forget"),
        Binding("M,q", "close", "Close", id="memories.close"),
    ]

    @dataclass
    class SearchRequested(Message):
        """The operator looks for something."""

        search: MemorySearch

    @dataclass
    class OpenRequested(Message):
        """The operator wants to see a memory."""

        memory_id: str

    @dataclass
    class ChangeRequested(Message):
        """The operator wants something of the memory that is shown."""

        memory_id: str
        how: str
        """`pin`, `unpin`, `evict`, `focus`, `forget` or `importance`."""
        importance: float = 0.0

    def __init__(self, model: BrowserModel, *, opens: str = "") -> None:
        """Show a model, with this memory open."""
        super().__init__()
        self._model = model
        self._search = model.search
        self._opens = opens
        self._trail: list[str] = []
        """Memories that were open before, the newest last."""
        self._input = Input(
            model.search.query,
            placeholder="words to look for; empty lists the newest",
            max_length=QUERY_LIMIT,
        )
        self._filters = Static(id="filters")
        self._note = Static(id="note")
        self._list = ResultList()
        self._detail = DetailPane()

    def compose(self) -> ComposeResult:
        """What is looked for, what was found, and one of these in full."""
        with Vertical() as box:
            agent = clean_line(self._model.agent, limit=100)
            box.border_title = Content(f"Memory of {agent}" if agent else "Memory")
            box.border_subtitle = "esc close"
            yield self._input
            yield self._filters
            with Container(id="halves"):
                yield self._list
                yield self._detail
            yield self._note
            yield Static(
                Content.from_markup(
                    "[@click=screen.search][bold]/[/] search[/]  "
                    "[@click=screen.other_half][bold]tab[/] detail[/]  "
                    "[@click=screen.pin][bold]p[/] pin[/]  "
                    "[@click=screen.focus_memory][bold]f[/] focus[/]  "
                    "[@click=screen.evict][bold]E[/] evict[/]  "
                    "[@click=screen.more][bold]+[/][/] "
                    "[@click=screen.less][bold]-[/] weight[/]  "
                    "[@click=screen.forget][bold]D[/] forget[/]"
                ),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """The results have the focus."""
        self._show()
        self._list.focus()
        if self._opens:
            self._open(self._opens)

    def on_resize(self, event: events.Resize) -> None:
        """Put the halves side by side where there is room."""
        self.set_class(event.size.width >= WIDE, "-wide")

    # In

    def show(self, model: BrowserModel) -> None:
        """Show these results, unless they answer an older search."""
        if model.search == self._search and model != self._model:
            self._model = model
            self._show()

    def show_detail(self, detail: MemoryDetail | None) -> None:
        """Show a memory; None when it is not there any more."""
        self._detail.show(detail)

    @property
    def search(self) -> MemorySearch:
        """What is looked for now."""
        return self._search

    @property
    def opened(self) -> str:
        """The memory whose detail is shown or wanted."""
        return self._opens

    def _show(self) -> None:
        model = self._model
        self._list.set_notice(model.notice)
        self._list.set_rows([_row(one) for one in model.found])
        self._tell()
        self._draw_filters()
        if not self._opens and model.found:
            self._open(model.found[0].id)

    def _tell(self) -> None:
        """Say what is to be said of the search, and what the open memory's score is made of."""
        how = next((one.how for one in self._model.found if one.id == self._opens), "")
        parts = (f"{self._opens}: {how}" if how else "", self._model.note)
        told = " · ".join(clean_line(part) for part in parts if part)
        self._note.update(Content(told), layout=False)

    def _draw_filters(self) -> None:
        search = self._search
        work = (
            "all work" if search.everywhere else clean_line(self._model.work, limit=60) or "this agent's work"
        )
        text = Content.assemble(
            Content.from_markup("[@click=screen.level][bold]l[/] level [/]"),
            (clean_line(search.level) or "any", "$text-primary"),
            Content.from_markup("  [@click=screen.type][bold]t[/] type [/]"),
            (clean_line(search.type).replace("_", " ") or "any", "$text-primary"),
            Content.from_markup("  [@click=screen.everywhere][bold]W[/] in [/]"),
            (work, "$text-primary"),
        )
        self._filters.update(text, layout=False)

    # What is looked for

    def action_search(self) -> None:
        """Type what to look for."""
        self._input.focus()

    def action_level(self) -> None:
        """The next level, or any again."""
        self._ask(replace(self._search, level=_next(self._search.level, self._model.levels, 1)))

    def action_type(self, by: int = 1) -> None:
        """The next type, or any again."""
        self._ask(replace(self._search, type=_next(self._search.type, self._model.types, by)))

    def action_everywhere(self) -> None:
        """In the memories of all work, or of the present goal's again."""
        self._ask(replace(self._search, everywhere=not self._search.everywhere))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._ask(replace(self._search, query=event.value.strip()))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._list.focus()

    def _ask(self, search: MemorySearch) -> None:
        if search != self._search:
            self._search = search
            self._opens = ""
            self._trail.clear()
            self._draw_filters()
            self.post_message(self.SearchRequested(search))

    def again(self) -> None:
        """Look once more, as something was changed; what is open is read again too."""
        self.post_message(self.SearchRequested(self._search))
        if self._opens:
            self.post_message(self.OpenRequested(self._opens))

    # What is open

    def _open(self, memory: str) -> None:
        self._opens = memory
        self._tell()
        self.post_message(self.OpenRequested(memory))

    @on(ResultList.Highlighted)
    def _looked_at(self, event: ResultList.Highlighted) -> None:
        event.stop()
        self._trail.clear()
        self._open(event.memory_id)

    @on(ResultList.Chosen)
    def _chosen(self, event: ResultList.Chosen) -> None:
        event.stop()
        if event.memory_id != self._opens:
            self._open(event.memory_id)
        self._detail.focus()

    @on(DetailPane.LinkChosen)
    def _followed(self, event: DetailPane.LinkChosen) -> None:
        event.stop()
        self._trail.append(self._opens)
        self._open(event.memory_id)

    def action_back(self) -> None:
        """Go back to the memory whose link was followed, else to the results."""
        if self._trail:
            self._open(self._trail.pop())
        else:
            self._list.focus()

    def action_other_half(self) -> None:
        """Go from the results to the detail, or back."""
        (self._list if self._detail.has_focus else self._detail).focus()

    def action_close(self) -> None:
        """Leave the line of words; else close."""
        if self._input.has_focus:
            self._list.focus()
        else:
            self.dismiss(None)

    # What is wanted of it

    def _shown(self) -> MemoryDetail | None:
        """The memory that is shown; None while another one is wanted and not there yet."""
        detail = self._detail.detail
        return detail if detail is not None and self._opens in ("", detail.id) else None

    def _change(self, how: str, importance: float = 0.0) -> None:
        if (detail := self._shown()) is not None:
            self.post_message(self.ChangeRequested(detail.id, how, importance))

    def action_more(self) -> None:
        """Make it more important."""
        self._weigh(1)

    def action_less(self) -> None:
        """Make it less important."""
        self._weigh(-1)

    def _weigh(self, by: int) -> None:
        if (detail := self._shown()) is not None:
            wanted = max(0.0, min(MOST_IMPORTANT, detail.importance + by * IMPORTANCE_STEP))
            if wanted != detail.importance:
                self._change("importance", wanted)

    def action_pin(self) -> None:
        """Pin it in mind, or let it go."""
        if (detail := self._shown()) is not None:
            self._change("unpin" if detail.pinned else "pin")

    def action_focus_memory(self) -> None:
        """Bring it into focus."""
        self._change("focus")

    def action_evict(self) -> None:
        """Take it out of mind."""
        self._change("evict")

    def action_forget(self) -> None:
        """Have it forgotten."""
        self._change("forget")


def _next(present: str, known: tuple[str, ...], by: int) -> str:
    """The value after this one, with the empty one for any between the last and the first."""
    around = ("", *known)
    at = around.index(present) if present in around else 0
    return around[(at + by) % len(around)]


def _row(one: FoundLine) -> Row:
    kind = clean_line(one.type).replace("_", " ")
    score = (
        () if one.score is None else (*bar(one.score, BAR_CELLS, style="accent"), Piece(f" {one.score:.2f} "))
    )
    return Row(
        one.id,
        (Piece(f"{kind}: ", "dim"), Piece(clean_line(one.text))),
        tail=(*score, Piece(f"!{one.importance:.0f} ", "dim"), Piece(f"{clean_line(one.age):>3}", "dim")),
        indent=2,
        most=2,
        copy=clean_line(one.text),
    )
