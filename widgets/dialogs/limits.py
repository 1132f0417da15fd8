"""What holds an agent: its breakpoints and how often they stopped it, and budgets with what is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual import on
from textual.widget import Widget
from textual.widgets import Input

from engine.core.text import clean_line
from widgets.base.dialog import DialogKey, ListDialog
from widgets.base.line_pane import LinePane, RowChosen
from widgets.base.rows import Row, blank, heading
from widgets.base.text_layout import Piece, Pieces, bar

BreakpointCheck = Callable[[str, str], str]
"""Takes kind and pattern, and gives what is wrong with them in a sentence, or nothing."""


@dataclass(frozen=True, slots=True)
class KindLine:
    """A kind of breakpoint that can be added."""

    kind: str
    key: str
    what: str
    """When it holds the agent."""
    example: str
    """How it is written."""


MIND_KINDS = (
    KindLine("step", "s", "before an action that fits is started", "such as move(_)"),
    KindLine("belief", "b", "when a belief that fits comes or goes", "such as there_is(home, _)"),
    KindLine("goal", "g", "when a goal that fits is taken up", "such as reach(_)"),
    KindLine("plan", "p", "when a plan that fits is chosen", "such as go_home"),
    KindLine("error", "e", "when a failure that fits occurs", "such as no_plan"),
)
"""What a reasoner's program does."""


@dataclass(frozen=True, slots=True)
class BreakpointLine:
    """One breakpoint."""

    id: str
    kind: str
    pattern: str
    enabled: bool = True
    hits: int = 0
    """How often it stopped the agent."""
    matched: int = 0
    """How often it came; 0 where that is not counted."""
    last: str = ""
    """The event at which it stopped the agent last; empty for none that is known."""


@dataclass(frozen=True, slots=True)
class BreakpointsModel:
    """What the dialog shows."""

    breakpoints: tuple[BreakpointLine, ...] = ()
    agent: str = ""
    kinds: tuple[KindLine, ...] = MIND_KINDS


