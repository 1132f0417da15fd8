"""Whether a server of a workspace's `mcp.json` may start: all of its entry, then yes, no or later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.dialogs.long_text import LongText, Section

_WARNING = (
    "The file mcp.json of this workspace names it. Whoever wrote that file chose what is started here; "
    "give leave only to what you know."
)


@dataclass(frozen=True, slots=True)
class LeaveModel:
    """What is asked."""

    server: str
    entry: str
    """The hash of the entry that is shown."""
    facts: tuple[tuple[str, str], ...]
    """All of the entry, as labels and texts."""


class LeaveDialog(BoxDialog[bool]):
    """`t` gives leave, `d` refuses it, escape leaves the question open.

    Enter does nothing, so that no habit agrees.
    """

    DEFAULT_CSS = """
    LeaveDialog > Vertical { max-width: 110; height: 80%; max-height: 30; border: round $warning; }
    LeaveDialog #warning { height: auto; margin: 0 0 1 0; color: $text-warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "say(True)", "Let it start", id="leave.yes"),
        Binding("d", "say(False)", "Let it not start", id="leave.no"),
        Binding("q", "close", "Later", show=False, id="leave.close"),
    ]

    def __init__(self, model: LeaveModel) -> None:
        super().__init__()
        self._model = model
        self._text = LongText()

    @property
    def model(self) -> LeaveModel:
        """What is asked."""
        return self._model

    def compose(self) -> ComposeResult:
        """The warning, the entry, and the keys."""
        with Vertical() as box:
            box.border_title = Content(f"May {clean_line(self._model.server, limit=40)} start?")
            box.border_subtitle = "nothing of it runs yet"
            yield Static(_WARNING, id="warning", markup=False)
            yield self._text
            yield Static(
                Content.from_markup(
                    "[@click=screen.say(True)][bold]t[/] let it start, now and later[/]   "
                    "[@click=screen.say(False)][bold]d[/] let it not start[/]   [bold]esc[/] later"
                ),
                classes="-keys",
            )

    def on_mount(self) -> None:
        """The entry can be scrolled."""
        self._text.show(tuple(Section(label, text) for label, text in self._model.facts))
        self._text.focus()

    def action_say(self, yes: bool) -> None:
        """Answer."""
        self.dismiss(yes)
