"""What a rewind would do, before it is done: nothing changes until `y` is pressed."""

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
from widgets.dialogs.signed_parts import SignedPart, SignedText

YES = "yes"


@dataclass(frozen=True, slots=True)
class RewindModel:
    """What the dialog shows."""

    title: str
    parts: tuple[SignedPart, ...]
    scope: str = "both"
    """`both`, `files`, `state`; empty where there is no choice."""
    yes: str = "rewind"
    """What `y` does, in a word or two."""
    refused: str = ""
    """Why it cannot be done; `y` then does nothing."""


class RewindDialog(BoxDialog[str]):
    """The preview; `y` agrees, other letters choose what is taken back, all else leaves things as they are.

    The result is `yes`, or the scope whose preview is wanted, or None.
    """

    DEFAULT_CSS = """
    RewindDialog > Vertical { height: 96%; border: round $warning; }
    RewindDialog #choice { height: auto; }
    RewindDialog #refused { height: auto; color: $text-error; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "agree", "Rewind", id="rewind.yes", priority=True),  # the text would copy
        Binding("n,q", "close", "Leave it", id="rewind.no"),
        Binding("b", "scope('both')", "State and files", id="rewind.both"),
        Binding("f", "scope('files')", "Only files", id="rewind.files"),
        Binding("t", "scope('state')", "Only state", id="rewind.state"),
    ]

    def __init__(self, model: RewindModel) -> None:
        super().__init__()
        self._model = model
        self._text = SignedText(model.parts, nothing="nothing", counted=True)

    def compose(self) -> ComposeResult:
        """The parts, and the keys below them."""
        model = self._model
        with Vertical() as box:
            box.border_title = clean_line(model.title)
            box.border_subtitle = "nothing has changed yet · ↑ ↓ scroll · esc close"
            yield self._text
            if model.refused:
                yield Static(Content(clean_line(model.refused)), id="refused")
            yield Static(self._choice(), id="choice")

    def _choice(self) -> Content:
        model = self._model
        agree = "" if model.refused else "[@click=screen.agree][bold]y[/] $yes[/]   "
        other = [
            f"[@click=screen.scope('{scope}')][bold]{key}[/] {words}[/]"
            for key, scope, words in (
                ("b", "both", "state and files"),
                ("f", "files", "only files"),
                ("t", "state", "only state"),
            )
            if model.scope and scope != model.scope
        ]
        leave = "[@click=screen.close][bold]n[/] leave it[/]"
        return Content.from_markup(agree + "   ".join([*other, leave]), yes=clean_line(model.yes))

    def on_mount(self) -> None:
        """The text has the focus, so that arrows scroll."""
        self._text.focus()

    def action_agree(self) -> None:
        """Do it."""
        if not self._model.refused:
            self.dismiss(YES)

    def action_scope(self, scope: str) -> None:
        """See the preview of another scope."""
        if self._model.scope and scope != self._model.scope:
            self.dismiss(scope)