class BreakpointsDialog(ListDialog[BreakpointsModel]):
    """The breakpoints, and below them what a new one needs."""

    LIST_TITLE, EMPTY = "Breakpoints", "There are no breakpoints. Press a to add one."
    WRITTEN_MOST = 900
    KEYS = (
        DialogKey("a,insert", "add", "add"),
        DialogKey("space", "switch", "on, off"),
        DialogKey("delete,D", "remove", "delete"),
        DialogKey("w", "why", "why it held last"),
    )
    DEFAULT_CSS = """
    BreakpointsDialog > Vertical { height: 80%; min-height: 12; }
    BreakpointsDialog #kinds { max-height: 60%; min-height: 1; display: none; }
    BreakpointsDialog.-choosing #kinds { display: block; }
    BreakpointsDialog.-choosing .-keys { display: none; }
    """

    def __init__(self, model: BreakpointsModel, check: BreakpointCheck) -> None:
        super().__init__(model)
        self._check = check
        self._kind: KindLine | None = None
        self._kinds = LinePane(title="Kinds", click_chooses=True, id="kinds")
        self._kinds.letters = {kind.key: kind.kind for kind in model.kinds}
        self._kinds.styles.height = len(model.kinds)

    def parts(self) -> Sequence[Widget]:
        """The breakpoints, then what a new one needs."""
        return (self.list, self.said, self._kinds, self.line)

    def title_text(self) -> str:
        """Whose they are."""
        agent = clean_line(self.model.agent, limit=100)
        return f"Breakpoints of {agent}" if agent else "Breakpoints"

    def rows(self) -> list[Row]:
        """The breakpoints."""
        return [_row(each) for each in self.model.breakpoints]

    def on_mount(self) -> None:
        """The breakpoints have the focus."""
        super().on_mount()
        self._kinds.set_rows(
            [
                Row(
                    kind.kind,
                    (Piece(f"{kind.key}  ", "accent"), Piece(f"{kind.kind:<10}"), Piece(kind.what, "dim")),
                )
                for kind in self.model.kinds
            ]
        )

    # What there is

    @property
    def _adding(self) -> bool:
        return self.has_class("-choosing") or bool(self.writing)

    @on(RowChosen, "#list")
    def action_switch(self) -> None:
        """Ask for the breakpoint under the cursor to be switched on or off."""
        for each in self.model.breakpoints:
            if each.id == self.list.cursor and not self._adding:
                self.request("switch", each.id, not each.enabled)

    def action_remove(self) -> None:
        """Ask for the breakpoint under the cursor to be deleted."""
        if self.list.cursor and not self._adding:
            self.request("remove", self.list.cursor)

    def action_why(self) -> None:
        """Ask about the event at which the breakpoint under the cursor stopped the agent last."""
        chosen = next((each for each in self.model.breakpoints if each.id == self.list.cursor), None)
        if chosen is None or self._adding:
            return
        if chosen.last:
            self.request("why", chosen.last)
            self.dismiss(None)
        else:
            self.say(
                "it has not held the agent yet" if not chosen.hits else "where it held is in the mind stream"
            )

    # A new one

    def action_add(self) -> None:
        """Ask which kind."""
        self.add_class("-choosing")
        self.say("Stop the agent …")
        self._kinds.focus()

    @on(RowChosen, "#kinds")
    def _kind_chosen(self, event: RowChosen) -> None:
        self._kind = next(kind for kind in self.model.kinds if kind.kind == event.key)
        self.remove_class("-choosing")
        self.field.placeholder = self._kind.example
        self.write("pattern", "")
        self.say(f"{self._kind.kind}: {self._kind.what} — enter adds it, esc goes back")

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        """Say what is wrong as it is typed."""
        pattern, kind = event.value.strip(), self._kind
        if kind is None or not self.writing:
            return
        problem = clean_line(self._check(kind.kind, pattern)) if pattern else ""
        self.say(f"✗ {problem}" if problem else f"{kind.kind}: {kind.what} — enter adds it")
        if pattern and not problem:
            self.request("dry_run", kind.kind, pattern)

    def written(self, what: str, text: str) -> bool:
        """Ask for it to be added, if nothing is wrong with it."""
        assert self._kind is not None
        problem = clean_line(self._check(self._kind.kind, text))
        if not problem:
            self.request("add", self._kind.kind, text)
        self.say(f"✗ {problem}" if problem else "")
        return not problem

    def tell(self, kind: str, pattern: str, result: str) -> None:
        """Show the result of a dry run, if that is still what is being written."""
        shown = self._kind.kind if self._kind is not None and self.writing else ""
        if (shown, self.field.value.strip()) == (kind, pattern):
            self.say(f"{clean_line(result)} — enter adds it")

    def action_close(self) -> None:
        """Go back from a new breakpoint; else close."""
        if self.writing:
            self.stop_writing()
            self.action_add()
        elif self.has_class("-choosing"):
            self.remove_class("-choosing")
            self.say("")
            self.list.focus()
        else:
            self.dismiss(None)


def _row(line: BreakpointLine) -> Row:
    hits = f"{line.hits:,} hit{'' if line.hits == 1 else 's'}" if line.hits else ""
    if line.matched > line.hits:
        hits = f"{hits} of {line.matched:,}".strip() if hits else f"came {line.matched:,}"
    off = "" if line.enabled else "off"
    return Row(
        line.id,
        (
            Piece(f"{line.kind:<8}", "accent" if line.enabled else "dim"),
            Piece(clean_line(line.pattern), "text" if line.enabled else "dim"),
        ),
        tail=(Piece("  ".join(part for part in (hits, off) if part), "dim"),),
        mark=Piece("●", "error") if line.enabled else Piece("○", "dim"),
        indent=8,
        most=3,
        copy=clean_line(line.pattern),
    )


