"""The themes: the one under the cursor is shown at once."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on

from widgets.base.dialog import ListDialog
from widgets.base.line_pane import RowChosen, RowHighlighted
from widgets.base.rows import Row
from widgets.base.text_layout import Piece


class ThemesDialog(ListDialog[Sequence[str]]):
    """A list of themes; enter keeps the one that is shown, escape goes back to the one before."""

    TITLE_TEXT, HINT = "Colours", "↑ ↓ show · esc back"
    LIST_TITLE, MARKS = "Themes", True

    _before = ""

    def on_mount(self) -> None:
        """The cursor is on the theme that is shown."""
        self._before = self.app.theme
        super().on_mount()
        self.list.move_cursor(self._before)

    def rows(self) -> Sequence[Row]:
        """The shipped and the operator's themes, then those of Textual."""
        before = Piece("✓", "success"), Piece(" ")
        return [Row(name, (Piece(name),), mark=before[name != self._before]) for name in self.model]

    @on(RowHighlighted)
    def _preview(self, event: RowHighlighted) -> None:
        self.app.theme = event.key

    @on(RowChosen)
    def _keep(self, event: RowChosen) -> None:
        self.app.theme = event.key
        self.request("kept", event.key)
        self.dismiss(None)

    def action_close(self) -> None:
        """Go back to the theme before."""
        self.app.theme = self._before
        super().action_close()
