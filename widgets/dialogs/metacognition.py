"""How the agent looks after its own thinking: what is due, what runs in the background, what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.line_pane import Notice
from widgets.pieces import Piece, Pieces, bar, cut_text, width_of
from widgets.rows import Row, RowPane

NAME_CELLS, BAR_CELLS, COUNT_CELLS = 15, 16, 8
TASK, JOB = "task:", "job:"

Standing = Literal["waits", "due", "runs", "vetoed", "rests", "off"]
STANDINGS: dict[Standing, tuple[str, str]] = {
    "waits": (" ", "dim"),
    "due": ("!", "warning"),
    "runs": ("▶", "success"),
    "vetoed": ("–", "error"),
    "rests": ("‖", "warning"),
    "off": ("·", "dim"),
}


@dataclass(frozen=True, slots=True)
class Gauge:
    """One task of meta-cognition against what makes it due."""

    task: str
    """Its name for commands."""
    name: str
    value: float
    """How far the counter is."""
    threshold: float
    """At which it is due."""
    unit: str
    """What is counted: `successes`, `loops`."""
    standing: Standing
    due: str
    """When it is due next, in words: `in 3 loops`, `due now`."""
    why: str = ""
    """Why it fired last; empty before it did."""
    last: str = ""
    """What came of it the last time."""
    adjustable: bool = False
    """True where the operator can set the threshold."""


@dataclass(frozen=True, slots=True)
class BackgroundLine:
    """One job in the background."""

    id: str
    task: str
    why: str
    age: str
    """For how long it has been at it, in a word; of one that has ended how long ago that was."""
    outcome: str = ""
    """`done`, `failed`, …; empty while it runs."""
    message: str = ""
    """What came of it."""
    name: str = ""
    """The task in words; its name for commands when empty."""


@dataclass(frozen=True, slots=True)
class MetaModel:
    """What the dialog shows."""

    agent: str = ""
    gauges: tuple[Gauge, ...] = ()
    running: tuple[BackgroundLine, ...] = ()
    limit: int = 0
    """Jobs that may run at once."""
    ended: tuple[BackgroundLine, ...] = ()
    """The newest first."""
    facts: tuple[tuple[str, str], ...] = ()
    """Labels and texts, such as the failure rate."""
    signals: tuple[str, ...] = ()
    """Signs that the agent may be stuck."""
    feedback: tuple[str, ...] = ()
    """What waits for the next prompt."""
    notice: Notice | None = None


class MetaList(RowPane):
    """Gauges, jobs, and what is to be known besides."""

    MARKS = True
    BINDING_GROUP_TITLE = "Meta-cognition"
    EMPTY = "What the agent does about its own thinking will appear here once it runs. Press space to run it."
    DEFAULT_CSS = """
    MetaList, MetaList:focus { border: none; height: 1fr; min-height: 1; }
    """

    def show(self, model: MetaModel) -> None:
        """Show this model."""
        self.set_notice(model.notice)
        rows: list[Row] = []
        if model.gauges:
            rows.append(_heading("gauges", "what is due, by what is counted"))
            for gauge in model.gauges:
                rows += _gauge_rows(gauge)
        if model.gauges or model.running:
            count = f"{len(model.running)}/{model.limit}" if model.limit else f"{len(model.running)}"
            rows += [_blank("b1"), _heading("running", f"in the background {count}")]
            rows += [_job_row(job) for job in model.running] or [_said("nothing", "nothing runs")]
        if model.ended:
            rows += [_blank("b2"), _heading("ended", "ended lately")]
            rows += [_job_row(job) for job in model.ended]
        for key, title, texts, style in (
            ("signals", "may be stuck", model.signals, "warning"),
            ("feedback", "waits for the next prompt", model.feedback, "text"),
        ):
            if texts:
                rows += [_blank(f"{key}-blank"), _heading(key, title)]
                rows += [_said(f"{key}:{at}", text, style) for at, text in enumerate(texts)]
        if model.facts:
            rows += [_blank("b3"), *(_fact(at, *fact) for at, fact in enumerate(model.facts))]
        self.set_rows(rows)


class MetaDialog(BoxDialog[None]):
    """Shows what is due and what runs, and posts what the operator wants of it; `show` brings news."""

    DEFAULT_CSS = """
    MetaDialog > Vertical { height: 96%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "force", "Do it now", id="meta.force"),
        Binding("v", "veto", "Veto", id="meta.veto"),
        Binding("x", "cancel", "Cancel", id="meta.cancel"),
        Binding("plus", "later", "Later", id="meta.later"),
        Binding("minus", "sooner", "Sooner", id="meta.sooner"),
        Binding("ctrl+g", "guide", "Guide", id="meta.guide"),
        Binding("m,q", "close", "Close", id="meta.close"),
    ]

    @dataclass
    class ForceRequested(Message):
        """The operator wants a task done now."""

        task: str

    @dataclass
    class VetoRequested(Message):
        """The operator does not want a task begun by itself, or allows it again."""

        task: str
        on: bool

    @dataclass
    class CancelRequested(Message):
        """The operator wants a background job ended."""

        job: str

    @dataclass
    class ThresholdRequested(Message):
        """The operator wants a task due sooner or later."""

        task: str
        value: int

    def __init__(self, model: MetaModel) -> None:
        super().__init__()
        self._model = model
        self._list = MetaList()

    def compose(self) -> ComposeResult:
        """The list and the keys."""
        with Vertical() as box:
            agent = clean_line(self._model.agent, limit=100)
            box.border_title = Content(f"Meta-cognition of {agent}" if agent else "Meta-cognition")
            box.border_subtitle = "esc close"
            yield self._list
            yield Static(
                Content.from_markup(
                    "[@click=screen.force][bold]f[/] do it now[/]  "
                    "[@click=screen.veto][bold]v[/] veto[/]  "
                    "[@click=screen.cancel][bold]x[/] cancel job[/]  "
                    "[@click=screen.later][bold]+[/][/] "
                    "[@click=screen.sooner][bold]-[/] threshold[/]  "
                    "[@click=screen.guide][bold]ctrl+g[/] guide[/]"
                ),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """The list has the focus."""
        self._list.show(self._model)
        self._list.focus()

    def show(self, model: MetaModel) -> None:
        """Show this model; the cursor stays."""
        if model != self._model:
            self._model = model
            self._list.show(model)

    def _gauge(self) -> Gauge | None:
        """The task under the cursor, or that of the job under it."""
        key = self._list.cursor
        if key.startswith(TASK):
            return next((one for one in self._model.gauges if one.task == key.removeprefix(TASK)), None)
        job = self._job()
        return next((one for one in self._model.gauges if job is not None and one.task == job.task), None)

    def _job(self) -> BackgroundLine | None:
        """The running job under the cursor."""
        key = self._list.cursor
        return next((one for one in self._model.running if f"{JOB}{one.id}" == key), None)

    def action_force(self) -> None:
        """Ask for the task to be done now."""
        if (gauge := self._gauge()) is not None:
            self.post_message(self.ForceRequested(gauge.task))

    def action_veto(self) -> None:
        """Ask for the task not to be begun by itself, or to be allowed again."""
        if (gauge := self._gauge()) is not None:
            self.post_message(self.VetoRequested(gauge.task, gauge.standing != "vetoed"))

    def action_cancel(self) -> None:
        """Ask for the job under the cursor, or the task's running one, to be ended."""
        gauge = self._gauge()
        job = self._job() or next(
            (one for one in self._model.running if gauge is not None and one.task == gauge.task), None
        )
        if job is not None:
            self.post_message(self.CancelRequested(job.id))

    def action_later(self) -> None:
        """Ask for a higher threshold."""
        self._set_threshold(1)

    def action_sooner(self) -> None:
        """Ask for a lower threshold."""
        self._set_threshold(-1)

    def _set_threshold(self, by: int) -> None:
        gauge = self._gauge()
        if gauge is not None and gauge.adjustable:
            self.post_message(self.ThresholdRequested(gauge.task, max(1, round(gauge.threshold) + by)))

    def action_guide(self) -> None:
        """Close, and let the operator write what the thinker is to be told."""
        self.dismiss(None)
        self.app.call_later(self.app.run_action, "guide")


def _heading(key: str, text: str) -> Row:
    return Row(f"heading:{key}", (Piece(text, "heading"),), selectable=False)


def _blank(key: str) -> Row:
    return Row(f"blank:{key}", (Piece(""),), selectable=False)


def _said(key: str, text: str, style: str = "dim") -> Row:
    return Row(key, (Piece(clean_line(text), style),), selectable=False, indent=2, most=4)


def _fact(at: int, label: str, text: str) -> Row:
    pieces = (Piece(_fill(clean_line(label), NAME_CELLS), "dim"), Piece(clean_line(text)))
    return Row(f"fact:{at}", pieces, selectable=False, indent=NAME_CELLS, most=4)


def _gauge_rows(gauge: Gauge) -> list[Row]:
    """The gauge, and below it why it fired last and what came of it."""
    glyph, style = STANDINGS[gauge.standing]
    part = gauge.value / gauge.threshold if gauge.threshold else 0.0
    full = "warning" if part >= 1 else "accent"
    count = f"{_number(gauge.value)}/{_number(gauge.threshold)}"
    pieces: Pieces = (
        Piece(_fill(clean_line(gauge.name), NAME_CELLS), "dim" if gauge.standing == "off" else "strong"),
        *bar(part, BAR_CELLS, style=full),
        Piece(f"{count:>{COUNT_CELLS}} "),
        Piece(clean_line(gauge.unit), "dim"),
    )
    rows = [
        Row(
            TASK + gauge.task,
            pieces,
            tail=(Piece(clean_line(gauge.due), style),),
            mark=Piece(glyph, style),
            copy=f"{clean_line(gauge.name)} {count} {clean_line(gauge.unit)}, {clean_line(gauge.due)}",
        )
    ]
    told = " → ".join(clean_line(text) for text in (gauge.why, gauge.last) if text)
    if told:
        rows.append(
            Row(f"told:{gauge.task}", (Piece(f"  last: {told}", "dim"),), selectable=False, indent=8, most=3)
        )
    return rows


def _job_row(job: BackgroundLine) -> Row:
    style = {"": "success", "done": "dim"}.get(job.outcome, "error")
    told = " → ".join(clean_line(text) for text in (job.why, job.message) if text)
    outcome = f"{clean_line(job.outcome)} ".replace("_", " ") if job.outcome else ""
    return Row(
        JOB + job.id,
        (
            Piece(f"{clean_line(job.id)} ", "dim"),
            Piece(f"{clean_line(job.name or job.task)} ", "strong"),
            Piece(outcome, style),
            Piece(told),
        ),
        tail=(Piece(clean_line(job.age), "dim"),),
        mark=Piece(" ") if job.outcome else Piece("▶", "success"),
        indent=4,
        most=3,
    )


def _fill(text: str, cells: int) -> str:
    text = cut_text(text, cells - 1)
    return text + " " * (cells - width_of((Piece(text),)))


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"
