"""The user's guide on a screen: its topics, and the page of the highlighted one."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import Screen
from textual.widgets import Markdown, OptionList
from textual.widgets.option_list import Option

from app.guide import page, topics


class GuideScreen(Screen[None]):
    """Shows the guide; the arrow keys choose a topic, tab goes to its page."""

    DEFAULT_CSS = """
    GuideScreen OptionList { width: 24; height: 1fr; border: round $border-blurred; }
    GuideScreen VerticalScroll { width: 1fr; height: 1fr; border: round $border-blurred; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f1", "dismiss", "Close", id="guide.close", tooltip="Close the guide")
    ]

    def compose(self) -> ComposeResult:
        """The topics, and the page."""
        with Horizontal():
            yield OptionList(*(Option(title, id=topic) for topic, title in topics().items()))
            with VerticalScroll():
                yield Markdown(open_links=False)

    async def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show the page of a topic."""
        if event.option_id is not None:
            await self.query_one(Markdown).update(page(event.option_id))
            self.query_one(VerticalScroll).scroll_home(animate=False)
