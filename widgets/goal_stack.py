"""The goal stack: what the agent wants, which goal serves which, and who else is at work."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Literal

from textual.binding import Binding, BindingType
from textual.message import Message

from engine.domain.text import clean_line
from widgets.intentions import IntentionsModel, IntentionTree, intention_of, intention_rows
from widgets.line_pane import Notice
from widgets.pieces import Piece
from widgets.rows import Row

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


class GoalStack(IntentionTree):
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
› is where it stands; ×3 counts calls made one. ← → fold and unfold. p suspends an intention, r resumes it,
X drops it after asking.
Agents: ▶ running, ‖ paused, ? asks you something, ■ stopped. Enter on an agent shows it in all panes. Runs of
handoffs that are over stand in one line: enter shows the handoffs, and there each can be opened.
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        _binding("e", "reword", "Reword the goal"),
        _binding("a,insert", "subgoal", "Put a goal below it, which is pursued first"),
        _binding("u", "under", "Let it serve another goal, or none"),
        _binding("plus", "raise", "Make the goal more urgent"),
        _binding("minus", "lower", "Make the goal less urgent"),
        _binding("delete,D", "drop", "Give the goal up, after asking"),
    ]

    @dataclass
    class GoalAction(Message):
        """The operator wants something of the goal under the cursor."""

        goal_id: str
        action: GoalActionName

    @dataclass
    class GoalSelected(Message):
        """The cursor is on a goal."""

        goal_id: str

    @dataclass
    class GoalChosen(Message):
        """The operator pressed enter on a goal."""

        goal_id: str

    @dataclass
    class AgentSelected(Message):
        """The operator wants to see this agent."""

        agent_id: str

    _model = GoalStackModel()

    def show(self, model: GoalStackModel) -> None:
        """Show this model."""
        if model == self._model:
            return
        self._model = model
        self.set_notice(model.notice)
        self._folded &= {one.id for one in model.intentions.intentions}
        held = sum(one.state == "suspended" for one in model.intentions.intentions)
        self.set_caption_text(f"{held} suspended" if held else "")
        self._arrange()

    def _arrange(self) -> None:
        model = self._model
        rows = [_goal_row(goal, model.goals, at) for at, goal in enumerate(model.goals)]
        if model.intentions.intentions:
            if rows:
                rows.append(Row("between", (Piece(""),), selectable=False))
            rows += intention_rows(model.intentions, self._folded)
        if model.agents:
            if rows:
                rows.append(Row("blank", (Piece(""),), selectable=False))
            rows.append(Row("agents", (Piece("agents", "heading"),), selectable=False))
            rows.extend(_agent_row(agent) for agent in model.agents)
            if model.over:
                rows.append(_over_row(model.over))
        self.set_rows(rows)

    @dataclass
    class RunsOverChosen(Message):
        """The operator wants to see the runs that are over."""

    def action_goal(self, name: GoalActionName) -> None:
        """Tell what is wanted of the goal under the cursor."""
        kind, _, id_ = self.cursor.partition(":")
        if kind == "goal":
            self.post_message(self.GoalAction(id_, name))

    def row_highlighted(self, key: str) -> None:
        """Tell which goal is looked at; passing over an agent does not switch to it."""
        kind, _, id_ = key.partition(":")
        if kind == "goal":
            self.post_message(self.GoalSelected(id_))

    def row_chosen(self, key: str) -> None:
        """Tell which goal, intention or agent was chosen."""
        if intention := intention_of(key):
            self.post_message(self.IntentionChosen(intention))
            return
        kind, _, id_ = key.partition(":")
        if kind == "over":
            self.post_message(self.RunsOverChosen())
            return
        self.post_message(self.AgentSelected(id_) if kind == "agent" else self.GoalChosen(id_))

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
    found: list[GoalLine] = []
    for other in goals[at + 1 :]:
        if other.depth < goals[at].depth:
            break
        found.append(other)
    return found


def _over_row(count: int) -> Row:
    words = f"{count:,} ended run{'' if count == 1 else 's'}"
    return Row("over:", (Piece("✓ ", "dim"), Piece(words, "dim")), tail=(Piece("H", "dim"),), mark=Piece(" "))


@lru_cache(maxsize=1024)
def _agent_row(agent: AgentLine) -> Row:
    glyph, style = AGENT_MARKS[agent.mode]
    note = clean_line(agent.note) or agent.mode
    return Row(
        f"agent:{agent.id}",
        (
            Piece(glyph + " ", style),
            Piece(clean_line(agent.id), "strong" if agent.selected else "text"),
        ),
        tail=(Piece(note, style if agent.mode == "asks" else "dim"),),
        mark=Piece("›", "accent") if agent.selected else Piece(" "),
    )
