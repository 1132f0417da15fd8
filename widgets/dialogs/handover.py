"""The hand-over: what the operator changed at the shell, and what of it the agent is to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.pieces import Piece
from widgets.rows import Row, RowPane

CHANGE_LINES = 40
"""Lines that a change may take."""


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A change as the agent would believe it."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class HandoverModel:
    """What is put to the operator."""

    changes: tuple[ChangeLine, ...] = ()
    goes_on: str = ""
    """Where the shell ended, such as `./shop with .venv`; empty when the agent goes on where it was."""
    stays: str = ""
    """Where the agent was."""


@dataclass(frozen=True, slots=True)
class HandoverDecision:
    """What the agent is to know."""

    accept: tuple[str, ...]
    """Keys of changes."""
    follow: bool = True
    """Whether the agent goes on where the shell ended."""


class ChangeList(RowPane):
    """The changes, each with a mark; the last row says where the agent goes on."""

    MARKS = True
    BINDING_GROUP_TITLE = "Hand-over"
    DEFAULT_CSS = """
    ChangeList { border: none; &:focus { border: none; } }
    """

    @dataclass
    class Toggled(Message):
        """A row was clicked."""

        row: str

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The lines of all rows at a width; they are broken before the list has its size."""
        room = max(1, width - self.gutter_width - 1)
        return sum(len(self._broken(row, room)) for row in self.rows)

    def row_clicked(self, key: str, chain: int) -> None:
        """A click marks a row, or takes its mark away."""
        self.post_message(self.Toggled(key))

    def action_down(self) -> None:
        """Show the rest of a row before going to the next one."""
        below = self.cursor_lines().stop - (self.top + self.content_size.height)
        if below > 0:
            self.scroll_lines_to(self.top + 1)
        else:
            super().action_down()


class HandoverDialog(BoxDialog[HandoverDecision | None]):
    """Gives the decision, or None: then the hand-over stays open and the agent waits."""

    DEFAULT_CSS = """
    HandoverDialog > Vertical { border: round $warning; }
    HandoverDialog ChangeList { height: auto; }
    HandoverDialog .-keys { margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "switch", "Mark", id="handover.toggle"),
        Binding("a", "mark(True)", "All", id="handover.all"),
        Binding("n", "mark(False)", "None", id="handover.none"),
        Binding("enter", "accept", "Tell the agent", priority=True, id="handover.accept"),
    ]

    def __init__(self, model: HandoverModel, *, unasked: bool = False) -> None:
        super().__init__(unasked=unasked)
        self._model = model
        self._marked = [True] * (len(model.changes) + bool(model.goes_on))
        self._list = ChangeList()

    def compose(self) -> ComposeResult:
        """The question, the changes, and the keys, which can be clicked."""
        with Vertical() as box:
            box.border_title = "What is the agent to know?"
            box.border_subtitle = "esc leaves it open; the agent waits"
            yield Static(Content("While you held the shell:"), classes="-label")
            yield self._list
            yield Static(
                Content.from_markup(
                    "[@click=screen.accept][bold]enter[/] tells the agent what is marked ✓[/]   "
                    "[bold]space[/] mark   [@click=screen.mark(False)][bold]n[/] none[/]   "
                    "[@click=screen.mark(True)][bold]a[/] all[/]"
                ),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """The changes have the focus."""
        self._show()
        self._list.focus()

    def on_resize(self) -> None:
        """Leave room for what stands around the changes."""
        self._list.styles.max_height = max(1, self.size.height * 96 // 100 - 5)

    def _show(self) -> None:
        """Rows go by number: a key may be anything, and the last row is no change."""
        model = self._model
        lines = [(change.text, change.key) for change in model.changes]
        if model.goes_on:
            lines.append((f"goes on in {model.goes_on if self._marked[-1] else model.stays}", ""))
        self._list.set_rows(
            [
                _row(str(number), text, key, marked)
                for number, ((text, key), marked) in enumerate(zip(lines, self._marked, strict=True))
            ]
        )
        self._list.refresh(layout=True)

    def action_switch(self) -> None:
        """Mark the row under the cursor, or take its mark away."""
        self._toggle(self._list.cursor)

    def on_change_list_toggled(self, event: ChangeList.Toggled) -> None:
        """A row was clicked."""
        self._toggle(event.row)

    def _toggle(self, row: str) -> None:
        if row and not self.unmeant:
            self._marked[int(row)] = not self._marked[int(row)]
            self._show()

    def action_mark(self, on: bool) -> None:
        """Mark all rows, or none."""
        if not self.unmeant:
            self._marked = [on] * len(self._marked)
            self._show()

    def action_accept(self) -> None:
        """Tell the agent what is marked."""
        if not self.unmeant:
            changes = self._model.changes
            accept = tuple(change.key for change, on in zip(changes, self._marked, strict=False) if on)
            self.dismiss(HandoverDecision(accept, follow=all(self._marked[len(changes) :])))


def _row(key: str, text: str, belief: str, marked: bool) -> Row:
    return Row(
        key,
        (Piece(clean_line(text), "text" if marked else "dim"),),
        tail=(Piece(clean_line(belief), "dim"),) if belief else (),
        indent=2,
        most=CHANGE_LINES,
        mark=Piece("✓", "success") if marked else Piece("–", "dim"),
    )
