"""Budgets: what was taken, what is left and what is to be expected, and giving more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.pieces import Piece, Pieces, bar
from widgets.rows import Row, RowPane

KIND_CELLS, BAR_CELLS = 9, 12
NEAR = 0.8
"""Part of a budget from which on little is left."""
SEPARATOR = "/"
"""Between budget and kind in the key of a row."""


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One kind of one budget."""

    kind: str
    spent: str
    """With its unit, as the other amounts are."""
    limit: str = ""
    """Empty where there is none."""
    left: str = ""
    reserved: str = ""
    """What is set aside for others or under way; empty for nothing."""
    part: float = 0.0
    """Of the limit that is spent, between 0 and 1."""
    reserved_part: float = 0.0
    forecast: str = ""
    """What will have been spent in the end; empty where nothing can be said."""
    short: bool = False
    """Whether more is to be expected than the limit."""
    more: str = ""
    """What the quick top-up adds, such as `+0.5`; empty where there is no limit."""


@dataclass(frozen=True, slots=True)
class BudgetSection:
    """One budget: of a goal, an agent or the workspace."""

    budget: str
    """Its name for commands."""
    title: str
    lines: tuple[BudgetLine, ...] = ()
    basis: str = ""
    """What the forecasts rest on, or why there are none."""
    holds: str = ""
    """Whom it holds now, in words."""


@dataclass(frozen=True, slots=True)
class BudgetsModel:
    """What the dialog shows."""

    agent: str = ""
    sections: tuple[BudgetSection, ...] = ()
    """The nearest first."""


class BudgetList(RowPane):
    """The kinds of each budget, one a line."""

    MARKS = True
    BINDING_GROUP_TITLE = "Budgets"
    EMPTY = "There is no agent yet."
    DEFAULT_CSS = """
    BudgetList, BudgetList:focus { border: none; height: 1fr; min-height: 1; }
    """

    @dataclass
    class Chosen(Message):
        """The line under the cursor was chosen with enter or a double click."""

    def row_chosen(self, key: str) -> None:
        """Enter and a double click change it."""
        self.post_message(self.Chosen())

    def show(self, model: BudgetsModel) -> None:
        """Show this model."""
        rows: list[Row] = []
        for at, section in enumerate(model.sections):
            if at:
                rows.append(Row(f"blank:{at}", (Piece(""),), selectable=False))
            rows += _heading(section)
            rows += [_row(section, line) for line in section.lines]
        self.set_rows(rows)


