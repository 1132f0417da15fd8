"""The backlog: what could be better, with what shows it; approved, rejected and worked on by key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.facts import Fact, FactsPane
from widgets.line_pane import Notice
from widgets.pieces import Piece
from widgets.rows import Row, RowPane


@dataclass(frozen=True, slots=True)
class ItemLine:
    """One item."""

    id: str
    mark: str
    style: str
    priority: int
    status: str
    target: str
    suggestion: str
    facts: tuple[Fact, ...] = ()
    """What is known of it, below the list."""
    approvable: bool = False
    rejectable: bool = False
    campaign: str = ""
    """The newest campaign on it."""
    over: bool = False
    """Whether nothing more is to be done about it."""


@dataclass(frozen=True, slots=True)
class BacklogModel:
    """What the dialog shows."""

    lines: tuple[ItemLine, ...] = ()
    standing: str = ""
    """How many there are, and who works them off."""
    said: str = ""
    """What came of the last key."""


class ItemList(RowPane):
    """The items, the most urgent first."""

    BINDING_GROUP_TITLE = "Backlog"
    MARKS = True
    DEFAULT_CSS = """
    ItemList, ItemList:focus { border: none; height: 3fr; min-height: 4; }
    """

    def row_highlighted(self, key: str) -> None:
        """Show what is known of it."""
        if isinstance(self.screen, BacklogDialog):
            self.screen.show_facts()

    def row_chosen(self, key: str) -> None:
        """See its campaign."""
        if isinstance(self.screen, BacklogDialog):
            self.screen.action_campaign()


class ItemFacts(FactsPane):
    """What is known of the item under the cursor."""

    DEFAULT_CSS = """
    ItemFacts, ItemFacts:focus {
        border: none; border-top: solid $border-blurred; height: 2fr; min-height: 5;
    }
    """


class BacklogDialog(BoxDialog[None]):
    """Posts what is to become of items; whoever opens it answers by `show`."""

    DEFAULT_CSS = """
    BacklogDialog > Vertical { height: 96%; max-width: 160; }
    BacklogDialog #standing { height: 1; color: $foreground-muted; }
    BacklogDialog #said { height: auto; max-height: 3; color: $text-warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "settle(True)", "Approve", id="backlog.approve"),
        Binding("r", "settle(False)", "Reject", id="backlog.reject"),
        Binding("space", "mark", "Mark", id="backlog.mark"),
        Binding("p", "process(False)", "Process", id="backlog.process"),
        Binding("P", "process(True)", "Process all", id="backlog.process-all"),
        Binding("C", "campaign", "Campaign", id="backlog.campaign"),
        Binding("q", "close", "Close", show=False, id="backlog.close"),
    ]

    @dataclass
    class SettleRequested(Message):
        """Items are approved or rejected."""

        items: tuple[str, ...]
        approve: bool

    @dataclass
    class ProcessRequested(Message):
        """The next items are to be worked on; or all, by itself."""

        count: int
        auto: bool

    @dataclass
    class CampaignRequested(Message):
        """The campaign on an item is to be seen."""

        campaign: str

    def __init__(self, model: BacklogModel) -> None:
        super().__init__()
        self._model = model
        self._marked: set[str] = set()
        self._list = ItemList()
        self._facts = ItemFacts()
        self._standing = Static(id="standing")
        self._said = Static(id="said")

    def compose(self) -> ComposeResult:
        """The items, what is known of one, and the keys."""
        with Vertical() as box:
            box.border_title = "Backlog: what could be better"
            box.border_subtitle = "esc close"
            yield self._standing
            yield self._list
            yield self._facts
            yield self._said
            yield Static(
                Content.from_markup(
                    "[@click=screen.settle(True)][bold]a[/] approve[/]  "
                    "[@click=screen.settle(False)][bold]r[/] reject[/]  "
                    "[@click=screen.mark][bold]space[/] mark[/]  "
                    "[@click=screen.process(False)][bold]p[/] next[/]  "
                    "[@click=screen.process(True)][bold]P[/] all[/]  [bold]enter[/] campaign"
                ),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """The most urgent is under the cursor."""
        self.show(self._model)
        self._list.focus()

    def show(self, model: BacklogModel) -> None:
        """Show these items; the cursor stays on its row."""
        self._model = model
        self._marked &= {one.id for one in model.lines}
        none = Notice("The backlog is empty: type : and coord_analyze to look for what could be better.")
        self._list.set_notice(None if model.lines else none)
        self._list.set_rows([_row(one, one.id in self._marked) for one in model.lines])
        marked = f" · {len(self._marked)} marked" if self._marked else ""
        self._standing.update(Content(clean_line(model.standing) + marked), layout=False)
        self._said.update(Content(clean_line(model.said)))
        self.show_facts()

    def show_facts(self) -> None:
        """Show what is known of the item under the cursor."""
        one = self._line()
        self._facts.set_facts(one.facts if one is not None else ())

    def _line(self) -> ItemLine | None:
        return next((one for one in self._model.lines if one.id == self._list.cursor), None)

    def _meant(self) -> tuple[ItemLine, ...]:
        """The marked items, else the one under the cursor."""
        marked = tuple(one for one in self._model.lines if one.id in self._marked)
        one = self._line()
        return marked or ((one,) if one is not None else ())

    def action_mark(self) -> None:
        """Mark the item under the cursor, or no more, and go on to the next."""
        if (one := self._line()) is not None:
            self._marked ^= {one.id}
            self.show(self._model)
            self._list.action_down()

    def action_settle(self, approve: bool) -> None:
        """Approve or reject what is marked, or the item under the cursor."""
        meant = self._meant()
        fit = tuple(one.id for one in meant if (one.approvable if approve else one.rejectable))
        if fit:
            self._marked -= set(fit)
            self.post_message(self.SettleRequested(fit, approve))
        elif meant:
            why = "does not wait for approval" if approve else "cannot be rejected any more"
            self._said.update(
                Content(f"{clean_line(meant[0].id)} {why}: it is {clean_line(meant[0].status)}")
            )

    def action_process(self, auto: bool) -> None:
        """Have the next items worked on: as many as are marked; or all that can be."""
        self.post_message(self.ProcessRequested(max(1, len(self._marked)), auto))

    def action_campaign(self) -> None:
        """See the campaign on the item under the cursor."""
        one = self._line()
        if one is not None and one.campaign:
            self.post_message(self.CampaignRequested(one.campaign))
        elif one is not None:
            self._said.update(Content(f"{clean_line(one.id)} had no campaign yet: p works on the next item"))


def _row(one: ItemLine, marked: bool) -> Row:
    return Row(
        one.id,
        (
            Piece("◆ " if marked else "  ", "accent"),
            Piece(f"{clean_line(one.id):<4} ", "strong"),
            Piece(f"{one.priority:>2} ", "dim" if one.over else "text"),
            Piece(f"{clean_line(one.status):<17}", one.style),
            Piece(f"{clean_line(one.target, limit=40)} ", "accent"),
            Piece(clean_line(one.suggestion, limit=400), "dim" if one.over else "text"),
        ),
        indent=10,
        most=2,
        mark=Piece(one.mark, one.style),
        copy=f"{clean_line(one.id)} {clean_line(one.target)} {clean_line(one.suggestion)}",
    )
