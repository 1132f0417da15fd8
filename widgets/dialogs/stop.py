"""The stop panel: how much is to be stopped and of whom; and the receipt of the last stop, in place."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from engine.core.text import clean_line
from widgets.base.dialog import BoxDialog, DialogKey
from widgets.base.facts import Fact, FactsPane

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


class StopDialog(BoxDialog[None]):
    """Each grade is one key or one click; to kill takes two. Escape and enter only close."""

    DEFAULT_CSS = """
    StopDialog > Vertical { height: 96%; max-height: 30; }
    StopDialog Static { height: auto; link-style: none; }
    StopDialog #scopes { margin: 0 0 1 0; }
    StopDialog #armed { color: $text-error; height: 1; }
    """
    KEYS = (
        DialogKey("a", "grade('after')"),
        DialogKey("h", "grade('hold')"),
        DialogKey("c", "grade('cut')"),
        DialogKey("t", "grade('cancel')"),
        DialogKey("f", "grade('freeze')"),
        DialogKey("K", "kill"),
        DialogKey("w", "thaw"),
        DialogKey("tab,s", "scope", priority=True),
        DialogKey("enter,q,X", "close"),
        DialogKey("full_stop", "again"),
    )

    def __init__(self, model: StopModel) -> None:
        super().__init__()
        self._model = model
        self._scope = model.scopes[0].scope
        self._armed = False
        self._scopes, self._grades = Static(id="scopes"), Static(id="grades")
        self._warning = Static(id="armed")
        empty = "Nothing was stopped yet. The result of a stop will appear here."
        self._receipt = FactsPane(title="Receipt", empty=empty)

    def compose(self) -> ComposeResult:
        """Whom, how much, and the receipt."""
        parts = (self._scopes, self._grades, self._warning, self._receipt)
        title = f"Stop {clean_line(self._model.agent, limit=60)}"
        yield self.box(*parts, title=title, classes="-question")

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
        self._scopes.update(Content.assemble(*scopes))
        grades = []
        for grade in model.grades:
            action = "kill" if grade.grade == KILL else f"grade('{grade.grade}')"
            text = f"[@click=screen.{action}][bold]$key[/] [bold]$name[/]  $does[/]"
            name = f"{grade.name:<16}"
            grades.append(Content.from_markup(text, key=grade.key, name=name, does=grade.does))
        thaw = "[@click=screen.thaw][bold]w[/] [bold]thaw            [/]  $does[/]"
        does = "let frozen processes go on" if model.frozen else "nothing is frozen"
        grades.append(Content.from_markup(thaw, does=does))
        self._grades.update(Content("\n").join(grades))
        armed = "K or a click again kills; any other key does not" if self._armed else ""
        self._warning.update(Content(armed))
        self._receipt.set_facts(model.receipt)

    def action_grade(self, grade: str) -> None:
        """Ask for a stop."""
        self._disarm()
        self.request("stop", grade, self._scope)

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
        self.request("stop", KILL, self._scope)

    def action_thaw(self) -> None:
        """Ask for frozen processes to go on."""
        self._disarm()
        self.request("thaw", self._scope)

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


MOST_LINES = 9


class StopReceiptPane(FactsPane):
    """Takes no focus, so that every key still means what it meant; a click closes it."""

    can_focus = False
    BINDING_GROUP_TITLE = "Receipt"
    DEFAULT_CSS = """
    StopReceiptPane { display: none; border: round $warning; height: auto; }
    StopReceiptPane.-shown { display: block; }
    """

    def show(self, lines: tuple[Fact, ...], hint: str) -> None:
        """Show what was stopped, and which keys are of use now; no lines hide it."""
        self.set_class(bool(lines), "-shown")
        self.border_title, self.border_subtitle = Content("Stopped"), Content(hint)
        self.set_facts(lines)
        self._fit()

    def on_resize(self) -> None:
        """Take as many lines as the text has now."""
        super().on_resize()
        self._fit()

    def _fit(self) -> None:
        self.styles.height = min(MOST_LINES, max(1, self.line_total()[1])) + 2

    def on_click(self, event: events.Click) -> None:
        """A click closes it."""
        event.stop()
        self.request("dismissed")
