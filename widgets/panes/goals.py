"""The goal stack: goals, the intentions of a reasoner with their plans, and the agents."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from typing import ClassVar, Literal

from textual.binding import Binding, BindingType

from engine.core.text import clean_line
from engine.value import dataclass, field
from widgets.base.facts import ModelPane
from widgets.base.line_pane import Notice
from widgets.base.rows import Row, blank, heading
from widgets.base.text_layout import Piece

IntentionMark = Literal["running", "ready", "waiting", "suspended"]
IntentionVerb = Literal["suspend", "resume", "drop"]

INTENTION_MARKS: dict[str, tuple[str, str]] = {
    "running": ("▶", "success"),
    "ready": ("▷", "text"),
    "waiting": ("…", "accent"),
    "suspended": ("‖", "warning"),
}
DEEPEST = 8
"""Frames below this one are not indented further."""
VALUE_CHARS = 200
"""Characters of one variable's value."""


@dataclass(frozen=True, slots=True)
class FrameLine:
    """One plan being carried out."""

    goal: str
    """The event it was chosen for, such as `+!reach(home)`."""
    plan: str = ""
    """The plan's label."""
    step: str = ""
    """The step that runs next, or whose sub-goal is pursued."""
    bindings: tuple[tuple[str, str], ...] = ()
    """Variables that have a value, with it."""
    collapsed: int = 0
    """Calls of the same goal whose place this one has taken."""


@dataclass(frozen=True, slots=True)
class IntentionLine:
    """One intention, its outermost frame first."""

    id: str
    state: IntentionMark = "ready"
    waits_for: str = ""
    """`action`, `time`, `event`, `answer`, `a plan`; empty unless it waits."""
    reason: str = ""
    """What exactly it waits for, or why it is suspended."""
    frames: tuple[FrameLine, ...] = ()


@dataclass(frozen=True, slots=True)
class IntentionsModel:
    """What the pane shows, the oldest intention first."""

    intentions: tuple[IntentionLine, ...] = ()
    notice: Notice | None = None


INTENTION, FRAME = "intention:", "frame:"


def intention_of(key: str) -> str:
    """The intention that a row of `intention_rows` belongs to; empty for any other row."""
    if key.startswith(INTENTION):
        return key.removeprefix(INTENTION)
    return key.removeprefix(FRAME).partition(":")[2] if key.startswith(FRAME) else ""


def intention_rows(model: IntentionsModel) -> list[Row]:
    """The intentions as rows of a list, each followed by its frames."""
    return [row for intention in model.intentions for row in _rows(intention)]


def _rows(intention: IntentionLine) -> Iterator[Row]:
    glyph, style = INTENTION_MARKS[intention.state]
    frames, reason, waits = intention.frames, clean_line(intention.reason), clean_line(intention.waits_for)
    word = f"waiting for {waits}" if intention.state == "waiting" and waits else intention.state
    pieces = [Piece(glyph + " ", style), Piece(f"{clean_line(intention.id)} "), Piece(word, style)]
    if reason:
        pieces.append(Piece(f" · {reason}"))
    yield Row(INTENTION + intention.id, tuple(pieces), indent=2, most=3)
    for depth, frame in enumerate(frames):
        yield from _frame_rows(frame, f"{depth}:{intention.id}", depth, current=depth == len(frames) - 1)


def _frame_rows(frame: FrameLine, key: str, depth: int, *, current: bool) -> Iterator[Row]:
    """The goal with the plan's label; below it the step it has come to, and its variables."""
    branch = "  " * min(depth, DEEPEST) + "└ "
    goal, step, values = clean_line(frame.goal), clean_line(frame.step), _values(frame)
    calls = Piece(f"×{frame.collapsed + 1} " if frame.collapsed else "", "warning")
    yield Row(
        FRAME + key,
        (Piece(branch, "dim"), Piece(goal, "strong" if current else "text")),
        tail=(calls, Piece(clean_line(frame.plan), "dim")),
        mark=Piece("›", "accent") if current else Piece(" "),
        indent=len(branch),
        most=3,
        copy=goal,
    )
    if step or values:
        between = " · " if step and values else ""
        below = (Piece(" " * len(branch)), Piece(step, "accent" if current else "text"))
        yield Row(
            f"{FRAME}{key}/step",
            (*below, Piece(between + values, "dim")),
            selectable=False,
            indent=len(branch),
            most=4,
        )


