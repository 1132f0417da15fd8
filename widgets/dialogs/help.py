"""All keys, grouped, with what the focused pane says about itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual.app import ComposeResult
from textual.widgets import Input

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.dialog import BoxDialog, DialogKey
from widgets.base.facts import FactsPane
from widgets.base.text_layout import Piece, Pieces, wrap

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


def help_lines(model: HelpModel, filtered: str, width: int) -> Iterator[Pieces]:
    """The keys whose name or description holds a text, below a heading for each group."""
    lines = 0
    if model.about and not filtered:
        yield from (about := _about(model.about, width))
        lines = len(about)
    for group in model.groups:
        keys = [key for key in group.keys if filtered in f"{key.keys} {key.does}".casefold()]
        if not keys:
            continue
        if lines:
            yield (Piece(""),)
        yield (Piece(clean_line(group.title), "heading"),)
        lines += 1
        for key in keys:
            name = f"{clean_line(key.keys):<{KEY_CELLS}} "
            pieces = (Piece("  " + name, "accent"), Piece(clean_line(key.does)))
            yield from wrap(pieces, width, indent=KEY_CELLS + 3, most=4)


def _about(text: str, width: int) -> list[Pieces]:
    lines: list[Pieces] = []
    for part in text.strip().splitlines():
        heading = part.startswith("## ")
        words = clean_line(part.removeprefix("## "))
        lines += wrap((Piece(words, "strong" if heading else "text"),), width, most=8)
    return lines


class HelpDialog(BoxDialog[None]):
    """The help; typing after `/` filters it."""

    TITLE_TEXT, HINT = "Help", "↑ ↓ scroll · / filter · esc close"
    DEFAULT_CSS = """
    HelpDialog > Vertical { height: 96%; }
    HelpDialog Input { display: none; height: 3; }
    HelpDialog.-filtering Input { display: block; }
    """
    KEYS = (DialogKey("question_mark,q", "close"), DialogKey("slash", "filter"))

    def __init__(self, model: HelpModel) -> None:
        super().__init__()
        self._model = model
        empty = "No key matches. Empty the filter to see all keys."
        self._text = FactsPane(render=partial(help_lines, model, ""), title="Help", empty=empty)
        self._input = Input(placeholder="filter keys")

    def compose(self) -> ComposeResult:
        """The filter and the keys."""
        yield self.box(self._input, self._text)

    def on_mount(self) -> None:
        """The keys have the focus, so that arrows scroll."""
        self._text.focus()

    def action_filter(self) -> None:
        """Show the filter."""
        self.add_class("-filtering")
        self._input.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as the operator types."""
        text = event.value.strip().casefold()
        self._text.show_text(text, partial(help_lines, self._model, text))

    def on_input_submitted(self) -> None:
        """Go back to the keys."""
        self._text.focus()
