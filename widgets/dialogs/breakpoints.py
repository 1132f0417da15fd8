"""Breakpoints on an agent's mind and its steps: which there are, how often they stopped it, and new ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.pieces import Piece
from widgets.rows import Row, RowPane

BreakpointCheck = Callable[[str, str], str]
"""Takes kind and pattern, and gives what is wrong with them in a sentence, or nothing."""

PATTERN_LIMIT = 900
"""Characters of a pattern."""


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


class BreakpointList(RowPane):
    """The breakpoints, one a line."""

    MARKS = True
    BINDING_GROUP_TITLE = "Breakpoints"
    EMPTY = "There are no breakpoints. Press a to add one."
    DEFAULT_CSS = """
    BreakpointList, BreakpointList:focus { border: none; height: 1fr; min-height: 1; }
    """

    @dataclass
    class Chosen(Message):
        """The breakpoint under the cursor was chosen with enter or a double click."""

    def row_chosen(self, key: str) -> None:
        """Enter and a double click switch it, as space does."""
        self.post_message(self.Chosen())


class KindList(RowPane):
    """The kinds of breakpoint, one a line with its key."""

    BINDING_GROUP_TITLE = "Kinds"
    DEFAULT_CSS = """
    KindList, KindList:focus { border: none; max-height: 60%; }
    """

    def __init__(self, kinds: tuple[KindLine, ...]) -> None:
        super().__init__()
        self._kinds = kinds
        self.styles.height = len(kinds)

    @dataclass
    class Chosen(Message):
        """A kind was chosen with enter or a click."""

        kind: str

    def on_key(self, event: events.Key) -> None:
        """The key of a kind chooses it; `g` is one of them, and no chord here."""
        for one in self._kinds:
            if event.character == one.key:
                event.stop()
                event.prevent_default()
                self.row_chosen(one.kind)

    def row_clicked(self, key: str, chain: int) -> None:
        """One click chooses."""
        self.row_chosen(key)

    def row_chosen(self, key: str) -> None:
        """Tell which."""
        self.post_message(self.Chosen(key))


class BreakpointsDialog(BoxDialog[None]):
    """Shows the breakpoints and posts what the operator wants of them; `show` brings what came of it."""

    DEFAULT_CSS = """
    BreakpointsDialog > Vertical { height: 80%; min-height: 12; }
    BreakpointsDialog #line { height: 1; color: $text-warning; }
    BreakpointsDialog KindList, BreakpointsDialog Input { display: none; }
    BreakpointsDialog.-choosing KindList, BreakpointsDialog.-writing Input { display: block; }
    BreakpointsDialog.-choosing .-keys, BreakpointsDialog.-writing .-keys { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a,insert", "add", "Add", id="breakpoints.add"),
        Binding("space", "switch", "On or off", id="breakpoints.switch"),
        Binding("delete,D", "remove", "Delete", id="breakpoints.remove"),
        Binding("w", "why", "Why", id="breakpoints.why"),
    ]

    @dataclass
    class AddRequested(Message):
        """The operator wants a new breakpoint."""

        kind: str
        pattern: str

    @dataclass
    class DryRunRequested(Message):
        """The operator types a breakpoint; how often would it have stopped the agent?"""

        kind: str
        pattern: str

    @dataclass
    class WhyRequested(Message):
        """The operator asks about the event at which a breakpoint stopped the agent last."""

        event: str

    @dataclass
    class SwitchRequested(Message):
        """The operator wants a breakpoint on or off."""

        breakpoint_id: str
        enabled: bool

    @dataclass
    class RemoveRequested(Message):
        """The operator wants a breakpoint gone."""

        breakpoint_id: str

    def __init__(self, model: BreakpointsModel, check: BreakpointCheck) -> None:
        super().__init__()
        self._model = model
        self._check = check
        self._kind: KindLine | None = None
        self._list = BreakpointList()
        self._kinds = KindList(model.kinds)
        self._line = Static(id="line")
        self._input = Input(max_length=PATTERN_LIMIT)

    def compose(self) -> ComposeResult:
        """The breakpoints, then what a new one needs, or the keys."""
        with Vertical() as box:
            agent = clean_line(self._model.agent, limit=100)
            box.border_title = Content(f"Breakpoints of {agent}" if agent else "Breakpoints")
            box.border_subtitle = "esc close"
            yield self._list
            yield self._line
            yield self._kinds
            yield self._input
            yield Static(
                Content.from_markup(
                    "[@click=screen.add][bold]a[/] add[/]   "
                    "[@click=screen.switch][bold]space[/] on, off[/]   "
                    "[@click=screen.remove][bold]del[/] delete[/]   "
                    "[@click=screen.why][bold]w[/] why it held last[/]"
                ),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """The breakpoints have the focus."""
        self._kinds.set_rows(
            [
                Row(
                    one.kind,
                    (Piece(f"{one.key}  ", "accent"), Piece(f"{one.kind:<10}"), Piece(one.what, "dim")),
                )
                for one in self._model.kinds
            ]
        )
        self._show()
        self._list.focus()

    def show(self, model: BreakpointsModel) -> None:
        """Show this model; what is being written stays."""
        if model != self._model:
            self._model = model
            self._show()

    def _show(self) -> None:
        self._list.set_rows([_row(each) for each in self._model.breakpoints])

    # What there is

    @property
    def _adding(self) -> bool:
        return self.has_class("-choosing") or self.has_class("-writing")

    def on_breakpoint_list_chosen(self, event: BreakpointList.Chosen) -> None:
        """A breakpoint was chosen in the list."""
        event.stop()
        self.action_switch()

    def action_switch(self) -> None:
        """Ask for the breakpoint under the cursor to be switched on or off."""
        for each in self._model.breakpoints:
            if each.id == self._list.cursor and not self._adding:
                self.post_message(self.SwitchRequested(each.id, not each.enabled))

    def action_remove(self) -> None:
        """Ask for the breakpoint under the cursor to be deleted."""
        if self._list.cursor and not self._adding:
            self.post_message(self.RemoveRequested(self._list.cursor))

    def action_why(self) -> None:
        """Ask about the event at which the breakpoint under the cursor stopped the agent last."""
        chosen = next((each for each in self._model.breakpoints if each.id == self._list.cursor), None)
        if chosen is None or self._adding:
            return
        if chosen.last:
            self.post_message(self.WhyRequested(chosen.last))
            self.dismiss(None)
        else:
            self._say(
                "it has not held the agent yet" if not chosen.hits else "where it held is in the mind stream"
            )

    # A new one

    def action_add(self) -> None:
        """Ask which kind."""
        self._step("-choosing", "Stop the agent …")
        self._kinds.focus()

    def on_kind_list_chosen(self, event: KindList.Chosen) -> None:
        """A kind was chosen in the list."""
        event.stop()
        self._choose(next(one for one in self._model.kinds if one.kind == event.kind))

    def _choose(self, kind: KindLine) -> None:
        self._kind = kind
        self._input.value = ""
        self._input.placeholder = kind.example
        self._step("-writing", f"{kind.kind}: {kind.what} — enter adds it, esc goes back")
        self._input.focus()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        """Say what is wrong as it is typed."""
        pattern = event.value.strip()
        if self._kind is None:
            return
        problem = clean_line(self._check(self._kind.kind, pattern)) if pattern else ""
        self._say(f"✗ {problem}" if problem else f"{self._kind.kind}: {self._kind.what} — enter adds it")
        if pattern and not problem:
            self.post_message(self.DryRunRequested(self._kind.kind, pattern))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        """Ask for it to be added, if nothing is wrong with it."""
        if self._kind is None:
            return
        pattern = event.value.strip()
        if problem := clean_line(self._check(self._kind.kind, pattern)):
            self._say(f"✗ {problem}")
        else:
            self.post_message(self.AddRequested(self._kind.kind, pattern))
            self._done()

    def tell(self, kind: str, pattern: str, told: str) -> None:
        """Show what a dry run says, if that is still what is being written."""
        if self._kind is not None and (self._kind.kind, self._input.value.strip()) == (kind, pattern):
            self._say(f"{clean_line(told)} — enter adds it")

    def action_close(self) -> None:
        """Go back from a new breakpoint; else close."""
        if self.has_class("-writing"):
            self._kind = None
            self.action_add()
        elif self.has_class("-choosing"):
            self._done()
        else:
            self.dismiss(None)

    def _done(self) -> None:
        self._kind = None
        self._step("", "")
        self._list.focus()

    def _step(self, name: str, text: str) -> None:
        self.set_class(name == "-choosing", "-choosing")
        self.set_class(name == "-writing", "-writing")
        self._say(text)

    def _say(self, text: str) -> None:
        self._line.update(Content(text), layout=False)


def _row(each: BreakpointLine) -> Row:
    hits = f"{each.hits:,} hit{'' if each.hits == 1 else 's'}" if each.hits else ""
    if each.matched > each.hits:
        hits = f"{hits} of {each.matched:,}".strip() if hits else f"came {each.matched:,}"
    off = "" if each.enabled else "off"
    return Row(
        each.id,
        (
            Piece(f"{each.kind:<8}", "accent" if each.enabled else "dim"),
            Piece(clean_line(each.pattern), "text" if each.enabled else "dim"),
        ),
        tail=(Piece("  ".join(part for part in (hits, off) if part), "dim"),),
        mark=Piece("●", "error") if each.enabled else Piece("○", "dim"),
        indent=8,
        most=3,
        copy=clean_line(each.pattern),
    )
