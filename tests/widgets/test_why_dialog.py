from __future__ import annotations

import pytest
from test_dialogs import DialogApp
from test_hostile_text import CONTROL, HOSTILE

from widgets.base.line_pane import LinePane, Requested
from widgets.dialogs.review import WhyDialog, WhyModel, why_row

ROWS = (
    why_row(0, "pilot:9", "", "✗", "error", "no network", "10:00:09"),
    why_row(1, "pilot:8", "├ ", "▶", "action", "a1 started", "10:00:08"),
    why_row(2, "gone:3", "│ ├ ", "?", "missing", "gone:3 is not in this journal"),
)
MODEL = WhyModel("error", "backward", "why error", ROWS, ("2 more events are not listed",))


class WhyApp(DialogApp):
    """Keeps what is asked."""

    def __init__(self, model: WhyModel = MODEL) -> None:
        self.opened = WhyDialog(model)
        super().__init__(self.opened)
        self.asked: list[tuple[object, ...]] = []

    def on_requested(self, event: Requested) -> None:
        self.asked.append(event.args)

    def text(self) -> str:
        pane = self.opened.query_one(LinePane)
        return "\n".join(pane.render_line(y).text for y in range(pane.content_size.height))


@pytest.mark.parametrize("size", [(160, 45), (100, 30), (80, 24)])
async def test_each_event_is_a_line_with_its_reference_and_notes_are_below(size: tuple[int, int]) -> None:
    app = WhyApp()
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for words in ("no network", "pilot:9", "a1 started", "gone:3 is not", "2 more events"):
            assert words in app.text()


async def test_keys_ask_about_the_event_under_the_cursor_and_the_other_ways() -> None:
    app = WhyApp()
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("down", "enter", "f", "i", "b", "backspace")
        assert app.asked == [
            ("pilot:8", "backward"),
            ("error", "forward"),
            ("error", "wrong"),
            ("error", "backward"),
        ]


async def test_a_missing_event_cannot_be_asked_about() -> None:
    app = WhyApp()
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("end", "enter")
        assert not app.asked


async def test_lines_that_only_name_their_events_are_no_answer_to_turn() -> None:
    app = WhyApp(WhyModel("", "drift", "Drift", ROWS))
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("f", "i", "b", "backspace")
        assert not app.asked


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_is_shown_as_text(text: str) -> None:
    rows = (why_row(0, text, "├ ", "·", "action", text, text),)
    app = WhyApp(WhyModel(text, "backward", text, rows, (text,)))
    async with app.run_test() as pilot:
        await pilot.pause()
        assert not CONTROL.search(app.text().replace("\n", ""))