class BudgetsDialog(BoxDialog[None]):
    """Shows budgets and posts what the operator wants of them; `show` brings news."""

    DEFAULT_CSS = """
    BudgetsDialog > Vertical { height: 96%; }
    BudgetsDialog #line { height: auto; max-height: 3; color: $text-warning; }
    BudgetsDialog Input { display: none; }
    BudgetsDialog.-writing Input { display: block; }
    BudgetsDialog.-writing .-keys { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "edit", "Change", id="budgets.edit"),
        Binding("plus", "more", "A quarter more", id="budgets.more"),
        Binding("n", "lift", "No limit", id="budgets.lift"),
        Binding("dollar_sign,q", "close", "Close", id="budgets.close"),
    ]

    @dataclass
    class SetRequested(Message):
        """The operator wants a budget set: `5`, `+5` on top of what holds, or `none`."""

        budget: str
        kind: str
        amount: str

    def __init__(self, model: BudgetsModel) -> None:
        super().__init__()
        self._model = model
        self._list = BudgetList()
        self._line = Static(id="line")
        self._input = Input(max_length=40, placeholder="5, +5 for more, none for no limit")

    def compose(self) -> ComposeResult:
        """The budgets, what came of the last change, and the keys."""
        with Vertical() as box:
            box.border_title = Content(f"Budgets of {clean_line(self._model.agent, limit=100)}")
            box.border_subtitle = "esc close"
            yield self._list
            yield self._line
            yield self._input
            yield Static(
                Content.from_markup(
                    "[@click=screen.edit][bold]enter[/] change[/]   "
                    "[@click=screen.more][bold]+[/] a quarter more[/]   "
                    "[@click=screen.lift][bold]n[/] no limit[/]"
                ),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """The list has the focus."""
        self._list.show(self._model)
        self._list.focus()

    def show(self, model: BudgetsModel) -> None:
        """Show this model; the cursor stays."""
        if model != self._model:
            self._model = model
            self._list.show(model)

    def say(self, text: str) -> None:
        """Say what came of a change, or what is wrong with it."""
        self._line.update(Content(clean_line(text)))

    def _chosen(self) -> tuple[str, BudgetLine] | None:
        budget, _, kind = self._list.cursor.rpartition(SEPARATOR)
        for section in self._model.sections:
            for line in section.lines:
                if (section.budget, line.kind) == (budget, kind):
                    return budget, line
        return None

    def on_budget_list_chosen(self, event: BudgetList.Chosen) -> None:
        """A line was chosen in the list."""
        event.stop()
        self.action_edit()

    def action_edit(self) -> None:
        """Let the operator type an amount."""
        if (found := self._chosen()) is not None:
            budget, line = found
            self._input.value = ""
            now = line.limit or "without a limit"
            self.say(f"{line.kind} of {budget}, now {now}: enter sets it, esc goes back")
            self.add_class("-writing")
            self._input.focus()

    def action_more(self) -> None:
        """Ask for a quarter more of the line under the cursor."""
        if (found := self._chosen()) is not None and not self.has_class("-writing"):
            budget, line = found
            if line.more:
                self.post_message(self.SetRequested(budget, line.kind, line.more))
            else:
                self.say(f"{line.kind} of {budget} has no limit: enter sets one")

    def action_lift(self) -> None:
        """Ask for no limit on the line under the cursor."""
        if (found := self._chosen()) is not None and not self.has_class("-writing"):
            self.post_message(self.SetRequested(found[0], found[1].kind, "none"))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        found = self._chosen()
        if found is not None and event.value.strip():
            self.post_message(self.SetRequested(found[0], found[1].kind, "".join(event.value.split())))
        self._done()

    def action_close(self) -> None:
        """Go back from an amount; else close."""
        if self.has_class("-writing"):
            self.say("")
            self._done()
        else:
            self.dismiss(None)

    def _done(self) -> None:
        self.remove_class("-writing")
        self._list.focus()


def _heading(section: BudgetSection) -> list[Row]:
    title = (Piece(clean_line(section.title), "heading"),)
    tail = (Piece(clean_line(section.holds), "warning"),) if section.holds else ()
    rows = [Row(f"heading:{section.budget}", title, tail=tail, selectable=False)]
    if section.basis:
        said = (Piece(clean_line(section.basis), "dim"),)
        rows.append(Row(f"basis:{section.budget}", said, selectable=False, indent=2, most=2))
    return rows


def _row(section: BudgetSection, line: BudgetLine) -> Row:
    return Row(
        f"{section.budget}{SEPARATOR}{line.kind}",
        (
            Piece(f"{clean_line(line.kind):<{KIND_CELLS}}", "strong" if line.limit else "dim"),
            *_bar(line),
            Piece(f" {line.spent}", "text" if line.limit else "dim"),
            *((Piece(f" of {line.limit}"),) if line.limit else ()),
            *((Piece(f", {line.left} left", "error" if line.part >= 1 else "text"),) if line.limit else ()),
            *((Piece(f", {line.reserved} set aside", "dim"),) if line.reserved else ()),
        ),
        tail=(Piece(line.forecast and f"→ {line.forecast}", "warning" if line.short else "dim"),),
        mark=Piece("!", "warning") if line.short or line.part >= 1 else Piece(" "),
        indent=KIND_CELLS,
        most=2,
    )


def _bar(line: BudgetLine) -> Pieces:
    """Spent in full, then what is set aside, then what is left; blank without a limit."""
    if not line.limit:
        return (Piece(" " * BAR_CELLS),)
    style = "error" if line.part >= 1 else "warning" if line.part >= NEAR else "accent"
    spent = bar(line.part, BAR_CELLS, style=style)
    *full, rest = spent
    if line.part >= 1:
        return spent
    aside = min(max(round(line.reserved_part * BAR_CELLS), 1 if line.reserved_part else 0), len(rest.text))
    left = Piece("░" * (len(rest.text) - aside), "dim")
    return tuple(piece for piece in (*full, Piece("▒" * aside, "dim"), left) if piece.text)
