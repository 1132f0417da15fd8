"""Jobs that go on beside the cockpit: how far they are, what came of them."""

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
from widgets.line_pane import Notice
from widgets.pieces import Piece, Pieces
from widgets.rows import Row, RowPane

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
    """What it is at, or what came of it."""
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


class JobList(RowPane):
    """The jobs, the newest first."""

    BINDING_GROUP_TITLE = "Jobs"
    MARKS = True
    DEFAULT_CSS = """
    JobList, JobList:focus { border: none; height: 1fr; min-height: 3; }
    """

    def row_chosen(self, key: str) -> None:
        """See what came of it."""
        self.post_message(JobsDialog.OpenRequested(key))


class JobsDialog(BoxDialog[None]):
    """Posts what is wanted of a job; whoever opens it answers by `show`."""

    DEFAULT_CSS = """
    JobsDialog > Vertical { height: 96%; max-width: 150; }
    JobsDialog #said { height: auto; max-height: 3; color: $text-warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "cancel", "Cancel", id="jobs.cancel"),
        Binding("L", "backlog", "Backlog", id="jobs.backlog"),
        Binding("q", "close", "Close", show=False, id="jobs.close"),
    ]

    @dataclass
    class CancelRequested(Message):
        """A job is to end."""

        job: str

    @dataclass
    class OpenRequested(Message):
        """What came of a job is to be seen."""

        job: str

    @dataclass
    class BacklogRequested(Message):
        """The backlog is to be seen."""

    def __init__(self, model: JobsModel) -> None:
        super().__init__()
        self._model = model
        self._list = JobList()
        self._said = Static(id="said")

    def compose(self) -> ComposeResult:
        """The jobs and the keys."""
        with Vertical() as box:
            box.border_title = "Jobs: what goes on beside the cockpit"
            box.border_subtitle = "esc close"
            yield self._list
            yield self._said
            yield Static(
                Content.from_markup(
                    "[bold]enter[/] open   [@click=screen.cancel][bold]c[/] cancel[/]   "
                    "[@click=screen.backlog][bold]L[/] backlog[/]"
                ),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """The newest job is under the cursor."""
        self.show(self._model)
        self._list.focus()

    def show(self, model: JobsModel) -> None:
        """Show these jobs; the cursor stays on its row."""
        self._model = model
        none = Notice("No job was begun yet: type : and coord_improve COMPONENT, or coord_analyze.")
        self._list.set_notice(None if model.lines else none)
        self._list.set_rows([_row(one) for one in model.lines])
        self._said.update(Content(clean_line(model.said)), layout=True)

    def action_cancel(self) -> None:
        """End the job under the cursor."""
        job = next((one for one in self._model.lines if one.id == self._list.cursor), None)
        if job is not None and not job.over:
            self.post_message(self.CancelRequested(job.id))
        elif job is not None:
            self._said.update(Content(f"{clean_line(job.id)} is over already"))

    def action_backlog(self) -> None:
        """See the backlog."""
        self.post_message(self.BacklogRequested())


def meter(part: float | None, cells: int = METER) -> Pieces:
    """How much is done, as a bar; nothing where that is not known."""
    if part is None:
        return ()
    full = round(max(0.0, min(1.0, part)) * cells)
    return (Piece("▓" * full, "accent"), Piece("░" * (cells - full), "dim"))


def _row(one: JobLine) -> Row:
    bar = (*meter(one.part), Piece(f" {clean_line(one.count)} ", "dim")) if one.part is not None else ()
    return Row(
        one.id,
        (
            Piece(f"{clean_line(one.id):<4} ", "strong"),
            Piece(f"{clean_line(one.status):<11} ", one.style),
            Piece(f"{clean_line(one.asked, limit=80)} ", "accent"),
            *(bar or (Piece("· ", "dim"),)),
            Piece(clean_line(one.said, limit=600)),
        ),
        tail=(Piece(clean_line(one.when), "dim"),),
        indent=5,
        most=3,
        mark=Piece(one.mark, one.style),
        copy=f"{clean_line(one.id)} {clean_line(one.asked)} {clean_line(one.said)}",
    )
