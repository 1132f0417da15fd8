"""Models of a BDI agent at work, and a small cockpit that mounts its panes."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.filter import LineFilter
from textual.message import Message

from engine.core.reasoner import Generation, ProposedPlan
from themes.loading import load_themes
from widgets.base.facts import ListModel
from widgets.base.text_layout import CONTROL_FILTER
from widgets.panes.beliefs import BeliefsPane, belief_row
from widgets.panes.goals import FrameLine, GoalStack, intention_rows
from widgets.panes.world import WorldModel, WorldPane, WorldSign

WORLD = WorldModel(
    title="explorer",
    lines=(". R . . .", ". . . . .", ". . . A .", ". # # # .", ". . . . H"),
    legend=(
        WorldSign("A", "robot", "agent"),
        WorldSign("H", "home", "home"),
        WorldSign("R", "rock"),
        WorldSign("#", "obstacle", "obstacle"),
    ),
    facts=(("moves", "12"), ("cycles", "57"), ("action", "move(east)"), ("here", "nothing")),
    trail=((2, 2), (1, 1), (2, 1), (3, 1), (2, 2)),
    moved="east",
)
BELIEFS = (
    belief_row("free(south_east)", ("percept",), 42, True),
    belief_row("home_is(south_east)", ("scout-2",), 40),
    belief_row("there_is(rock, north_west)", ("percept", "scout-2"), 12),
    belief_row("visited(2, 2)", ("self",), 3),
    belief_row("object(rock)", ("percept",), 1),
    belief_row("direction(north)", ("percept",), 1),
)
INTENTIONS = (
    *intention_rows(
        "1",
        "waiting",
        "action",
        "move(east)",
        (
            FrameLine("+!reach(home)", "reach_by_search", "!step_towards(home)", (("Object", "home"),)),
            FrameLine("+!step_towards(home)", "wander", "move(D)", (("Object", "home"), ("D", "east")), 41),
        ),
    ),
    *intention_rows("4", "running", frames=(FrameLine("+there_is(rock, D)", "note", "+seen(rock)"),)),
    *intention_rows("5", "suspended", reason="held by the operator", frames=(FrameLine("+!rest", "p12"),)),
)
SEARCH = """@search
+!reach(Object) : not there_is(Object, _) <-
    getDirectionToMove(Direction);
    move(Direction);
    !reach(Object)."""
TELEPORT = """@jump
+!reach(Object) <-
    teleport(Object)."""
GENERATED = Generation(
    "gen1",
    "+!reach(home)",
    plans=(
        ProposedPlan("@arrived\n+!reach(Object) : there_is(Object, here)."),
        ProposedPlan(SEARCH),
        ProposedPlan(TELEPORT, ("teleport/1 is no action; did you mean move/1?",)),
    ),
    model="a-model-1",
    attempt=2,
    problems=("line 14: a line that belongs to nothing",),
    answer="```yaml\nplan:\n  EVENT: achieve reach(Object)\n```\n",
    system="You write plans for an agent.",
    prompt="Current goal: achieve reach(home)",
    duration_ms=4_200,
    tokens=1_240,
)


class ReasonerApp(App[None]):
    """The world and the intentions to the left, the beliefs to the right."""

    CSS = "#left { width: 1fr; } BeliefsPane { width: 1fr; } WorldPane, GoalStack { height: 1fr; }"

    def __init__(self, theme: str = "pilothouse-night", *, guarded: bool = True) -> None:
        super().__init__()
        self.guarded = guarded
        for each in load_themes()[0].values():
            self.register_theme(each)
        self.theme = theme
        self.world, self.beliefs, self.intentions = WorldPane(), BeliefsPane(), GoalStack()
        self.messages: list[Message] = []
        self.booms = 0

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        return [*filters, CONTROL_FILTER] if self.guarded else filters

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical(id="left"):
                yield self.world
                yield self.intentions
            yield self.beliefs

    def action_boom(self) -> None:
        self.booms += 1

    def fill(self) -> None:
        self.world.show(WORLD)
        self.beliefs.show(ListModel(rows=BELIEFS))
        self.intentions.show(ListModel(rows=INTENTIONS))
