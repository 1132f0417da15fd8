from __future__ import annotations

from dataclasses import replace

import pytest
from memory_samples import BROWSER, DETAIL, FOUND
from test_dialogs import OPEN, DialogApp
from textual.widgets import Input

from widgets.base.line_pane import LinePane, Requested
from widgets.dialogs.memory_browser import BrowserModel, MemoryBrowser, MemorySearch


class BrowserApp(DialogApp):
    """Answers as the cockpit would."""

    def __init__(self, model: BrowserModel = BROWSER) -> None:
        self.opened = MemoryBrowser(model)
        super().__init__(self.opened)
        self.asked: list[tuple[object, ...]] = []

    def on_requested(self, event: Requested) -> None:
        self.asked.append((event.what, *event.args))
        match event.what, event.args:
            case "search", (search,):
                found = tuple(row for row in FOUND if search.query in row.pieces[0].text)
                self.opened.show(replace(BROWSER, search=search, found=found))
            case "open", (memory,):
                self.opened.show_detail(replace(DETAIL, id=memory))

    def lines(self, kind: str) -> list[str]:
        pane = self.opened.query_one(kind, LinePane)
        rows = (pane.render_line(y).text[2:].rstrip(" │┃") for y in range(pane.content_size.height))
        return [row for row in rows if row]


@pytest.mark.parametrize("size", [(160, 45), (80, 24)])
async def test_results_are_listed_and_the_first_is_open(size: tuple[int, int]) -> None:
    app = BrowserApp()
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.pause()
        assert app.lines("#results")[0] == "the index answers slowly before noon"
        assert app.lines("#detail")[0] == "m7 · semantic fact"
        assert app.text("#line") == "in w3 build api_client"


async def test_words_are_looked_for_as_they_are_typed_and_older_answers_are_not_shown() -> None:
    app = BrowserApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("slash", *"venv")
        await pilot.pause()
        assert [row.key for row in app.opened.query_one("#results", LinePane).rows] == ["m5"]
        app.opened.show(replace(BROWSER, search=MemorySearch("ve"), found=FOUND))
        await pilot.pause()
        assert [row.key for row in app.opened.query_one("#results", LinePane).rows] == ["m5"]
        await pilot.press("escape", "W")
        assert app.opened.search == MemorySearch("venv", everywhere=True)
        assert app.text("#line") == "in all work"
        assert app.focused is app.opened.query_one("#results", LinePane)
        assert app.result is OPEN


async def test_links_are_followed() -> None:
    app = BrowserApp()
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.pause()
        detail = app.opened.query_one("#detail", LinePane)
        await pilot.press("tab")
        assert app.focused is detail
        while not detail.cursor.startswith("link:m6"):
            await pilot.press("down")
        await pilot.press("enter")
        await pilot.pause()
        assert app.opened.opened == "m6"
        assert app.opened.detail is not None
        assert app.opened.detail.id == "m6"


async def test_what_is_wanted_of_a_memory_is_asked_for() -> None:
    app = BrowserApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("p", "f", "E", "D")
        app.opened.show_detail(replace(DETAIL, pinned=True))
        await pilot.press("p")
        await pilot.pause()
        hows = ["pin", "focus", "evict", "forget", "unpin"]
        assert [asked for asked in app.asked if asked[0] == "change"] == [
            ("change", "m7", how) for how in hows
        ]


async def test_nothing_is_asked_of_a_memory_before_it_is_shown() -> None:
    app = BrowserApp(replace(BROWSER, found=()))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("p", "f", "E", "D", "enter")
        assert app.asked == []
        assert "No memory fits" in app.lines("#results")[0]
        assert "will be shown here" in app.lines("#detail")[0]


async def test_letters_typed_into_the_search_are_no_keys() -> None:
    app = BrowserApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("slash", *"pfEDWM")
        assert app.opened.query_one(Input).value == "pfEDWM"
        assert not any(what == "change" for what, *_ in app.asked)


async def test_the_browser_opens_at_any_size() -> None:
    app = BrowserApp()
    async with app.run_test(size=(1, 1)) as pilot:
        for size in ((30, 10), (200, 60), (100, 30)):
            await pilot.resize_terminal(*size)
            await pilot.press("slash", "a", "escape", "tab", "tab")
        assert app.is_running


async def test_one_key_says_right_and_one_wrong_of_what_is_shown() -> None:
    app = BrowserApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("plus", "down", "minus")
        await pilot.pause()
        assert [asked for asked in app.asked if asked[0] == "judge"] == [
            ("judge", "m7", True),
            ("judge", "m5", False),
        ]


async def test_the_first_of_new_results_is_under_the_cursor_and_open() -> None:
    """What a key does is done to the row that the eye sees."""
    app = BrowserApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("down", "down", "slash", "e", "enter")
        await pilot.pause()
        assert app.opened.query_one("#results", LinePane).cursor == app.opened.opened == "m7"
