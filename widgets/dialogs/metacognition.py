"""The agent's meta-cognition: what is due, what runs in the background, and the last results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.core.text import clean_line
from widgets.base.dialog import DialogKey, ListDialog
from widgets.base.line_pane import Notice
from widgets.base.rows import Row, blank, heading
from widgets.base.text_layout import Piece, Pieces, bar, pad

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
    """Its last result."""
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
    """Its result."""
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


def _rows(model: MetaModel) -> list[Row]:
    """Gauges, jobs, and what is to be known besides."""
    rows: list[Row] = []
    if model.gauges:
        rows.append(heading("heading:gauges", "what is due, by what is counted"))
        for gauge in model.gauges:
            rows += _gauge_rows(gauge)
    if model.gauges or model.running:
        count = f"{len(model.running)}/{model.limit}" if model.limit else f"{len(model.running)}"
        rows += [blank("b1"), heading("heading:running", f"in the background {count}")]
        rows += [_job_row(job) for job in model.running] or [_text_row("nothing", "nothing runs")]
    if model.ended:
        rows += [blank("b2"), heading("heading:ended", "ended lately")]
        rows += [_job_row(job) for job in model.ended]
    for key, title, texts, style in (
        ("signals", "may be stuck", model.signals, "warning"),
        ("feedback", "waits for the next prompt", model.feedback, "text"),
    ):
        if texts:
            rows += [blank(f"{key}-blank"), heading(f"heading:{key}", title)]
            rows += [_text_row(f"{key}:{at}", text, style) for at, text in enumerate(texts)]
    if model.facts:
        rows += [blank("b3"), *(_fact(at, *fact) for at, fact in enumerate(model.facts))]
    return rows


class MetaDialog(ListDialog[MetaModel]):
    """What is due and what runs, and the keys that force, veto and cancel."""

    LIST_TITLE = "Meta-cognition"
    EMPTY = "What the agent does about its own thinking will appear here once it runs. Press space to run it."

    KEYS = (
        DialogKey("f", "force", "do it now"),
        DialogKey("v", "veto", "veto"),
        DialogKey("x", "cancel", "cancel job"),
        DialogKey("plus", "threshold('later')", "", shown="+"),
        DialogKey("minus", "threshold('sooner')", "threshold"),
        DialogKey("ctrl+g", "guide", "guide"),
        DialogKey("m,q", "close"),
    )
    DEFAULT_CSS = "MetaDialog > Vertical { height: 96%; }"

    def title_text(self) -> str:
        """Whose it is."""
        agent = clean_line(self.model.agent, limit=100)
        return f"Meta-cognition of {agent}" if agent else "Meta-cognition"

    def rows(self) -> list[Row]:
        """Gauges, jobs, and what is to be known besides."""
        return _rows(self.model)

    def _gauge(self) -> Gauge | None:
        """The task under the cursor, or that of the job under it."""
        key = self.list.cursor
        if key.startswith(TASK):
            return next((gauge for gauge in self.model.gauges if gauge.task == key.removeprefix(TASK)), None)
        job = self._job()
        return next((gauge for gauge in self.model.gauges if job and gauge.task == job.task), None)

    def _job(self) -> BackgroundLine | None:
        """The running job under the cursor."""
        key = self.list.cursor
        return next((job for job in self.model.running if f"{JOB}{job.id}" == key), None)

    def action_force(self) -> None:
        """Ask for the task to be done now."""
        if (gauge := self._gauge()) is not None:
            self.request("force", gauge.task)

    def action_veto(self) -> None:
        """Ask for the task not to be begun by itself, or to be allowed again."""
        if (gauge := self._gauge()) is not None:
            self.request("veto", gauge.task, gauge.standing != "vetoed")

    def action_cancel(self) -> None:
        """Ask for the job under the cursor, or the task's running one, to be ended."""
        gauge = self._gauge()
        job = self._job() or next(
            (job for job in self.model.running if gauge is not None and job.task == gauge.task), None
        )
        if job is not None:
            self.request("cancel", job.id)

    def action_threshold(self, way: str) -> None:
        """Ask for a higher threshold, so that the task is due later, or for a lower one."""
        gauge, by = self._gauge(), 1 if way == "later" else -1
        if gauge is not None and gauge.adjustable:
            self.request("threshold", gauge.task, max(1, round(gauge.threshold) + by))

    def action_guide(self) -> None:
        """Close, and let the operator write what the thinker is to know."""
        self.dismiss(None)
        self.app.call_later(self.app.run_action, "guide")


def _text_row(key: str, text: str, style: str = "dim") -> Row:
    return Row(key, (Piece(clean_line(text), style),), selectable=False, indent=2, most=4)


def _fact(at: int, label: str, text: str) -> Row:
    pieces = (Piece(pad(clean_line(label), NAME_CELLS, gap=1), "dim"), Piece(clean_line(text)))
    return Row(f"fact:{at}", pieces, selectable=False, indent=NAME_CELLS, most=4)


def _gauge_rows(gauge: Gauge) -> list[Row]:
    """The gauge, and below it why it fired last and its result."""
    glyph, style = STANDINGS[gauge.standing]
    part = gauge.value / gauge.threshold if gauge.threshold else 0.0
    full = "warning" if part >= 1 else "accent"
    count = f"{_number(gauge.value)}/{_number(gauge.threshold)}"
    pieces: Pieces = (
        Piece(pad(clean_line(gauge.name), NAME_CELLS, gap=1), "dim" if gauge.standing == "off" else "strong"),
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
    text = " → ".join(clean_line(part) for part in (gauge.why, gauge.last) if part)
    if text:
        rows.append(
            Row(f"last:{gauge.task}", (Piece(f"  last: {text}", "dim"),), selectable=False, indent=8, most=3)
        )
    return rows


def _job_row(job: BackgroundLine) -> Row:
    style = {"": "success", "done": "dim"}.get(job.outcome, "error")
    text = " → ".join(clean_line(part) for part in (job.why, job.message) if part)
    outcome = f"{clean_line(job.outcome)} ".replace("_", " ") if job.outcome else ""
    return Row(
        JOB + job.id,
        (
            Piece(f"{clean_line(job.id)} ", "dim"),
            Piece(f"{clean_line(job.name or job.task)} ", "strong"),
            Piece(outcome, style),
            Piece(text),
        ),
        tail=(Piece(clean_line(job.age), "dim"),),
        mark=Piece(" ") if job.outcome else Piece("▶", "success"),
        indent=4,
        most=3,
    )


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"