def _values(frame: FrameLine) -> str:
    return ", ".join(
        f"{clean_line(name, limit=40)} = {clean_line(value, limit=VALUE_CHARS)}"
        for name, value in frame.bindings
    )


GoalMark = Literal["active", "pending", "achieved", "failed", "dropped"]
GoalActionName = Literal["reword", "subgoal", "under", "raise", "lower", "drop"]
AgentMark = Literal["running", "paused", "asks", "stopped"]

GOAL_MARKS: dict[str, tuple[str, str]] = {
    "active": ("●", "accent"),
    "pending": ("○", "dim"),
    "achieved": ("✓", "success"),
    "failed": ("✗", "error"),
    "dropped": ("–", "dim"),
}
AGENT_MARKS: dict[str, tuple[str, str]] = {
    "running": ("▶", "success"),
    "paused": ("‖", "warning"),
    "asks": ("?", "error"),
    "stopped": ("■", "dim"),
}


@dataclass(frozen=True, slots=True)
class GoalLine:
    """One goal as the stack shows it."""

    id: str
    text: str
    status: GoalMark = "pending"
    depth: int = 0
    """Goals above it that it serves."""
    clauses_done: int = 0
    clauses: int = 0
    """Clauses of its text; 0 when it was not split."""


@dataclass(frozen=True, slots=True)
class AgentLine:
    """One agent as the stack shows it."""

    id: str
    mode: AgentMark = "stopped"
    note: str = ""
    """A few words, such as what it asks."""
    selected: bool = False
    """True for the agent all panes show."""


@dataclass(frozen=True, slots=True)
class GoalStackModel:
    """What the goal stack shows."""

    goals: tuple[GoalLine, ...] = ()
    agents: tuple[AgentLine, ...] = ()
    intentions: IntentionsModel = field(default_factory=IntentionsModel)
    """What a reasoner carries out, below the goals."""
    over: int = 0
    """How many runs of handoffs are over."""
    notice: Notice | None = None


def _binding(keys: str, action: GoalActionName, does: str) -> Binding:
    return Binding(keys, f"goal('{action}')", does, show=False, id=f"goals.{action}", tooltip=does)


