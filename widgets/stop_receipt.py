"""The receipt of a stop, in place: what was stopped, and what still runs."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.message import Message

from widgets.facts import Fact, FactsPane

MOST_LINES = 9


@dataclass(frozen=True, slots=True)
class StopReceiptModel:
    """What the receipt shows."""

    lines: tuple[Fact, ...] = ()
    """None hides it."""
    hint: str = ""
    """Which keys are of use now."""


class StopReceiptPane(FactsPane):
    """Takes no focus, so that every key still means what it meant; a click closes it."""

    can_focus = False
    BINDING_GROUP_TITLE = "Receipt"
    DEFAULT_CSS = """
    StopReceiptPane { display: none; border: round $warning; height: auto; }
    StopReceiptPane.-shown { display: block; }
    """

    @dataclass
    class Dismissed(Message):
        """The operator has read it."""

    def show(self, model: StopReceiptModel) -> None:
        """Show this model."""
        self.set_class(bool(model.lines), "-shown")
        self.border_title = Content("Stopped")
        self.border_subtitle = Content(model.hint)
        self.set_facts(model.lines)
        self._fit()

    def on_resize(self) -> None:
        """Take as many lines as the text has now."""
        super().on_resize()
        self._fit()

    def _fit(self) -> None:
        self.styles.height = min(MOST_LINES, max(1, self.line_total()[1])) + 2

    def on_click(self, event: events.Click) -> None:
        """A click closes it."""
        event.stop()
        self.post_message(self.Dismissed())
