"""The status line: who acts, in which mode, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from textual import events

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.pane_tabs import StripLine
from widgets.base.text_layout import OPERATOR_STYLES, Piece, Pieces, cut_text, operator_style, width_of

Mode = Literal[
    "RUNNING", "IDLE", "PAUSED", "STEPPING", "WAITING", "INTERVENTION", "SHELL", "FROZEN", "PAST", "STOPPED"
]

MODE_MARKS: dict[str, tuple[str, str]] = {
    "RUNNING": ("▶", "running"),
    "IDLE": ("○", "idle"),
    "PAUSED": ("‖", "paused"),
    "STEPPING": ("»", "stepping"),
    "WAITING": ("?", "waiting"),
    "INTERVENTION": ("!", "intervention"),
    "SHELL": ("$", "shell"),
    "FROZEN": ("*", "frozen"),
    "PAST": ("◀", "past"),
    "STOPPED": ("■", "stopped"),
}
METER_CELLS = 5
HEAD_CELLS = 14
"""Cells of the short form of where a held agent stands."""


@dataclass(frozen=True, slots=True)
class StatusModel:
    """What the status line shows."""

    app: str = "pilothouse"
    agent: str = ""
    mode: Mode = "STOPPED"
    point: str = ""
    """Where it is paused (`before acting`), what it waits for, or which past event is shown."""
    tick: int = 0
    thinker: str = ""
    recorded: bool = False
    """Whether a recording answers in the place of a model."""
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: bool = False
    """Whether something was asked of which no price is known."""
    context: float | None = None
    """Part of the context window in use, between 0 and 1; None when there is none."""
    background: int = 0
    background_limit: int = 0
    errors: int = 0
    """Open errors."""
    sandbox: str = ""
    """The sandbox tier and the network, such as `FULL · net off`."""
    sandbox_alarm: str = ""
    """Two words where programs are refused or unconfined; then this cell goes last of all."""
    journal: str = ""
    """What is wrong with the journal, in a few words; empty when all is well."""
    asks: bool = False
    """True when the agent waits for a decision of the operator's."""
    waiting: int = 0
    """How many things wait for the operator, over all agents."""
    job: str = ""
    """Background jobs, and what waits there for the operator; empty for nothing."""
    job_short: str = ""
    """The same in a few cells."""
    link: str = ""
    """Where the engine is that another process has; empty where it is here."""
    lost: bool = False
    """Whether that engine cannot be reached."""
    others: tuple[tuple[str, bool], ...] = ()
    """Who else is connected to the engine, and whether they only watch."""
    holder: str = ""
    """Which operator holds the agent's controls; empty for nobody."""
    fault: str = ""
    """Which agent ended by a fault of the program, and by what; empty when none did."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """One cell with its long and its short form; the less it matters, the sooner it goes."""

    weight: int
    full: Pieces
    short: Pieces | None = None
    """None where it has none; empty where it goes before others shorten."""
    action: str = ""
    """The cockpit's action that a click means; empty for nothing."""


