"""The inbox: everything that needs the operator, of all agents, answered in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.line_pane import Notice
from widgets.pieces import Piece
from widgets.rows import Row, RowPane

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
    """What came of the last answer."""


class InboxList(RowPane):
    """The needs, the most urgent first; questions of one shape below their heading."""

    BINDING_GROUP_TITLE = "Inbox"
    DEFAULT_CSS = """
    InboxList, InboxList:focus { border: none; height: 1fr; min-height: 2; }
    """

    def row_chosen(self, key: str) -> None:
        """Open what the row is about."""
        self.post_message(InboxDialog.Answered("open", (key,)))


class InboxDialog(BoxDialog[None]):
    """Posts `Answered` and `RefreshWanted`; whoever opens it answers by `show`."""

    DEFAULT_CSS = """
    InboxDialog > Vertical { height: 96%; max-width: 160; border: round $warning; }
    InboxDialog #said { height: auto; max-height: 5; color: $text-warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "answer('once')", "Allow once", id="inbox.once"),
        Binding("s", "answer('session')", "Allow for this session", id="inbox.session"),
        Binding("A", "answer('always')", "Allow always", id="inbox.always"),
        Binding("d", "answer('deny')", "Deny", id="inbox.deny"),
        Binding("q", "close", "Close", id="inbox.close"),
    ]

    @dataclass
    class Answered(Message):
        """The operator answers some of the needs; `open` shows one."""

        answer: InboxAnswer
        keys: tuple[str, ...]

    @dataclass
    class RefreshWanted(Message):
        """Time has passed."""

    def __init__(self, model: InboxModel) -> None:
        super().__init__()
        self._model = model
        self._list = InboxList()
        self._said = Static(id="said")

    def compose(self) -> ComposeResult:
        """The needs, what came of the last answer, and the keys."""
        with Vertical() as box:
            box.border_title = "Inbox: what needs you"
            box.border_subtitle = "on a heading: all below it · esc close"
            yield self._list
            yield self._said
            yield Static(
                Content.from_markup(
                    "[@click=screen.answer('once')][bold]a[/] allow once[/]   "
                    "[@click=screen.answer('session')][bold]s[/] session …[/]   "
                    "[@click=screen.answer('always')][bold]A[/] always …[/]   "
                    "[@click=screen.answer('deny')][bold]d[/] deny …[/]   [bold]enter[/] open"
                ),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """The most urgent comes first."""
        self.show(self._model)
        self._list.focus()
        self.set_interval(REFRESH_S, self._wants_refresh)

    def _wants_refresh(self) -> None:
        self.post_message(self.RefreshWanted())

    @property
    def model(self) -> InboxModel:
        """What is shown."""
        return self._model

    def show(self, model: InboxModel) -> None:
        """Show these needs; the cursor stays on its row."""
        self._model = model
        self._list.set_notice(None if model.lines else Notice("Nobody needs you."))
        self._list.set_rows(_rows(model))
        self._said.update(Content("\n".join(clean_line(line) for line in model.said.splitlines())))

    def action_answer(self, answer: InboxAnswer) -> None:
        """Answer the row under the cursor, or all of a group from its heading."""
        keys = self._chosen()
        if keys:
            self.post_message(self.Answered(answer, keys))

    def _chosen(self) -> tuple[str, ...]:
        cursor = self._list.cursor
        if cursor.startswith(GROUP):
            return tuple(one.key for one in self._model.lines if one.group == cursor.removeprefix(GROUP))
        return (cursor,) if cursor else ()


def _rows(model: InboxModel) -> list[Row]:
    """Each line a row; several of one group stand below a heading, where the first of them is."""
    sizes: dict[str, int] = {}
    for one in model.lines:
        sizes[one.group] = sizes.get(one.group, 0) + 1
    rows: list[Row] = []
    told: set[str] = set()
    for one in model.lines:
        if not one.group or sizes[one.group] == 1:
            rows.append(_row(one, 0))
        elif one.group not in told:
            told.add(one.group)
            head = f"{sizes[one.group]} ask for {clean_line(one.group, limit=80)}"
            rows.append(Row(GROUP + one.group, (Piece(head, "heading"),), mark=Piece("▾", "warning")))
            rows += [_row(each, 2) for each in model.lines if each.group == one.group]
    return rows


def _row(one: InboxLine, indent: int) -> Row:
    head = f"{' ' * indent}{clean_line(one.agent, limit=20):<14} "
    return Row(
        one.key,
        (Piece(head, "strong"), Piece(f"{one.kind:<15} ", "accent"), Piece(clean_line(one.what, limit=600))),
        tail=(Piece(one.waited, "dim"),),
        indent=indent + 4,
        most=3,
        mark=Piece("!" if one.urgent else "?", "error" if one.urgent else "warning"),
        copy=f"{one.agent} {one.kind} {clean_line(one.what)}",
    )
