"""The memory browser: what the agent remembers, found by words and likeness, with links and history."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.content import Content
from textual.widgets import Input, Static

from engine.core.text import clean_line
from engine.value import dataclass, replace
from widgets.base.dialog import BoxDialog
from widgets.base.line_pane import LinePane, Notice, RowChosen, RowHighlighted
from widgets.base.rows import Row

QUERY_LIMIT = 2_000
LINK = "link:"
"""How keys of a memory's rows begin that are links; the other memory's id follows."""


@dataclass(frozen=True, slots=True)
class MemoryDetail:
    """A memory as the detail shows it."""

    id: str
    rows: Sequence[Row] = ()
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class MemorySearch:
    """What the operator looks for."""

    query: str = ""
    """Words; empty lists the newest."""
    everywhere: bool = False
    """True for the memories of all work, else those of the agent's present goal."""


@dataclass(frozen=True, slots=True)
class BrowserModel:
    """What the dialog shows; the search is that which these results answer."""

    agent: str = ""
    work: str = ""
    """The workflow of the agent's present goal, in words."""
    search: MemorySearch = MemorySearch()
    found: Sequence[Row] = ()
    """What was found; the keys are ids of memories."""
    note: str = ""
    """What is to be said of the search, such as that it is without likeness."""
    notice: Notice | None = None
    """Why there are no results."""


class MemoryBrowser(BoxDialog[None]):
    """Looks for memories, follows their links, and requests what the operator wants of them."""

    WIDE = 112

    def __init__(self, model: BrowserModel, *, opens: str = "") -> None:
        """Show a model, with this memory open."""
        super().__init__()
        self._model = model
        self.search = model.search
        """What is looked for now."""
        self.opened = opens
        """The memory whose detail is shown or wanted."""
        self.detail: MemoryDetail | None = None
        """The memory that is shown."""
        words = "words to look for; empty lists the newest"
        self._input = Input(model.search.query, placeholder=words, max_length=QUERY_LIMIT)
        self._note = Static(id="line")
        empty = "No memory fits. Press / to look for something else, W to look in all work."
        self._list = LinePane(title="Memories", empty=empty, id="results")
        empty = "The memory under the cursor will be shown here in full. Press tab to go to it."
        self._detail = LinePane(title="Memory", empty=empty, click_chooses=True, id="detail")
        self.heading = f"Memory of {model.agent}"
        self.parts = (self._input, self.halves(self._list, self._detail), self._note, self.said)

    def on_mount(self) -> None:
        """The results have the focus."""
        self._show()
        self._list.focus()
        if self.opened:
            self._open(self.opened)

    def show(self, model: BrowserModel) -> None:
        """Show these results, unless they answer an older search."""
        if model.search == self.search:
            self._model = model
            self._show()

    def show_detail(self, detail: MemoryDetail | None) -> None:
        """Show a memory; None when it is not there any more."""
        other = detail is None or self.detail is None or detail.id != self.detail.id
        self.detail = detail
        self._detail.set_rows(detail.rows if detail is not None else ())
        if other:
            self._detail.action_go("top")

    def _show(self) -> None:
        model = self._model
        self._list.set_notice(model.notice)
        self._list.set_rows(model.found)
        self._tell()
        if not self.opened and model.found:
            self._list.move_cursor(model.found[0].key)
            self._open(model.found[0].key)

    def _tell(self) -> None:
        """Say in which work memories are looked for, and what is to be said of the search."""
        work = "all work" if self.search.everywhere else self._model.work or "this agent's work"
        text = " · ".join(filter(None, (clean_line(self._model.note), f"in {clean_line(work, limit=60)}")))
        self._note.update(Content(text), layout=False)

    # What is looked for

    def action_search(self) -> None:
        """Type what to look for."""
        self._input.focus()

    def action_everywhere(self) -> None:
        """In the memories of all work, or of the present goal's again."""
        self._ask(replace(self.search, everywhere=not self.search.everywhere))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._ask(replace(self.search, query=event.value.strip()))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._list.focus()

    def _ask(self, search: MemorySearch) -> None:
        if search != self.search:
            self.search, self.opened = search, ""
            self._tell()
            self.request("search", search)

    def again(self) -> None:
        """Look once more, as something was changed; what is open is read again too."""
        self.request("search", self.search)
        if self.opened:
            self.request("open", self.opened)

    # What is open

    def _open(self, memory: str) -> None:
        self.opened = memory
        self.request("open", memory)

    @on(RowHighlighted, "#results")
    def _looked_at(self, event: RowHighlighted) -> None:
        self._open(event.key)

    @on(RowChosen, "#results")
    def _chosen(self, event: RowChosen) -> None:
        if event.key != self.opened:
            self._open(event.key)
        self._detail.focus()

    @on(RowChosen, "#detail")
    def _followed(self, event: RowChosen) -> None:
        if event.key.startswith(LINK):
            self._open(event.key.removeprefix(LINK).partition(" ")[0])

    def action_other_half(self) -> None:
        """Go from the results to the detail, or back."""
        (self._list if self._detail.has_focus else self._detail).focus()

    def action_likeness(self) -> None:
        """Have memories found by what is meant, or say how far that is."""
        self.request("likeness")

    def action_close(self) -> None:
        """Leave the line of words; else close."""
        if self._input.has_focus:
            self._list.focus()
        else:
            self.dismiss(None)

    # What is wanted of it

    def action_change(self, how: str) -> None:
        """Ask for something to be done to the memory that is shown, unless another is wanted by now."""
        if self.detail is not None and self.opened in ("", self.detail.id):
            self.request("change", self.detail.id, how)

    def action_judge(self, right: bool) -> None:
        """Say whether the memory that is shown answers what was looked for."""
        if self.detail is not None and self.opened in ("", self.detail.id):
            self.request("judge", self.detail.id, right)

    def action_pin(self) -> None:
        """Pin it in mind, or unpin it."""
        self.action_change("unpin" if self.detail is not None and self.detail.pinned else "pin")
