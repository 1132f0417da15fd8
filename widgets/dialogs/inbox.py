"""The inbox: everything that needs the operator, of all agents, answered in place."""

from __future__ import annotations

from functools import partial
from typing import Literal

from textual import on

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.dialog import DialogKey, ListDialog
from widgets.base.line_pane import RowChosen
from widgets.base.rows import Row
from widgets.base.text_layout import Piece

InboxAnswer = Literal["once", "session", "always", "deny", "open"]
GROUP = "group "
REFRESH_S = 1.0


@dataclass(frozen=True, slots=True)
class InboxLine:
    """One thing that waits."""

    key: str
    agent: str
    kind: str
    what: str
    waited: str
    """How long it has waited, such as `4 s`."""
    group: str = ""
    """Lines of one group stand together and can be answered together; empty for none."""
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class InboxModel:
    """What the dialog shows."""

    lines: tuple[InboxLine, ...] = ()
    said: str = ""
    """The result of the last answer."""


class InboxDialog(ListDialog[InboxModel]):
    """What waits, the most urgent first; it asks for a newer state each second."""

    TITLE_TEXT, HINT = "Inbox: what needs you", "on a heading: all below it · esc close"
    LIST_TITLE, EMPTY, MARKS, CLASSES = "Inbox", "Nothing needs you.", False, "-question"
    KEYS = (
        DialogKey("a", "answer('once')", "allow once"),
        DialogKey("s", "answer('session')", "session …"),
        DialogKey("A", "answer('always')", "always …"),
        DialogKey("d", "answer('deny')", "deny …"),
        DialogKey("", "", "open", shown="enter"),
        DialogKey("q", "close"),
    )
    DEFAULT_CSS = """
    InboxDialog > Vertical { height: 96%; max-width: 160; }
    InboxDialog #said { max-height: 5; }
    """

    def on_mount(self) -> None:
        """Time passes."""
        super().on_mount()
        self.set_interval(REFRESH_S, partial(self.request, "refresh"))

    def rows(self) -> list[Row]:
        """What waits."""
        return _rows(self.model)

    @on(RowChosen)
    def _open(self, event: RowChosen) -> None:
        self.request("answered", "open", (event.key,))

    def action_answer(self, answer: InboxAnswer) -> None:
        """Answer the row under the cursor, or all of a group from its heading."""
        keys = self._chosen()
        if keys:
            self.request("answered", answer, keys)

    def _chosen(self) -> tuple[str, ...]:
        cursor = self.list.cursor
        if cursor.startswith(GROUP):
            return tuple(line.key for line in self.model.lines if line.group == cursor.removeprefix(GROUP))
        return (cursor,) if cursor else ()


def _rows(model: InboxModel) -> list[Row]:
    """Each line a row; several of a group stand below a heading, where the first of them is."""
    sizes: dict[str, int] = {}
    for line in model.lines:
        sizes[line.group] = sizes.get(line.group, 0) + 1
    rows: list[Row] = []
    grouped: set[str] = set()
    for line in model.lines:
        if not line.group or sizes[line.group] == 1:
            rows.append(_row(line, 0))
        elif line.group not in grouped:
            grouped.add(line.group)
            head = f"{sizes[line.group]} ask for {clean_line(line.group, limit=80)}"
            rows.append(Row(GROUP + line.group, (Piece(head, "heading"),), mark=Piece("▾", "warning")))
            rows += [_row(each, 2) for each in model.lines if each.group == line.group]
    return rows


def _row(line: InboxLine, indent: int) -> Row:
    head = f"{' ' * indent}{clean_line(line.agent, limit=20):<14} "
    return Row(
        line.key,
        (
            Piece(head, "strong"),
            Piece(f"{line.kind:<15} ", "accent"),
            Piece(clean_line(line.what, limit=600)),
        ),
        tail=(Piece(line.waited, "dim"),),
        indent=indent + 4,
        most=3,
        mark=Piece("!" if line.urgent else "?", "error" if line.urgent else "warning"),
        copy=f"{line.agent} {line.kind} {clean_line(line.what)}",
    )
