"""The thinker's last prompt: each block's share of it, what it cost, and every word of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from textual import on
from textual.app import ComposeResult

from engine.core.text import clean_line
from widgets.base.dialog import BoxDialog, DialogKey
from widgets.base.facts import LongText, ModelPane, Section
from widgets.base.line_pane import Notice, RowChosen
from widgets.base.pane_tabs import PaneTabs, TabLine, TabsModel
from widgets.base.rows import Row, blank, heading
from widgets.base.text_layout import Piece, Pieces, bar, pad
from widgets.panes.status_bar import count_text

NAME_CELLS, COUNT_CELLS, WINDOW_CELLS = 13, 8, 10
BAR_CELLS = 20
BAR_FROM = 56
"""Cells of a line from which on it has room for the bar."""


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """A named block of the prompt."""

    name: str
    tokens: int
    """Estimated."""
    text: str = ""
    """As it was sent."""


@dataclass(frozen=True, slots=True)
class CallLine:
    """What the last call took."""

    what: str
    """For what it was, and when: `plan · 14:03:07`."""
    took: str
    """Tokens, cost and time in words."""
    error: str = ""
    """Why there is no whole answer; empty when there is."""


@dataclass(frozen=True, slots=True)
class GoalSpending:
    """What models took for a goal so far."""

    goal: str
    """Its id and its text; empty for what was for no goal."""
    calls: int
    tokens: int
    usd: float


@dataclass(frozen=True, slots=True)
class ContextModel:
    """What the dialog shows."""

    agent: str = ""
    model: str = ""
    window: int = 0
    """Tokens that the model holds at a time; 0 when it is not known."""
    blocks: tuple[ContextBlock, ...] = ()
    """In the order sent."""
    call: CallLine | None = None
    goals: tuple[GoalSpending, ...] = ()
    total: str = ""
    """What all calls of the agent took, in words."""
    settings: str = ""
    """What was sent beside the prompt, such as the model and the longest answer."""
    answer: str = ""
    notice: Notice | None = None

    @property
    def tokens(self) -> int:
        """Estimated tokens of the prompt."""
        return sum(block.tokens for block in self.blocks)


class Page(StrEnum):
    """What there is to look at."""

    BLOCKS = "blocks"
    PROMPT = "prompt"
    ANSWER = "answer"


class BlockList(ModelPane[ContextModel]):
    """The blocks with their shares, then what calls took."""

    BINDING_GROUP_TITLE = "Context"
    EMPTY = "No model was asked yet. Once one is, the blocks of its prompt will appear here."
    _model = ContextModel()

    def on_resize(self) -> None:
        """Show bars where there is room for them."""
        super().on_resize()
        self.make_rows()

    def make_rows(self) -> None:
        """Blocks, calls and spending."""
        model, wide = self._model, self.text_width >= BAR_FROM
        if not model.blocks:
            self.set_rows([])
            return
        rows = [heading("head", _columns(model.window, wide))]
        rows += [_block_row(at, block, model, wide) for at, block in enumerate(model.blocks)]
        rows += [_total_row(model, wide), *_call_rows(model), *_spending_rows(model)]
        self.set_rows(rows)


def _columns(window: int, wide: bool) -> str:
    bars = " " * (BAR_CELLS + 1) if wide else ""
    of_window = f"of {count_text(window)}" if window else "window"
    return f"{'block':<{NAME_CELLS}}{'tokens':>{COUNT_CELLS}}  {bars}{'prompt':>7}{of_window:>{WINDOW_CELLS}}"


def _block_row(at: int, block: ContextBlock, model: ContextModel, wide: bool) -> Row:
    of_prompt = block.tokens / model.tokens if model.tokens else 0.0
    return Row(
        f"block:{at}",
        (
            Piece(pad(clean_line(block.name), NAME_CELLS, gap=1)),
            *_figures(block.tokens, of_prompt, model.window, wide, "accent"),
        ),
    )


def _total_row(model: ContextModel, wide: bool) -> Row:
    part = model.tokens / model.window if model.window else 0.0
    style = "error" if part >= 0.9 else "warning" if part >= 0.75 else "success"
    figures = _figures(model.tokens, 1.0, model.window, False, style)
    middle = bar(part, BAR_CELLS, style=style) if wide else ()
    pieces = (Piece(pad("in all", NAME_CELLS), "strong"), figures[0], *middle, Piece(" " if middle else ""))
    return Row("total", (*pieces, *figures[1:]), selectable=False)


def _figures(tokens: int, part: float, window: int, wide: bool, style: str) -> Pieces:
    """The count, the bar where there is room, and the shares of the prompt and of the window."""
    middle = (*bar(part, BAR_CELLS, style=style), Piece(" ")) if wide else ()
    of_window = f"{tokens / window:.1%}" if window else "?"
    return (
        Piece(f"{tokens:>{COUNT_CELLS},}  "),
        *middle,
        Piece(f"{part:>7.0%}"),
        Piece(f"{of_window:>{WINDOW_CELLS}}", "dim"),
    )


def _call_rows(model: ContextModel) -> list[Row]:
    if model.call is None:
        return []
    call = model.call
    rows = [blank("blank"), heading("call", "last call")]
    for key, text, style in (
        ("what", call.what, "text"),
        ("took", call.took, "text"),
        ("error", call.error, "error"),
    ):
        if text:
            rows.append(Row(key, (Piece(clean_line(text), style),), selectable=False, most=4))
    return rows


def _spending_rows(model: ContextModel) -> list[Row]:
    if not model.goals:
        return []
    rows = [blank("between"), heading("goals", "all calls by goal")]
    for at, goal in enumerate(model.goals):
        calls = f"{goal.calls} call{'' if goal.calls == 1 else 's'}"
        spent = f"{calls}  {count_text(goal.tokens)} tok  ${goal.usd:.3f}"
        rows.append(
            Row(
                f"goal:{at}",
                (Piece(clean_line(goal.goal) or "for no goal"),),
                tail=(Piece(spent, "dim"),),
                selectable=False,
            )
        )
    if model.total:
        rows.append(Row("sum", (Piece(clean_line(model.total), "dim"),), selectable=False, most=3))
    return rows


class ContextDialog(BoxDialog[None]):
    """The blocks, the prompt and the answer on a page each; `show` brings a newer call."""

    KEYS = (
        DialogKey("tab", "next_page", "blocks, prompt, answer"),
        DialogKey("", "", "read a block", shown="enter"),
        DialogKey("", "", "copy", shown="Y"),
        DialogKey("1", "page('blocks')"),
        DialogKey("2", "page('prompt')"),
        DialogKey("3", "page('answer')"),
        DialogKey("c,q", "close"),
    )
    DEFAULT_CSS = """
    ContextDialog > Vertical { height: 96%; }
    ContextDialog LongText { display: none; }
    ContextDialog.-reading LongText { display: block; }
    ContextDialog.-reading BlockList { display: none; }
    """

    def __init__(self, model: ContextModel) -> None:
        super().__init__()
        self._model = model
        self._page = Page.BLOCKS
        self._tabs = PaneTabs()
        self._blocks = BlockList()
        self._text = LongText(copied_as="prompt")

    def compose(self) -> ComposeResult:
        """The tabs, the page, and the keys."""
        agent = clean_line(self._model.agent, limit=100)
        title = f"Context of {agent}" if agent else "Context"
        yield self.box(self._tabs, self._blocks, self._text, title=title)

    def on_mount(self) -> None:
        """The blocks come first."""
        self._blocks.show(self._model)
        self.action_page(Page.BLOCKS)

    def show(self, model: ContextModel) -> None:
        """Show this model; the page stays."""
        if model != self._model:
            self._model = model
            self._blocks.show(model)
            self.action_page(self._page)

    def action_page(self, name: str) -> None:
        """Show the blocks, the prompt or the answer."""
        self._page = Page(name)
        reading = self._page is not Page.BLOCKS
        self.set_class(reading, "-reading")
        if reading:
            self._text.set_notice(Notice(_missing(self._model, self._page)))
            self._text.show(_sections(self._model, self._page))
        model = clean_line(self._model.model, limit=60)
        tabs = (
            ("blocks", "1 Blocks"),
            ("prompt", f"2 Prompt to {model}" if model else "2 Prompt"),
            ("answer", "3 Answer"),
        )
        self._tabs.show(TabsModel(tuple(TabLine(*tab) for tab in tabs), name))
        (self._text if reading else self._blocks).focus()

    def action_next_page(self) -> None:
        """Show the next of them."""
        pages = tuple(Page)
        self.action_page(pages[(pages.index(self._page) + 1) % len(pages)])

    def on_pane_tabs_tab_chosen(self, event: PaneTabs.TabChosen) -> None:
        """A tab was clicked."""
        event.stop()
        self.action_page(event.tab_id)

    @on(RowChosen)
    def _read_block(self, event: RowChosen) -> None:
        kind, _, number = event.key.partition(":")
        if kind == "block":
            self.action_page(Page.PROMPT)
            self._text.go_to(int(number))


def _sections(model: ContextModel, page: Page) -> tuple[Section, ...]:
    if page is Page.ANSWER:
        return (Section("the answer", model.answer),) if model.answer else ()
    if not any(block.text for block in model.blocks):
        return ()
    settings = (Section("── sent with it ──", model.settings),) if model.settings else ()
    return (*(Section(f"── {block.name} ──", block.text) for block in model.blocks), *settings)


def _missing(model: ContextModel, page: Page) -> str:
    """What is said where there is nothing to read."""
    if model.notice is not None:
        return model.notice.text
    return (
        "There was no answer." if page is Page.ANSWER else "The words of the prompt are not in the journal."
    )