class StatusBar(StripLine):
    """One line of cells; at narrow widths the least important ones shorten, then go."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(
            f"status--{name}"
            for name in ("text", "dim", "strong", "accent", "success", "warning", "error", "alarm", "inbox")
        ),
        *(f"status--{style}" for style in OPERATOR_STYLES),
        *(f"status--{style}" for _, style in MODE_MARKS.values()),
    }

    PREFIX = "status"

    _model = StatusModel()

    def on_click(self, event: events.Click) -> None:
        """What a cell counts is shown in full."""
        if action := self.part_at(event.x):
            self.call_later(self.app.run_action, action)

    def show(self, model: StatusModel) -> None:
        """Show this model."""
        if model != self._model:
            self._model = model
            self.refresh()

    def parts(self, width: int) -> Iterable[tuple[str, str, str]]:
        """The cells, each with the action that a click on it means."""
        return ((text, str(style), action) for (text, style), action in _parts_of(self._model, width))


def line_of(model: StatusModel, width: int) -> Pieces:
    """The status line in at most `width` cells."""
    return tuple(piece for piece, _ in _parts_of(model, width))


def _parts_of(model: StatusModel, width: int) -> Sequence[tuple[Piece, str]]:
    cells = _cells(model)
    form = {id(cell): cell.full for cell in cells}

    def total() -> int:
        shown = [pieces for pieces in form.values() if pieces]
        return sum(width_of(pieces) for pieces in shown) + 2 * max(0, len(shown) - 1) + 2

    # First the cells shorten, the least important first, then they go in the same order.
    for pick in ("short", "gone"):
        for cell in sorted(cells, key=lambda cell: cell.weight):
            if total() <= width:
                break
            if pick == "short" and cell.short is not None:
                form[id(cell)] = cell.short
            elif pick == "gone":
                form[id(cell)] = ()
    line: list[tuple[Piece, str]] = []
    for cell in cells:
        if form[id(cell)]:
            line.append((Piece("  " if line else " "), ""))
            line += [(piece, cell.action) for piece in form[id(cell)]]
    if not line:
        glyph, style = MODE_MARKS[model.mode]
        return [(Piece(cut_text(f"{glyph} {model.mode}", width), style), "")]
    return line


def _cells(model: StatusModel) -> list[_Cell]:
    """The cells from left to right."""
    glyph, style = MODE_MARKS[model.mode]
    word = Piece(f" {glyph} {model.mode} ", style)
    point = clean_line(model.point)
    agent = clean_line(model.agent)
    cost = Piece(
        "$?" if model.unpriced and not model.cost_usd else f"${model.cost_usd:.2f}{'+?' * model.unpriced}"
    )
    spent = (Piece(count_text(model.tokens)), Piece(" tok ", "dim"), cost)
    cells = [
        _Cell(5, (Piece(clean_line(model.app), "accent"),)),
        _Cell(80, _some(agent, "strong"), _some(cut_text(agent, 14), "strong"), "fleet"),
        _Cell(
            100,
            (word, Piece(f" {point}")) if point else (word,),
            (word, *_head(point)),
            "intervene" if model.asks else "",
        ),
        # Nothing but the mode and an alarm stands before it: a question that is not seen blocks silently.
        _Cell(98, _some(f"✉ {model.waiting}" if model.waiting else "", "inbox"), action="inbox"),
        _Cell(96, _some("RECORDED" if model.recorded else "", "warning")),
        _Cell(60, _named("tick", str(model.tick)), (Piece(f"t{model.tick}"),)),
        _Cell(
            20, _some(clean_line(model.thinker), "dim"), _some(cut_text(clean_line(model.thinker), 10), "dim")
        ),
        _Cell(50, spent, (cost,), "budgets"),
        _Cell(
            40,
            _meter(model.context),
            _named("ctx", f"{model.context:.0%}") if model.context is not None else (),
            "context",
        ),
        _Cell(
            30 if model.background else 10,
            _named("bg", f"{model.background}/{model.background_limit}") if model.background_limit else (),
            (Piece(f"bg{model.background}"),) if model.background else (),
            "meta",
        ),
        _Cell(
            *(70, _some(clean_line(model.job), "accent"), _some(clean_line(model.job_short), "accent")),
            action="mastermind_jobs",
        ),
        _errors(model),
        _Cell(
            97 if model.lost else 65,
            _some(clean_line(model.link), "error" if model.lost else "dim"),
            _some("connection lost", "error")
            if model.lost
            else _some(clean_line(model.link).partition(" ")[0], "dim"),
        ),
        _Cell(85, *_holder(model.holder)),
        _Cell(42, _others(model.others)),
    ]
    cells += _sandbox(model)
    if model.journal:
        words = clean_line(model.journal)
        cells.append(_Cell(95, (Piece(f"✗ journal: {words}", "error"),), (Piece("✗ journal", "error"),)))
    if model.fault:
        words = clean_line(model.fault)
        cells.append(_Cell(94, (Piece(f"✗ fault: {words}", "error"),), (Piece("✗ fault", "error"),)))
    return [cell for cell in cells if cell.full]


def _holder(name: str) -> tuple[Pieces, Pieces]:
    """Who holds the controls, and the same in fewer cells."""
    shown = _some(clean_line(name), operator_style(name))
    return ((Piece("controls ", "dim"), *shown), (Piece("@", "dim"), *shown)) if shown else ((), ())


def _others(others: Iterable[tuple[str, bool]]) -> Pieces:
    """Who else is connected, each in their colour."""
    line: list[Piece] = []
    for name, watches in others:
        line += [Piece(", " if line else "with ", "dim"), Piece(clean_line(name), operator_style(name))]
        line += [Piece(" watches", "dim")] if watches else []
    return tuple(line)


def _head(point: str) -> Pieces:
    """What stands before a colon, such as which breakpoint holds the agent, where that is short."""
    head, colon, _ = point.partition(":")
    return (Piece(f" {head}"),) if colon and len(head) <= HEAD_CELLS else ()


def _sandbox(model: StatusModel) -> list[_Cell]:
    words = clean_line(model.sandbox)
    if model.sandbox_alarm:
        alarm = Piece(f" ! {clean_line(model.sandbox_alarm)} ", "alarm")
        return [_Cell(99, (Piece(f" ! {words} ", "alarm"),), (alarm,), "policy")]
    return [_Cell(75, _some(words, "dim"), _some(words.partition(" ")[0], "dim"), "policy")]


def _some(text: str, style: str) -> Pieces:
    return (Piece(text, style),) if text else ()


def _named(name: str, value: str) -> Pieces:
    return (Piece(name + " ", "dim"), Piece(value))


def _meter(part: float | None) -> Pieces:
    if part is None:
        return ()
    full = round(max(0.0, min(1.0, part)) * METER_CELLS)
    style = "error" if part >= 0.9 else "warning" if part >= 0.75 else "text"
    return (
        Piece("ctx ", "dim"),
        Piece("▓" * full, style),
        Piece("░" * (METER_CELLS - full), "dim"),
        Piece(f" {part:.0%}", style),
    )


def _errors(model: StatusModel) -> _Cell:
    errors = "pane('errors')"
    if not model.errors:
        return _Cell(10, (Piece("errors 0", "dim"),), action=errors)
    word = "error" if model.errors == 1 else "errors"
    return _Cell(
        90, (Piece(f"✗ {model.errors} {word}", "error"),), (Piece(f"✗{model.errors}", "error"),), errors
    )


def count_text(count: int) -> str:
    """A number of tokens in few cells: `812`, `12.4k`, `3.1M`."""
    if count < 1_000:
        return str(count)
    return f"{count / 1_000:.1f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"
