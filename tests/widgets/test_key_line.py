"""The line of keys: what counts where the focus is, pressed by a click, moved by the wheel."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.pilot import Pilot
from textual.widgets import Input, Static

from widgets.base.text_layout import CONTROL_FILTER
from widgets.panes.key_line import KeyLine


class Focusable(Static, can_focus=True):
    """Something beside the input that can have the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("w", "app.note('warp')", "war\x1b[31mp", tooltip="Go")]


class Keys(App[None]):
    """A line of keys under two things that can have the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s,S", "note('step')", "step", tooltip="Run one action"),
        Binding("x", "note('skip')", "skip", show=False),
        Binding("ctrl+g", "note('run')", "run and never look back at what was before"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[str] = []

    def compose(self) -> ComposeResult:
        yield Focusable("", id="thing")
        yield Input(id="input")
        yield KeyLine(id="keys")

    def get_line_filters(self) -> list:  # type: ignore[type-arg]
        return [*super().get_line_filters(), CONTROL_FILTER]

    def action_note(self, what: str) -> None:
        self.noted.append(what)


def line(app: App[None]) -> str:
    return app.query_one(KeyLine).render_line(0).text.rstrip()


async def shown(pilot: Pilot[None], text: str) -> None:
    for _ in range(100):
        if line(pilot.app) == text:
            return
        await pilot.pause()
    assert line(pilot.app) == text


async def test_the_keys_are_those_of_the_focus_and_a_click_presses_one() -> None:
    app = Keys()
    async with app.run_test(size=(80, 6)) as pilot:
        await shown(pilot, "w warp s step ^g run and never look back at what was before")
        await pilot.click("#keys", offset=(8, 0))
        await pilot.click("#keys", offset=(0, 0))
        await pilot.click("#keys", offset=(70, 0))
        assert app.noted == ["step", "warp"]
        app.query_one("#input").focus()
        await shown(pilot, "^g run and never look back at what was before")
