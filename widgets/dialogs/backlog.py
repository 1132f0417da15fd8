"""The backlog of what could be better, and the background jobs: approved, worked on and cancelled by key."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.dialog import DialogKey, ListDialog
from widgets.base.facts import Fact, FactsPane
from widgets.base.line_pane import RowChosen, RowHighlighted
from widgets.base.rows import Row
from widgets.base.text_layout import Piece, bar


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
    """The result of the last key."""


class BacklogDialog(ListDialog[BacklogModel]):
    """Items of the backlog, the most urgent first, and what is known of one."""

    TITLE_TEXT, LIST_TITLE = "Backlog: what could be better", "Backlog"
    EMPTY = "The backlog is empty: type : and coord_analyze to look for what could be better."
    KEYS = (
        DialogKey("a", "settle(True)", "approve"),
        DialogKey("r", "settle(False)", "reject"),
        DialogKey("space", "mark", "mark"),
        DialogKey("p", "process(False)", "next"),
        DialogKey("P", "process(True)", "all"),
        DialogKey("C", "campaign", "campaign", shown="enter"),
        DialogKey("q", "close"),
    )
    DEFAULT_CSS = """
    BacklogDialog > Vertical { height: 96%; max-width: 160; }
    BacklogDialog #list { height: 3fr; min-height: 4; }
    BacklogDialog #facts { height: 2fr; min-height: 5; }
    """

    def __init__(self, model: BacklogModel) -> None:
        super().__init__(model)
        self._marked: set[str] = set()
        self._facts = FactsPane(id="facts", classes="-below")
        self._standing = Static(id="standing")

    def parts(self) -> Sequence[Widget]:
        """How many there are, the items, what is known of one, and the result of the last key."""
        return (self._standing, self.list, self._facts, self.said)

    def rows(self) -> list[Row]:
        """The items; those that are gone are no longer marked."""
        self._marked &= {item.id for item in self.model.lines}
        return [_item_row(item, item.id in self._marked) for item in self.model.lines]

    def show(self, model: BacklogModel) -> None:
        """Show these items; the cursor stays on its row."""
        super().show(model)
        marked = f" · {len(self._marked)} marked" if self._marked else ""
        self._standing.update(Content(clean_line(model.standing) + marked), layout=False)
        self.show_facts()

    @on(RowHighlighted, "#list")
    def show_facts(self) -> None:
        """Show what is known of the item under the cursor."""
        item = self._line()
        self._facts.set_facts(item.facts if item is not None else ())

    def _line(self) -> ItemLine | None:
        return next((item for item in self.model.lines if item.id == self.list.cursor), None)

    def _meant(self) -> tuple[ItemLine, ...]:
        """The marked items, else the one under the cursor."""
        marked = tuple(item for item in self.model.lines if item.id in self._marked)
        item = self._line()
        return marked or ((item,) if item is not None else ())

    def action_mark(self) -> None:
        """Mark the item under the cursor, or no more, and go on to the next."""
        if (item := self._line()) is not None:
            self._marked ^= {item.id}
            self.show(self.model)
            self.list.step(1)

    def action_settle(self, approve: bool) -> None:
        """Approve or reject what is marked, or the item under the cursor."""
        meant = self._meant()
        fit = tuple(item.id for item in meant if (item.approvable if approve else item.rejectable))
        if fit:
            self._marked -= set(fit)
            self.request("settle", fit, approve)
        elif meant:
            why = "does not wait for approval" if approve else "cannot be rejected any more"
            self.say(f"{meant[0].id} {why}: it is {meant[0].status}")

    def action_process(self, auto: bool) -> None:
        """Have the next items worked on: as many as are marked; or all that can be."""
        self.request("process", max(1, len(self._marked)), auto)

    @on(RowChosen, "#list")
    def action_campaign(self) -> None:
        """See the campaign on the item under the cursor."""
        item = self._line()
        if item is not None and item.campaign:
            self.request("campaign", item.campaign)
        elif item is not None:
            self.say(f"{item.id} had no campaign yet: p works on the next item")


def _item_row(item: ItemLine, marked: bool) -> Row:
    return Row(
        item.id,
        (
            Piece("◆ " if marked else "  ", "accent"),
            Piece(f"{clean_line(item.id):<4} ", "strong"),
            Piece(f"{item.priority:>2} ", "dim" if item.over else "text"),
            Piece(f"{clean_line(item.status):<17}", item.style),
            Piece(f"{clean_line(item.target, limit=40)} ", "accent"),
            Piece(clean_line(item.suggestion, limit=400), "dim" if item.over else "text"),
        ),
        indent=10,
        most=2,
        mark=Piece(item.mark, item.style),
        copy=f"{clean_line(item.id)} {clean_line(item.target)} {clean_line(item.suggestion)}",
    )


METER = 12
"""Cells of the meter of a job."""


@dataclass(frozen=True, slots=True)
class JobLine:
    """One job."""

    id: str
    mark: str
    style: str
    status: str
    asked: str
    """What was typed."""
    said: str
    """Its progress, or its result."""
    part: float | None = None
    """How much is done, from 0 to 1; None where that is not known or it is over."""
    count: str = ""
    """The same as `3/12`."""
    when: str = ""
    over: bool = False


@dataclass(frozen=True, slots=True)
class JobsModel:
    """What the dialog shows."""

    lines: tuple[JobLine, ...] = ()
    said: str = ""


class JobsDialog(ListDialog[JobsModel]):
    """Background jobs, the newest first."""

    TITLE_TEXT, LIST_TITLE = "Background jobs", "Jobs"
    EMPTY = "No job was begun yet: type : and coord_improve COMPONENT, or coord_analyze."
    KEYS = (
        DialogKey("", "", "open", shown="enter"),
        DialogKey("c", "cancel", "cancel"),
        DialogKey("L", "backlog", "backlog"),
        DialogKey("q", "close"),
    )
    DEFAULT_CSS = "JobsDialog > Vertical { height: 96%; max-width: 150; }"

    def rows(self) -> list[Row]:
        """The jobs."""
        return [_job_row(job) for job in self.model.lines]

    def action_cancel(self) -> None:
        """End the job under the cursor."""
        job = next((job for job in self.model.lines if job.id == self.list.cursor), None)
        if job is not None and not job.over:
            self.request("cancel", job.id)
        elif job is not None:
            self.say(f"{job.id} has ended already")

    @on(RowChosen)
    def _open(self, event: RowChosen) -> None:
        self.request("open", event.key)

    def action_backlog(self) -> None:
        """See the backlog."""
        self.request("backlog")


def _job_row(job: JobLine) -> Row:
    meter = (*bar(job.part or 0.0, METER, style="accent"), Piece(f" {clean_line(job.count)} ", "dim"))
    return Row(
        job.id,
        (
            Piece(f"{clean_line(job.id):<4} ", "strong"),
            Piece(f"{clean_line(job.status):<11} ", job.style),
            Piece(f"{clean_line(job.asked, limit=80)} ", "accent"),
            *((Piece("· ", "dim"),) if job.part is None else meter),
            Piece(clean_line(job.said, limit=600)),
        ),
        tail=(Piece(clean_line(job.when), "dim"),),
        indent=5,
        most=3,
        mark=Piece(job.mark, job.style),
        copy=f"{clean_line(job.id)} {clean_line(job.asked)} {clean_line(job.said)}",
    )
