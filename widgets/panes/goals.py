"""The goal stack: goals, the intentions of a reasoner with their plans, and the agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from engine.core.goals import GoalMark
from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.facts import RowsPane
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


INTENTION, FRAME = "intention:", "frame:"


def intention_of(key: str) -> str:
    """The intention that a row of `intention_rows` belongs to; empty for any other row."""
    if key.startswith(INTENTION):
        return key.removeprefix(INTENTION)
    return key.removeprefix(FRAME).partition(":")[2] if key.startswith(FRAME) else ""


def intention_rows(
    id_: str, state: IntentionMark, waits: str = "", reason: str = "", frames: Sequence[FrameLine] = ()
) -> Iterator[Row]:
    """An intention followed by its frames, the outermost first.

    Args:
        id_: its number.
        state: how it stands.
        waits: `action`, `time`, `event`, `answer`, `a plan`; empty unless it waits.
        reason: what exactly it waits for, or why it is suspended.
        frames: what it carries out.
    """
    glyph, style = INTENTION_MARKS[state]
    reason, waits = clean_line(reason), clean_line(waits)
    word = f"waiting for {waits}" if state == "waiting" and waits else state
    pieces = [Piece(glyph + " ", style), Piece(f"{clean_line(id_)} "), Piece(word, style)]
    if reason:
        pieces.append(Piece(f" · {reason}"))
    yield Row(INTENTION + id_, tuple(pieces), indent=2, most=3)
    for depth, frame in enumerate(frames):
        yield from _frame_rows(frame, f"{depth}:{id_}", depth, current=depth == len(frames) - 1)


def _frame_rows(frame: FrameLine, key: str, depth: int, *, current: bool) -> Iterator[Row]:
    """The plan's label and the goal; below them the step it has come to, and its variables."""
    branch = "  " * min(depth, DEEPEST) + "└ "
    goal, step, values = clean_line(frame.goal), clean_line(frame.step), _values(frame)
    label = f"@{clean_line(frame.plan)} " if frame.plan else ""
    yield Row(
        FRAME + key,
        (Piece(f"{branch}{label}", "dim"), Piece(goal, "strong" if current else "text")),
        tail=(Piece(f"×{frame.collapsed + 1}" if frame.collapsed else "", "warning"),),
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


GoalActionName = Literal["reword", "subgoal", "under", "raise", "lower", "drop"]
AgentMark = Literal["running", "paused", "asks", "stopped"]

GOAL_MARKS: dict[str, tuple[str, str]] = {
    "active": ("●", "accent"),
    "pending": ("○", "dim"),
    "achieved": ("✓", "success"),
    "partly": ("◐", "warning"),
    "failed": ("✗", "error"),
    "dropped": ("–", "dim"),
}
AGENT_MARKS: dict[str, tuple[str, str]] = {
    "running": ("▶", "success"),
    "paused": ("‖", "warning"),
    "asks": ("?", "error"),
    "stopped": ("■", "dim"),
}


class GoalStack(RowsPane):
    """Goals indented by depth, and below them the agents."""

    BORDER_TITLE = "1 Goals"
    MARKS = True
    BINDING_GROUP_TITLE = "Goals"
    EMPTY = "The agent's goals will appear here. Press : and type a goal to give it one."

    def action_steer(self, action: IntentionVerb) -> None:
        """Ask for something to be done to the intention under the cursor."""
        if intention := intention_of(self.cursor):
            self.request("intention_action", intention, action)

    def action_goal(self, name: GoalActionName) -> None:
        """Ask for something of the goal under the cursor; an intention can be dropped."""
        kind, _, id_ = self.cursor.partition(":")
        if name == "drop":
            self.action_steer("drop")
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


def stacked(
    goals: Sequence[Row], intentions: Sequence[Row] = (), agents: Sequence[Row] = (), over: int = 0
) -> list[Row]:
    """The goals, what a reasoner carries out, the agents, and how many runs of handoffs are over."""
    rows = [*goals, *([blank("between")] if goals and intentions else []), *intentions]
    if agents:
        rows += [*([blank("blank")] if rows else []), heading("agents", "agents"), *agents]
        rows += [_over_row(over)] if over else []
    return rows


def goal_row(
    id_: str, text: str, status: GoalMark, branch: str = "", done: int = 0, clauses: int = 0, words: str = ""
) -> Row:
    """A goal.

    Args:
        id_: its name.
        text: in words.
        status: how it stands.
        branch: what stands before it, where it serves another one.
        done: clauses of its text that are done.
        clauses: all of them; 0 when it was not split.
        words: how it ended, where the mark alone does not say it.
    """
    glyph, style = GOAL_MARKS[status]
    text = clean_line(text)
    tail = [Piece(f"{done}/{clauses}", "dim")] if clauses else []
    said = words if words != status else ""
    if status != "active" and not said:
        tail.append(Piece(" " * bool(tail) + status, style))
    return Row(
        f"goal:{id_}",
        (
            Piece(branch, "dim"),
            Piece(glyph + " ", style),
            Piece(f"{clean_line(id_)} ", "dim"),
            *((Piece(f"{clean_line(said)}: ", style),) if said else ()),
            Piece(text, {"active": "strong", "dropped": "dim"}.get(status, "text")),
        ),
        tail=tuple(tail),
        indent=len(branch) + 2,
        most=5,
        copy=text,
    )


def _over_row(count: int) -> Row:
    words = f"{count:,} ended run{'' if count == 1 else 's'}"
    return Row("over:", (Piece("■ ", "dim"), Piece(words, "dim")), tail=(Piece("H", "dim"),), mark=Piece(" "))


def agent_row(id_: str, mode: AgentMark = "stopped", note: str = "", *, selected: bool = False) -> Row:
    """An agent, with a few words such as what it asks; the selected one is that which all panes show."""
    glyph, style = AGENT_MARKS[mode]
    return Row(
        f"agent:{id_}",
        (Piece(glyph + " ", style), Piece(clean_line(id_), "strong" if selected else "text")),
        tail=(Piece(clean_line(note) or mode, style if mode == "asks" else "dim"),),
        mark=Piece("›", "accent") if selected else Piece(" "),
    )
