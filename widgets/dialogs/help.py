"""All keys, grouped, with what the focused pane says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.facts import FactsPane
from widgets.pieces import Piece, Pieces, wrap

KEY_CELLS = 14


@dataclass(frozen=True, slots=True)
class HelpKey:
    """A key and what it does."""

    keys: str
    does: str


@dataclass(frozen=True, slots=True)
class HelpGroup:
    """Keys that belong together."""

    title: str
    keys: tuple[HelpKey, ...]


@dataclass(frozen=True, slots=True)
class HelpModel:
    """What the help shows."""

    groups: tuple[HelpGroup, ...]
    about: str = ""
    """What the focused pane says about itself; `## ` begins a heading."""


class HelpText(FactsPane):
    """The keys that match the filter."""

    BINDING_GROUP_TITLE = "Help"
    EMPTY = "No key matches. Empty the filter to see all keys."
    DEFAULT_CSS = """
    HelpText { height: 1fr; border: none; &:focus { border: none; } }
    """

    def __init__(self, model: HelpModel) -> None:
        super().__init__()
        self._model = model
        self._filter = ""

    def set_filter(self, text: str) -> None:
        """Show only keys whose name or description holds this text."""
        self._filter = text.strip().casefold()
        self.text_changed(from_start=True)

    def lines_for(self, width: int) -> tuple[Pieces, ...]:
        """The groups with a heading each."""
        lines: list[Pieces] = []
        if self._model.about and not self._filter:
            lines += _about(self._model.about, width)
        for group in self._model.groups:
            keys = [key for key in group.keys if self._filter in f"{key.keys} {key.does}".casefold()]
            if not keys:
                continue
            lines += [(Piece(""),)] if lines else []
            lines.append((Piece(clean_line(group.title), "heading"),))
            for key in keys:
                name = f"{clean_line(key.keys):<{KEY_CELLS}} "
                pieces = (Piece("  " + name, "accent"), Piece(clean_line(key.does)))
                lines += wrap(pieces, width, indent=KEY_CELLS + 3, most=4)
        return tuple(lines)


def _about(text: str, width: int) -> list[Pieces]:
    lines: list[Pieces] = []
    for part in text.strip().splitlines():
        heading = part.startswith("## ")
        words = clean_line(part.removeprefix("## "))
        lines += wrap((Piece(words, "strong" if heading else "text"),), width, most=8)
    return lines


class HelpDialog(BoxDialog[None]):
    """The help; typing after `/` filters it."""

    DEFAULT_CSS = """
    HelpDialog > Vertical { height: 96%; }
    HelpDialog Input { display: none; height: 3; }
    HelpDialog.-filtering Input { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,q", "close", "Close", id="help.close"),
        Binding("slash", "filter", "Filter", id="help.filter"),
    ]

    def __init__(self, model: HelpModel) -> None:
        super().__init__()
        self._text = HelpText(model)
        self._input = Input(placeholder="filter keys")

    def compose(self) -> ComposeResult:
        """The filter and the keys."""
        with Vertical() as box:
            box.border_title = "Help"
            box.border_subtitle = "↑ ↓ scroll · / filter · esc close"
            yield self._input
            yield self._text

    def on_mount(self) -> None:
        """The keys have the focus, so that arrows scroll."""
        self._text.focus()

    def action_filter(self) -> None:
        """Show the filter."""
        self.add_class("-filtering")
        self._input.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as the operator types."""
        self._text.set_filter(event.value)

    def on_input_submitted(self) -> None:
        """Go back to the keys."""
        self._text.focus()