class GoalStack(ModelPane[GoalStackModel]):
    """Goals indented by depth, and below them the agents."""

    BORDER_TITLE = "1 Goals"
    MARKS = True
    BINDING_GROUP_TITLE = "Goals"
    EMPTY = "The agent's goals will appear here. Press : and type a goal to give it one."
    HELP = """## Goals
What the agent wants, and below it the agents of this workspace.
e rewords a goal, a puts one below it, u lets it serve another, + and - change how urgent it is, D drops it.
● active, ○ pending, ✓ achieved, ✗ failed, – dropped; `3/7` counts the clauses of a goal that are done.
Of an AgentSpeak(L) agent also its intentions: ▶ runs next, ▷ can run, … waits, ‖ suspended. Below each its
plans, the outermost first: the goal and the plan's label, then the step it has come to and its variables.
› is where it stands; ×3 counts calls made one. p suspends an intention, r resumes it,
X drops it after asking.
Agents: ▶ running, ‖ paused, ? asks you something, ■ stopped. Enter on an agent shows it in all panes. Ended
runs of handoffs stand in one line: enter shows the handoffs, and there each can be opened.
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "steer('suspend')", "Suspend the intention", show=False, id="intentions.suspend"),
        Binding("r", "steer('resume')", "Resume the intention", show=False, id="intentions.resume"),
        Binding("X", "steer('drop')", "Drop the intention; asks once more", show=False, id="intentions.drop"),
        _binding("e", "reword", "Reword the goal"),
        _binding("a,insert", "subgoal", "Put a goal below it, which is pursued first"),
        _binding("u", "under", "Let it serve another goal, or none"),
        _binding("plus", "raise", "Make the goal more urgent"),
        _binding("minus", "lower", "Make the goal less urgent"),
        _binding("delete,D", "drop", "Give the goal up, after asking"),
    ]

    _model = GoalStackModel()

    def make_rows(self) -> None:
        """The goals, what a reasoner carries out, and the agents."""
        model = self._model
        held = sum(intention.state == "suspended" for intention in model.intentions.intentions)
        self.set_caption_text(f"{held} suspended" if held else "")
        rows = [_goal_row(goal, model.goals, at) for at, goal in enumerate(model.goals)]
        if model.intentions.intentions:
            if rows:
                rows.append(blank("between"))
            rows += intention_rows(model.intentions)
        if model.agents:
            if rows:
                rows.append(blank("blank"))
            rows.append(heading("agents", "agents"))
            rows.extend(_agent_row(agent) for agent in model.agents)
            if model.over:
                rows.append(_over_row(model.over))
        self.set_rows(rows)

    def action_steer(self, action: IntentionVerb) -> None:
        """Ask for something to be done to the intention under the cursor."""
        if intention := intention_of(self.cursor):
            self.request("intention_action", intention, action)

    def action_goal(self, name: GoalActionName) -> None:
        """Ask for something of the goal under the cursor."""
        kind, _, id_ = self.cursor.partition(":")
        if kind == "goal":
            self.request("goal_action", id_, name)

    def row_chosen(self, key: str) -> None:
        """Tell which goal, intention or agent was chosen."""
        if intention := intention_of(key):
            self.request("intention_plan", intention)
            return
        kind, _, id_ = key.partition(":")
        if kind == "over":
            self.call_later(self.app.run_action, "handoffs")
        elif kind == "agent":
            self.request("agent", id_)

    def row_clicked(self, key: str, chain: int) -> None:
        """One click shows an agent, or the runs that are over."""
        if key.startswith(("agent:", "over:")) and chain == 1:
            self.row_chosen(key)


def _goal_row(goal: GoalLine, goals: tuple[GoalLine, ...], at: int) -> Row:
    glyph, style = GOAL_MARKS[goal.status]
    depth = min(goal.depth, 8)
    last = not any(other.depth == goal.depth for other in _below(goals, at))
    branch = "  " * (depth - 1) + ("└ " if last else "├ ") if depth else ""
    text = clean_line(goal.text)
    tail: list[Piece] = []
    if goal.clauses:
        tail.append(Piece(f"{goal.clauses_done}/{goal.clauses}", "dim"))
    if goal.status != "active":
        tail.append(Piece((" " if tail else "") + goal.status, "dim" if style == "dim" else style))
    return Row(
        f"goal:{goal.id}",
        (
            Piece(branch, "dim"),
            Piece(glyph + " ", style),
            Piece(text, {"active": "strong", "dropped": "dim"}.get(goal.status, "text")),
        ),
        tail=tuple(tail),
        indent=len(branch) + 2,
        most=5,
        copy=text,
    )


def _below(goals: tuple[GoalLine, ...], at: int) -> list[GoalLine]:
    """The goals after this one up to the next that is less deep."""
    return list(takewhile(lambda other: other.depth >= goals[at].depth, goals[at + 1 :]))


def _over_row(count: int) -> Row:
    words = f"{count:,} ended run{'' if count == 1 else 's'}"
    return Row("over:", (Piece("✓ ", "dim"), Piece(words, "dim")), tail=(Piece("H", "dim"),), mark=Piece(" "))


@lru_cache(maxsize=1024)
def _agent_row(agent: AgentLine) -> Row:
    glyph, style = AGENT_MARKS[agent.mode]
    note = clean_line(agent.note) or agent.mode
    return Row(
        f"agent:{agent.id}",
        (Piece(glyph + " ", style), Piece(clean_line(agent.id), "strong" if agent.selected else "text")),
        tail=(Piece(note, style if agent.mode == "asks" else "dim"),),
        mark=Piece("›", "accent") if agent.selected else Piece(" "),
    )
