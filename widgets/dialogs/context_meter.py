"""What the thinker was last told: each block's share of the prompt, what it cost, and every word of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.dialogs.long_text import LongText, Section, shown
from widgets.line_pane import Notice
from widgets.pane_tabs import PaneTabs, TabLine, TabsModel
from widgets.pieces import Piece, Pieces, bar, cut_text, width_of
from widgets.rows import Row, RowPane
from widgets.status_bar import count_text

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
    """Tokens that the model holds at a time; 0 when nobody knows."""
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


class BlockList(RowPane):
    """The blocks with their shares, then what calls took."""

    BINDING_GROUP_TITLE = "Context"
    EMPTY = "No model was asked yet. Once one is, the blocks of its prompt will appear here."
    DEFAULT_CSS = """
    BlockList, BlockList:focus { border: none; height: 1fr; min-height: 1; }
    """

    @dataclass
    class Chosen(Message):
        """A block is to be read."""

        block: int
        """Its place in the prompt, from 0."""

    _model = ContextModel()

    def show(self, model: ContextModel) -> None:
        """Show this model."""
        self._model = model
        self.set_notice(model.notice)
        self._arrange()

    def on_resize(self) -> None:
        """Show bars where there is room for them."""
        super().on_resize()
        self._arrange()

    def row_chosen(self, key: str) -> None:
        """Tell which block was chosen."""
        kind, _, number = key.partition(":")
        if kind == "block":
            self.post_message(self.Chosen(int(number)))

    def _arrange(self) -> None:
        model, wide = self._model, self.text_width >= BAR_FROM
        if not model.blocks:
            self.set_rows([])
            return
        rows = [_heading("head", _columns(model.window, wide))]
        rows += [_block_row(at, block, model, wide) for at, block in enumerate(model.blocks)]
        rows += [_total_row(model, wide), *_call_rows(model), *_spending_rows(model)]
        self.set_rows(rows)


def _columns(window: int, wide: bool) -> str:
    bars = " " * (BAR_CELLS + 1) if wide else ""
    of_window = f"of {count_text(window)}" if window else "window"
    return f"{'block':<{NAME_CELLS}}{'tokens':>{COUNT_CELLS}}  {bars}{'prompt':>7}{of_window:>{WINDOW_CELLS}}"


def _heading(key: str, text: str) -> Row:
    return Row(key, (Piece(text, "heading"),), selectable=False)


def _block_row(at: int, block: ContextBlock, model: ContextModel, wide: bool) -> Row:
    of_prompt = block.tokens / model.tokens if model.tokens else 0.0
    return Row(
        f"block:{at}",
        (
            Piece(_fill(clean_line(block.name), NAME_CELLS)),
            *_figures(block.tokens, of_prompt, model.window, wide, "accent"),
        ),
    )


def _total_row(model: ContextModel, wide: bool) -> Row:
    part = model.tokens / model.window if model.window else 0.0
    style = "error" if part >= 0.9 else "warning" if part >= 0.75 else "success"
    figures = _figures(model.tokens, 1.0, model.window, False, style)
    middle = bar(part, BAR_CELLS, style=style) if wide else ()
    pieces = (Piece(_fill("in all", NAME_CELLS), "strong"), figures[0], *middle, Piece(" " if middle else ""))
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
    rows = [Row("blank", (Piece(""),), selectable=False), _heading("call", "last call")]
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
    rows = [Row("between", (Piece(""),), selectable=False), _heading("goals", "all calls by goal")]
    for at, one in enumerate(model.goals):
        spent = (
            f"{one.calls} call{'' if one.calls == 1 else 's'}  {count_text(one.tokens)} tok  ${one.usd:.3f}"
        )
        rows.append(
            Row(
                f"goal:{at}",
                (Piece(clean_line(one.goal) or "for no goal"),),
                tail=(Piece(spent, "dim"),),
                selectable=False,
            )
        )
    if model.total:
        rows.append(Row("sum", (Piece(clean_line(model.total), "dim"),), selectable=False, most=3))
    return rows


def _fill(text: str, cells: int) -> str:
    text = cut_text(text, cells - 1)
    return text + " " * (cells - width_of((Piece(text),)))


class PromptText(LongText):
    """The prompt, block by block; copying takes its words unbroken."""

    def action_copy_pane(self) -> None:
        """Copy all of it as it was sent."""
        self._copy("\n\n".join(f"{part.title}\n{shown(part.text)}" for part in self.sections), "prompt")


class ContextDialog(BoxDialog[None]):
    """The blocks, the prompt and the answer on a page each; `show` brings a newer call."""

    DEFAULT_CSS = """
    ContextDialog > Vertical { height: 96%; }
    ContextDialog PromptText { display: none; }
    ContextDialog.-reading PromptText { display: block; }
    ContextDialog.-reading BlockList { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "page('blocks')", "Blocks", id="context.page.blocks"),
        Binding("2", "page('prompt')", "Prompt", id="context.page.prompt"),
        Binding("3", "page('answer')", "Answer", id="context.page.answer"),
        Binding("tab", "next_page", "Next page", id="context.page.next"),
        Binding("c,q", "close", "Close", id="context.close"),
    ]

    def __init__(self, model: ContextModel) -> None:
        super().__init__()
        self._model = model
        self._page = Page.BLOCKS
        self._tabs = PaneTabs()
        self._blocks = BlockList()
        self._text = PromptText()

    def compose(self) -> ComposeResult:
        """The tabs, the page, and the keys."""
        with Vertical() as box:
            agent = clean_line(self._model.agent, limit=100)
            box.border_title = Content(f"Context of {agent}" if agent else "Context")
            box.border_subtitle = "esc close"
            yield self._tabs
            yield self._blocks
            yield self._text
            yield Static(
                Content.from_markup(
                    "[@click=screen.next_page][bold]tab[/] blocks, prompt, answer[/]   "
                    "[bold]enter[/] read a block   [bold]Y[/] copy"
                ),
                classes="-keys",
            )

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

    def on_block_list_chosen(self, event: BlockList.Chosen) -> None:
        """Read a block of the prompt."""
        event.stop()
        self.action_page(Page.PROMPT)
        self._text.go_to(event.block)


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
