"""The memory browser: what the agent remembers, found by words and likeness, with links and history."""

from __future__ import annotations

from dataclasses import dataclass, replace

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from engine.core.text import clean, clean_line
from widgets.base.dialog import BoxDialog, DialogKey
from widgets.base.line_pane import LinePane, Notice, RowChosen, RowHighlighted
from widgets.base.rows import Row, heading
from widgets.base.text_layout import Piece, Pieces, bar, break_line, labelled, wrap

QUERY_LIMIT = 2_000
BAR_CELLS = 5
IMPORTANCE_STEP = 1.0
MOST_IMPORTANT = 10.0


LINK = "link:"


@dataclass(frozen=True, slots=True)
class LinkLine:
    """A link of the memory, in memory of the two directions."""

    memory_id: str
    """The memory at its other end."""
    outward: bool
    """True where the link goes from this memory to that memory."""
    type: str
    strength: float
    """From 0 to 1."""
    text: str
    """The other memory's first words."""


@dataclass(frozen=True, slots=True)
class VersionLine:
    """What was written of the memory at an event."""

    at: str
    """When, as it is shown."""
    by: str
    what: str
    """What changed, in words."""


@dataclass(frozen=True, slots=True)
class MemoryDetail:
    """A memory as the detail shows it."""

    id: str
    content: str
    level: str
    type: str
    importance: float
    """From 0 to 10."""
    confidence: float
    """From 0 to 1."""
    description: str = ""
    reasoning: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()
    created: str = ""
    used: str = ""
    """How often and when last, in words."""
    expires: str = ""
    work: str = ""
    in_mind: bool = False
    focal: bool = False
    pinned: bool = False
    links: tuple[LinkLine, ...] = ()
    history: tuple[VersionLine, ...] = ()
    """Newest first."""


class DetailPane(LinePane):
    """The memory's text and facts line by line, then its links, which can be followed, and its history."""

    BINDING_GROUP_TITLE = "Memory"
    EMPTY = "The memory under the cursor will be shown here in full. Press tab to go to it."
    STARTS_ON_FIRST = False

    @dataclass
    class LinkChosen(Message):
        """The operator follows a link."""

        memory_id: str

    def __init__(self) -> None:
        super().__init__()
        self._detail: MemoryDetail | None = None

    @property
    def detail(self) -> MemoryDetail | None:
        """The memory that is shown."""
        return self._detail

    def show(self, detail: MemoryDetail | None) -> None:
        """Show this memory from its beginning; the one that is shown, changed, where the reader is."""
        if detail == self._detail:
            return
        before, self._detail = self._detail, detail
        self._arrange()
        if detail is None or before is None or before.id != detail.id:
            self.move_cursor("")
            self.scroll_lines_to(0)

    def on_resize(self) -> None:
        """Break the text anew."""
        super().on_resize()
        self._arrange()

    def row_clicked(self, key: str, chain: int) -> None:
        """One click on a link follows it."""
        self.row_chosen(key)

    def row_chosen(self, key: str) -> None:
        """Tell which link was chosen."""
        if key.startswith(LINK):
            self.post_message(self.LinkChosen(key.removeprefix(LINK).partition(" ")[0]))

    def _arrange(self) -> None:
        detail, width = self._detail, max(8, self.text_width)
        self.set_rows(
            [*_facts(detail, width), *_links(detail), *_history(detail)] if detail is not None else []
        )


def _facts(memory: MemoryDetail, width: int) -> list[Row]:
    """Everything but links and history, a row a line, so that the pane scrolls by lines."""
    state = " · ".join(
        word
        for word, holds in (
            ("★ in focus", memory.focal),
            ("◆ pinned", memory.pinned),
            ("in mind", memory.in_mind),
        )
        if holds
    )
    kind = f"{memory.level} {memory.type}".replace("_", " ")
    head = f"{memory.id} · {kind} · importance {memory.importance:.1f} · confidence {memory.confidence:.0%}"
    title = clean_line(f"{head} · {state}" if state else head)
    lines: list[Pieces] = [*wrap((Piece(title, "heading"),), width, most=3)]
    for part in clean(memory.content).split("\n"):
        lines += [(Piece(line),) for line in break_line(part, width)]
    for label, text in (
        ("about", memory.description),
        ("why", memory.reasoning),
        ("source", memory.source),
        ("tags", ", ".join(memory.tags)),
        ("made", memory.created),
        ("used", memory.used),
        ("until", memory.expires),
        ("work", memory.work),
    ):
        lines += labelled(label, clean_line(text), width, most=20)
    return [Row(f"line:{at}", line) for at, line in enumerate(lines)]


def _links(memory: MemoryDetail) -> list[Row]:
    if not memory.links:
        return [Row("links", (Piece("no links", "dim"),), selectable=False)]
    rows = [heading("links", f"links ({len(memory.links)}): enter follows")]
    for at, link in enumerate(memory.links):
        arrow = "→" if link.outward else "←"
        rows.append(
            Row(
                f"{LINK}{link.memory_id} {at}",
                (
                    Piece(f"{arrow} {clean_line(link.type).replace('_', ' ')} ", "accent"),
                    Piece(clean_line(link.text)),
                ),
                tail=(Piece(f"{link.strength:.2f}", "dim"),),
                indent=4,
                most=2,
                copy=clean_line(link.text),
            )
        )
    return rows


