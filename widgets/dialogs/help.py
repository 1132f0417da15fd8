"""All keys, grouped, with what the focused pane says about itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from textual.widgets import Input

from engine.core.text import clean_line
from widgets.base.dialog import BoxDialog
from widgets.base.facts import FactsPane
from widgets.base.text_layout import Piece, Pieces, wrap

KEY_CELLS = 14


HelpGroups = Mapping[str, Sequence[tuple[str, str]]]
"""Keys with what they do, by what they are listed under."""


def help_lines(groups: HelpGroups, about: str, filtered: str, width: int) -> Iterator[Pieces]:
    """The keys whose name or description holds a text, below a heading for each group."""
    lines = 0
    if about and not filtered:
        yield from (above := _about(about, width))
        lines = len(above)
    for title, keys in groups.items():
        shown = [(key, does) for key, does in keys if filtered in f"{key} {does}".casefold()]
        if not shown:
            continue
        if lines:
            yield (Piece(""),)
        yield (Piece(clean_line(title), "heading"),)
        lines += 1
        for key, does in shown:
            name = f"{clean_line(key):<{KEY_CELLS}} "
            pieces = (Piece("  " + name, "accent"), Piece(clean_line(does)))
            yield from wrap(pieces, width, indent=KEY_CELLS + 3, most=4)


def _about(text: str, width: int) -> list[Pieces]:
    lines: list[Pieces] = []
    for part in text.strip().splitlines():
        heading = part.startswith("## ")
        words = clean_line(part.removeprefix("## "))
        lines += wrap((Piece(words, "strong" if heading else "text"),), width, most=8)
    return lines


class HelpDialog(BoxDialog[None]):
    """The help; typing after `/` filters it.

    Args:
        groups: the keys.
        about: what the focused pane says about itself; `## ` begins a heading.
    """

    TITLE_TEXT, HINT = "Help", "↑ ↓ scroll · / filter · esc close"

    def __init__(self, groups: HelpGroups, about: str = "") -> None:
        super().__init__()
        self.groups, self._about = groups, about
        empty = "No key matches. Empty the filter to see all keys."
        self._text = FactsPane(render=partial(help_lines, groups, about, ""), title="Help", empty=empty)
        self._input = Input(placeholder="filter keys")
        self.parts = (self._input, self._text)

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
        self._text.show_text(text, partial(help_lines, self.groups, self._about, text))

    def on_input_submitted(self) -> None:
        """Go back to the keys."""
        self._text.focus()
