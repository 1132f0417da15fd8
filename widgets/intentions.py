"""The intentions of a BDI agent: what it carries out, plan by plan, and what each one waits for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual.binding import Binding, BindingType
from textual.message import Message

from engine.domain.text import clean_line
from widgets.line_pane import Notice
from widgets.pieces import Piece
from widgets.rows import Row, RowPane

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


class IntentionTree(RowPane):
    """What a list that shows intentions does with them: fold, unfold, and ask for something to be done."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "fold", "Fold", show=False, id="intentions.fold"),
        Binding("right,l", "unfold", "Unfold", show=False, id="intentions.unfold"),
        Binding("p", "ask('suspend')", "Suspend the intention", show=False, id="intentions.suspend"),
        Binding("r", "ask('resume')", "Resume the intention", show=False, id="intentions.resume"),
        Binding("X", "ask('drop')", "Drop the intention; asks once more", show=False, id="intentions.drop"),
    ]

    @dataclass
    class IntentionChosen(Message):
        """The operator pressed enter on an intention or one of its frames."""

        intention_id: str

    @dataclass
    class IntentionAction(Message):
        """The operator wants something done to an intention; to drop one, the app asks first."""

        intention_id: str
        action: IntentionVerb

    _folded: frozenset[str] = frozenset()

    def _arrange(self) -> None:
        """Show the rows anew; whose list it is says which."""
        raise NotImplementedError

    def action_fold(self) -> None:
        """Show only the head of the intention under the cursor."""
        if intention := intention_of(self.cursor):
            self.move_cursor(f"{INTENTION}{intention}")
            self._folded |= {intention}
            self._arrange()

    def action_unfold(self) -> None:
        """Show the frames of the intention under the cursor."""
        self._folded -= {intention_of(self.cursor)}
        self._arrange()

    def action_ask(self, action: IntentionVerb) -> None:
        """Ask for something to be done to the intention under the cursor."""
        if intention := intention_of(self.cursor):
            self.post_message(self.IntentionAction(intention, action))


INTENTION, FRAME = "intention:", "frame:"


def intention_of(key: str) -> str:
    """The intention that a row of `intention_rows` belongs to; empty for any other row."""
    if key.startswith(INTENTION):
        return key.removeprefix(INTENTION)
    return key.removeprefix(FRAME).partition(":")[2] if key.startswith(FRAME) else ""


def intention_rows(model: IntentionsModel, folded: Collection[str] = ()) -> list[Row]:
    """The intentions as rows of a list, each followed by its frames unless it is folded."""
    return [row for intention in model.intentions for row in _rows(intention, intention.id in folded)]


def _rows(intention: IntentionLine, folded: bool) -> Iterator[Row]:
    glyph, style = INTENTION_MARKS[intention.state]
    frames, reason, waits = intention.frames, clean_line(intention.reason), clean_line(intention.waits_for)
    word = f"waiting for {waits}" if intention.state == "waiting" and waits else intention.state
    pieces = [Piece(glyph + " ", style), Piece(f"{clean_line(intention.id)} "), Piece(word, style)]
    if reason:
        pieces.append(Piece(f" · {reason}"))
    if folded and frames:
        pieces.append(Piece("  " + " … ".join(clean_line(each.goal) for each in _ends(frames)), "dim"))
    yield Row(
        INTENTION + intention.id,
        tuple(pieces),
        mark=Piece(("▸" if folded else "▾") if frames else " ", "dim"),
        indent=2,
        most=3,
    )
    for depth, frame in () if folded else enumerate(frames):
        yield from _frame_rows(frame, f"{depth}:{intention.id}", depth, current=depth == len(frames) - 1)


def _ends(frames: tuple[FrameLine, ...]) -> tuple[FrameLine, ...]:
    return frames[:1] if len(frames) == 1 else (frames[0], frames[-1])


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