def _history(memory: MemoryDetail) -> list[Row]:
    if not memory.history:
        return []
    rows = [heading("history", "history")]
    for at, version in enumerate(memory.history):
        rows.append(
            Row(
                f"version:{at}",
                (
                    Piece(f"{clean_line(version.at)} ", "dim"),
                    Piece(f"{clean_line(version.by)} ", "accent"),
                    Piece(clean_line(version.what)),
                ),
                indent=4,
                most=4,
            )
        )
    return rows


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


class MemoryBrowser(BoxDialog[None]):
    """Looks for memories, follows their links, and posts what the operator wants of them.

    Its opener answers `SearchRequested` by `show`, and `OpenRequested` by `show_detail`.
    """

    WIDE = 112
    KEYS = (
        DialogKey("slash", "search", "search"),
        DialogKey("tab", "other_half", "detail", priority=True),
        DialogKey("p", "pin", "pin"),
        DialogKey("f", "change('focus')", "focus"),
        DialogKey("E", "change('evict')", "evict"),
        DialogKey("plus", "weigh('more')", "", shown="+"),
        DialogKey("minus", "weigh('less')", "weight"),
        DialogKey("delete,D", "change('forget')", "forget", shown="D"),
        DialogKey("l", "level"),
        DialogKey("t", "type"),
        DialogKey("T", "type(-1)"),
        DialogKey("W", "everywhere"),
        DialogKey("backspace,left", "back"),
        DialogKey("M,q", "close"),
    )
    DEFAULT_CSS = """
    MemoryBrowser > Vertical { height: 96%; max-width: 180; }
    MemoryBrowser #filters { height: 1; link-style: none; }
    MemoryBrowser #results { height: 2fr; min-height: 2; }
    MemoryBrowser DetailPane { height: 3fr; min-height: 2; }
    MemoryBrowser.-wide .-halves > .-below { width: 60%; }
    """

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
        self._note = Static(id="line")
        empty = "No memory fits. Press / to look for something else, W to look in all work."
        self._list = LinePane(title="Memories", empty=empty, id="results")
        self._detail = DetailPane()

    def compose(self) -> ComposeResult:
        """What is looked for, what was found, and one of these in full."""
        agent = clean_line(self._model.agent, limit=100)
        halves = self.halves(self._list, self._detail)
        parts = (self._input, self._filters, halves, self._note)
        yield self.box(*parts, title=f"Memory of {agent}" if agent else "Memory")

    def on_mount(self) -> None:
        """The results have the focus."""
        self._show()
        self._list.focus()
        if self._opens:
            self._open(self._opens)

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
        self._list.set_rows([_row(line) for line in model.found])
        self._tell()
        self._draw_filters()
        if not self._opens and model.found:
            self._open(model.found[0].id)

    def _tell(self) -> None:
        """Say what is to be said of the search, and what the open memory's score is made of."""
        how = next((line.how for line in self._model.found if line.id == self._opens), "")
        parts = (f"{self._opens}: {how}" if how else "", self._model.note)
        text = " · ".join(clean_line(part) for part in parts if part)
        self._note.update(Content(text), layout=False)

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
            self.request("search", search)

    def again(self) -> None:
        """Look once more, as something was changed; what is open is read again too."""
        self.request("search", self._search)
        if self._opens:
            self.request("open", self._opens)

    # What is open

    def _open(self, memory: str) -> None:
        self._opens = memory
        self._tell()
        self.request("open", memory)

    @on(RowHighlighted, "#results")
    def _looked_at(self, event: RowHighlighted) -> None:
        self._trail.clear()
        self._open(event.key)

    @on(RowChosen, "#results")
    def _chosen(self, event: RowChosen) -> None:
        if event.key != self._opens:
            self._open(event.key)
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

    def action_change(self, how: str, importance: float = 0.0) -> None:
        """Ask for something to be done to it."""
        if (detail := self._shown()) is not None:
            self.request("change", detail.id, how, importance)

    def action_weigh(self, way: str) -> None:
        """Make it more or less important."""
        if (detail := self._shown()) is not None:
            step = IMPORTANCE_STEP if way == "more" else -IMPORTANCE_STEP
            importance = max(0.0, min(MOST_IMPORTANT, detail.importance + step))
            if importance != detail.importance:
                self.action_change("importance", importance)

    def action_pin(self) -> None:
        """Pin it in mind, or unpin it."""
        if (detail := self._shown()) is not None:
            self.action_change("unpin" if detail.pinned else "pin")


def _next(present: str, known: tuple[str, ...], by: int) -> str:
    """The value after this one, with the empty one for any between the last and the first."""
    around = ("", *known)
    at = around.index(present) if present in around else 0
    return around[(at + by) % len(around)]


def _row(line: FoundLine) -> Row:
    kind = clean_line(line.type).replace("_", " ")
    score = (
        ()
        if line.score is None
        else (*bar(line.score, BAR_CELLS, style="accent"), Piece(f" {line.score:.2f} "))
    )
    return Row(
        line.id,
        (Piece(f"{kind}: ", "dim"), Piece(clean_line(line.text))),
        tail=(*score, Piece(f"!{line.importance:.0f} ", "dim"), Piece(f"{clean_line(line.age):>3}", "dim")),
        indent=2,
        most=2,
        copy=clean_line(line.text),
    )
