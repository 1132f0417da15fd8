"""Dialogs of rows that the projection made: breakpoints and metacognition ask, budgets are written."""

from __future__ import annotations

from test_dialogs import OPEN, DialogApp

from widgets.base.dialog import RowsDialog
from widgets.base.facts import ListModel
from widgets.base.line_pane import LinePane, Notice, Requested
from widgets.base.rows import Row
from widgets.base.text_layout import Piece
from widgets.dialogs.lists import BreakpointsDialog, BudgetsDialog, MetaDialog


def model(*keys: str) -> ListModel:
    return ListModel("Title", [Row(key, (Piece(f"row {key}"),)) for key in keys])


class RowsApp(DialogApp):
    """Keeps what is asked."""

    def __init__(self, opened: RowsDialog) -> None:
        self.opened = opened
        super().__init__(opened)
        self.asked: list[tuple[object, ...]] = []

    def on_requested(self, event: Requested) -> None:
        self.asked.append((event.what, *event.args))

    def lines(self) -> list[str]:
        pane = self.opened.query_one("#list", LinePane)
        rows = (pane.render_line(y).text[1:].strip(" │┃") for y in range(pane.content_size.height))
        return [row for row in rows if row]


async def test_keys_ask_for_something_of_the_row_under_the_cursor_which_stays_on_it() -> None:
    app = RowsApp(BreakpointsDialog(model("b1", "b2", "b3")))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("down", "space", "enter", "delete", "w", "I")
        app.opened.show(model("b0", "b2"))
        await pilot.press("space")
        await pilot.click("#list", offset=(6, 0), times=2)
        await pilot.click(".-keys", offset=(1, 0))
        await pilot.pause()
        asked = ["switch", "switch", "remove", "why", "add", "switch"]
        assert app.asked == [*((what, "b2") for what in asked), ("switch", "b0"), ("add", "b0")]
        assert app.lines() == ["row b0", "row b2"]
        assert app.result is OPEN
        await pilot.press("escape")
        assert app.result is None


async def test_an_empty_list_says_which_key_adds_a_row_and_a_notice_why_there_is_none() -> None:
    app = RowsApp(BreakpointsDialog(ListModel("Title")))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "Press I to add one." in app.lines()[0]
        app.opened.show(ListModel("Title", notice=Notice("cannot be read", "error")))
        await pilot.pause()
        assert app.lines() == ["✗ cannot be read"]


async def test_tasks_are_forced_vetoed_and_cancelled() -> None:
    app = RowsApp(MetaDialog(model("task:reflect", "job:q4")))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f", "down", "v", "x")
        await pilot.pause()
        assert app.asked == [("force", "task:reflect"), ("veto", "job:q4"), ("cancel", "job:q4")]
        await pilot.press("m")
        assert app.result is None


async def test_an_amount_is_written_and_escape_goes_back_from_it() -> None:
    app = RowsApp(BudgetsDialog(model("goal g1/usd", "workspace/seconds")))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("down", "e", *"+n", "escape", "plus", "D", "enter", *"+ 5", "enter")
        await pilot.pause()
        row = "workspace/seconds"
        assert app.asked == [("more", row), ("lift", row), ("set", row, "+5")]
        assert app.result is OPEN


async def test_rows_open_at_any_size() -> None:
    app = RowsApp(BudgetsDialog(model("a", "b")))
    async with app.run_test(size=(1, 1)) as pilot:
        for size in ((30, 10), (200, 60), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.press("down", "e", "escape")
        assert app.lines() == ["row a", "row b"]