KIND_CELLS, BAR_CELLS = 9, 12
NEAR = 0.8
"""Part of a budget from which on little is left."""
SEPARATOR = "/"
"""Between budget and kind in the key of a row."""


@dataclass(frozen=True, slots=True)
class BudgetRow:
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
    lines: tuple[BudgetRow, ...] = ()
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


class BudgetsDialog(ListDialog[BudgetsModel]):
    """Budgets with what was spent, is left and is to be expected of each kind."""

    LIST_TITLE, EMPTY = "Budgets", "There is no agent yet."

    KEYS = (
        DialogKey("e", "edit", "change", shown="enter"),
        DialogKey("plus", "more", "a quarter more"),
        DialogKey("n", "lift", "no limit"),
        DialogKey("dollar_sign,q", "close"),
    )
    DEFAULT_CSS = """
    BudgetsDialog > Vertical { height: 96%; }
    """

    def parts(self) -> Sequence[Widget]:
        """The kinds of each budget, the result of the last change, and the line to write in."""
        return (self.list, self.said, self.line)

    def title_text(self) -> str:
        """Whose budgets they are."""
        return f"Budgets of {clean_line(self.model.agent, limit=100)}"

    def rows(self) -> list[Row]:
        """Each budget below its heading."""
        return _rows(self.model)

    def show(self, model: BudgetsModel) -> None:
        """Show this model; the cursor and the result of the last change stay."""
        self.model = model
        self.list.set_rows(self.rows())

    def _chosen(self) -> tuple[str, BudgetRow] | None:
        budget, _, kind = self.list.cursor.rpartition(SEPARATOR)
        for section in self.model.sections:
            for line in section.lines:
                if (section.budget, line.kind) == (budget, kind):
                    return budget, line
        return None

    @on(RowChosen)
    def action_edit(self) -> None:
        """Let the operator type an amount."""
        if (chosen := self._chosen()) is not None:
            budget, line = chosen
            now = line.limit or "without a limit"
            self.say(f"{line.kind} of {budget}, now {now}: enter sets it, esc goes back")
            self.write("amount", "5, +5 for more, none for no limit:")

    def action_more(self) -> None:
        """Ask for a quarter more of the line under the cursor."""
        if (chosen := self._chosen()) is not None and not self.writing:
            budget, line = chosen
            if line.more:
                self.request("set", budget, line.kind, line.more)
            else:
                self.say(f"{line.kind} of {budget} has no limit: enter sets one")

    def action_lift(self) -> None:
        """Ask for no limit on the line under the cursor."""
        if (chosen := self._chosen()) is not None and not self.writing:
            self.request("set", chosen[0], chosen[1].kind, "none")

    def written(self, what: str, text: str) -> bool:
        """Ask for the amount."""
        if text and (chosen := self._chosen()) is not None:
            self.request("set", chosen[0], chosen[1].kind, "".join(text.split()))
        return True

    def action_close(self) -> None:
        """Go back from an amount; else close."""
        if self.writing:
            self.say("")
        super().action_close()


def _rows(model: BudgetsModel) -> list[Row]:
    """Each budget below its heading."""
    rows: list[Row] = []
    for at, section in enumerate(model.sections):
        if at:
            rows.append(blank(f"blank:{at}"))
        holds = (Piece(clean_line(section.holds), "warning"),) if section.holds else ()
        rows.append(heading(f"heading:{section.budget}", clean_line(section.title), tail=holds))
        if section.basis:
            basis = (Piece(clean_line(section.basis), "dim"),)
            rows.append(Row(f"basis:{section.budget}", basis, selectable=False, indent=2, most=2))
        rows += [_budgets_row(section, line) for line in section.lines]
    return rows


def _budgets_row(section: BudgetSection, line: BudgetRow) -> Row:
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


def _bar(line: BudgetRow) -> Pieces:
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
