"""The stop panel: how much is to be stopped and of whom, and what came of the last stop."""

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

KILL = "kill"


@dataclass(frozen=True, slots=True)
class GradeLine:
    """One grade of stopping."""

    grade: str
    """Its name for commands."""
    key: str
    name: str
    does: str


@dataclass(frozen=True, slots=True)
class ScopeLine:
    """Whom a stop is for."""

    scope: str
    """Its name for commands."""
    name: str
    count: int
    """How many agents that is."""


@dataclass(frozen=True, slots=True)
class StopModel:
    """What the panel shows."""

    agent: str
    grades: tuple[GradeLine, ...]
    scopes: tuple[ScopeLine, ...]
    frozen: bool = False
    """Whether anything can be thawed."""
    receipt: tuple[Fact, ...] = ()


class ReceiptText(FactsPane):
    """The receipts, line by line."""

    EMPTY = "Nothing was stopped yet. What a stop met will appear here."
    BINDING_GROUP_TITLE = "Receipt"
    DEFAULT_CSS = """
    ReceiptText, ReceiptText:focus { border: none; height: 1fr; min-height: 3; }
    """


class StopDialog(BoxDialog[None]):
    """Each grade is one key or one click; to kill takes two. Escape and enter only close."""

    DEFAULT_CSS = """
    StopDialog > Vertical { height: 96%; max-height: 30; border: round $warning; }
    StopDialog Static { height: auto; link-style: none; }
    StopDialog #scopes { margin: 0 0 1 0; }
    StopDialog #armed { color: $text-error; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "grade('after')", "After this step", id="stop.after"),
        Binding("h", "grade('hold')", "Hold", id="stop.hold"),
        Binding("c", "grade('cut')", "Cut the model", id="stop.cut"),
        Binding("t", "grade('cancel')", "Cancel the tool", id="stop.cancel"),
        Binding("f", "grade('freeze')", "Freeze", id="stop.freeze"),
        Binding("K", "kill", "Kill", id="stop.kill"),
        Binding("w", "thaw", "Thaw", id="stop.thaw"),
        Binding("tab,s", "scope", "Whom", id="stop.scope", priority=True),
        Binding("enter,q,X", "close", "Close", id="stop.close"),
        Binding("full_stop", "again", "Stop", id="stop.again"),
    ]

    @dataclass
    class StopRequested(Message):
        """The operator wants a stop."""

        grade: str
        scope: str

    @dataclass
    class ThawRequested(Message):
        """The operator wants frozen processes to go on."""

        scope: str

    def __init__(self, model: StopModel) -> None:
        super().__init__()
        self._model = model
        self._scope = model.scopes[0].scope
        self._armed = False
        self._receipt = ReceiptText()

    def compose(self) -> ComposeResult:
        """Whom, how much, and the receipt."""
        with Vertical() as box:
            box.border_title = Content(f"Stop {clean_line(self._model.agent, limit=60)}")
            box.border_subtitle = "esc close"
            yield Static(id="scopes")
            yield Static(id="grades")
            yield Static(id="armed")
            yield self._receipt

    def on_mount(self) -> None:
        """Show the model."""
        self._draw()
        self._receipt.focus()

    def show(self, model: StopModel) -> None:
        """Show this model; whom is meant stays."""
        if model != self._model:
            self._model = model
            self._draw()

    def _draw(self) -> None:
        model = self._model
        scopes = [Content.from_markup("[bold]s[/] whom  ")]
        for line in model.scopes:
            chosen = line.scope == self._scope
            style, mark = ("reverse", "●") if chosen else ("not reverse", "○")
            text = f"[@click=screen.choose('{line.scope}')][{style}] {mark} $name ($count) [/][/] "
            scopes.append(Content.from_markup(text, name=line.name, count=str(line.count)))
        self.query_one("#scopes", Static).update(Content.assemble(*scopes))
        grades = []
        for grade in model.grades:
            action = "kill" if grade.grade == KILL else f"grade('{grade.grade}')"
            text = f"[@click=screen.{action}][bold]$key[/] [bold]$name[/]  $does[/]"
            name = f"{grade.name:<16}"
            grades.append(Content.from_markup(text, key=grade.key, name=name, does=grade.does))
        thaw = "[@click=screen.thaw][bold]w[/] [bold]thaw            [/]  $does[/]"
        does = "let frozen processes go on" if model.frozen else "nothing is frozen"
        grades.append(Content.from_markup(thaw, does=does))
        self.query_one("#grades", Static).update(Content("\n").join(grades))
        armed = "K or a click again kills; any other key does not" if self._armed else ""
        self.query_one("#armed", Static).update(Content(armed))
        self._receipt.set_facts(model.receipt)

    def action_grade(self, grade: str) -> None:
        """Ask for a stop."""
        self._disarm()
        self.post_message(self.StopRequested(grade, self._scope))

    def action_kill(self) -> None:
        """Ask for everything to be ended, when this was asked for twice in a row."""
        if self._armed:
            self.action_grade(KILL)
        else:
            self._armed = True
            self._draw()

    def action_again(self) -> None:
        """The key that stops at once does so here too, for the agent that is shown."""
        self._disarm()
        self.post_message(self.StopRequested(KILL, self._scope))

    def action_thaw(self) -> None:
        """Ask for frozen processes to go on."""
        self._disarm()
        self.post_message(self.ThawRequested(self._scope))

    def action_scope(self) -> None:
        """Mean the next ones."""
        names = [line.scope for line in self._model.scopes]
        self.action_choose(names[(names.index(self._scope) + 1) % len(names)])

    def action_choose(self, scope: str) -> None:
        """Mean these."""
        self._scope, self._armed = scope, False
        self._draw()

    def _disarm(self) -> None:
        if self._armed:
            self._armed = False
            self._draw()
