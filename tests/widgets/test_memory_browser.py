from __future__ import annotations

from dataclasses import replace

import pytest
from memory_samples import BROWSER, DETAIL, FOUND
from test_dialogs import OPEN, DialogApp
from test_hostile_text import CONTROL, HOSTILE, MARKUP
from textual.widgets import Input

from widgets.base.line_pane import LinePane, Notice, Requested
from widgets.dialogs.memory_browser import (
    BrowserModel,
    DetailPane,
    FoundLine,
    LinkLine,
    MemoryBrowser,
    MemoryDetail,
    MemorySearch,
    VersionLine,
)

SIZES = [(160, 45), (100, 30), (80, 24)]


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
                found = tuple(line for line in FOUND if search.query in line.text)
                self.opened.show(replace(BROWSER, search=search, found=found))
            case "open", (memory,):
                links = DETAIL.links if memory == "m7" else ()
                self.opened.show_detail(replace(DETAIL, id=memory, links=links))

    def lines(self, kind: str | type[LinePane]) -> list[str]:
        pane = self.opened.query_one(kind)
        rows = (pane.render_line(y).text[2:].rstrip(" │┃") for y in range(pane.content_size.height))
        return [row for row in rows if row]


@pytest.mark.parametrize("size", SIZES)
async def test_results_show_score_type_importance_and_age_and_the_first_is_open(
    size: tuple[int, int],
) -> None:
    app = BrowserApp()
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.pause()
        results = app.lines("#results")
        assert results[0].split()[:2] == ["fact:", "the"]
        assert "0.91 !7  3h" in "\n".join(results)
        detail = "\n".join(app.lines(DetailPane))
        assert "m7 · semantic fact · importance 7.0 · confidence 90%" in detail
        assert "the index answers slowly before noon\n" in detail
        assert "level any" in app.text("#filters")
        assert "in w3 build api_client" in app.text("#filters")


async def test_words_are_looked_for_as_they_are_typed_and_older_answers_are_not_shown() -> None:
    app = BrowserApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("slash", *"venv")
        await pilot.pause()
        assert [row.key for row in app.opened.query_one("#results", LinePane).rows] == ["m5"]
        app.opened.show(replace(BROWSER, search=MemorySearch("ve"), found=FOUND))
        await pilot.pause()
        assert [row.key for row in app.opened.query_one("#results", LinePane).rows] == ["m5"]
        await pilot.press("escape")
        assert app.focused is app.opened.query_one("#results", LinePane)
        assert app.result is OPEN


async def test_filters_go_round_and_back_to_any() -> None:
    app = BrowserApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("l")
        assert app.opened.search == MemorySearch(level="working")
        await pilot.press("l", "l", "l", "l")
        assert app.opened.search.level == ""
        await pilot.press("T")
        assert app.opened.search.type == "question"
        await pilot.press("t", "W")
        assert app.opened.search == MemorySearch(everywhere=True)
        assert "in all work" in app.text("#filters")


async def test_links_are_followed_in_both_directions_and_back() -> None:
    app = BrowserApp()
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.pause()
        detail = app.opened.query_one(DetailPane)
        lines = app.lines(DetailPane)
        assert "→ supports create_venv took 4 s" in " ".join(lines)
        assert "← question of is there a proxy?" in " ".join(lines)
        await pilot.press("tab")
        assert app.focused is detail
        while not detail.cursor.startswith("link:m6"):
            await pilot.press("down")
        await pilot.press("enter")
        await pilot.pause()
        assert app.opened.opened == "m6"
        assert detail.detail is not None
        assert detail.detail.id == "m6"
        await pilot.press("backspace")
        await pilot.pause()
        assert detail.detail.id == "m7"
        await pilot.press("backspace")
        assert app.focused is app.opened.query_one("#results", LinePane)


async def test_the_history_names_who_changed_what_and_when() -> None:
    app = BrowserApp()
    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.pause()
        lines = app.lines(DetailPane)
        at = lines.index("history")
        assert lines[at + 1 :] == ["14:20:11 operator:ada importance 5 → 7", "14:03:09 agent made"]


@pytest.mark.parametrize(
    ("key", "how", "importance"),
    [
        ("p", "pin", 0.0),
        ("f", "focus", 0.0),
        ("E", "evict", 0.0),
        ("D", "forget", 0.0),
        ("plus", "importance", 8.0),
        ("minus", "importance", 6.0),
    ],
)
async def test_what_is_wanted_of_a_memory_is_asked_for(key: str, how: str, importance: float) -> None:
    app = BrowserApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press(key)
        await pilot.pause()
        assert app.asked[-1] == ("change", "m7", how, importance)


async def test_nothing_is_asked_of_a_memory_before_it_is_shown() -> None:
    app = BrowserApp(replace(BROWSER, found=()))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("p", "f", "E", "D", "plus", "backspace", "enter")
        assert app.asked == []
        assert "No memory fits" in app.lines("#results")[0]
        assert "will be shown here" in app.lines(DetailPane)[0]


async def test_letters_typed_into_the_search_are_no_keys() -> None:
    app = BrowserApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("slash", *"pfEDWlt+-M")
        assert app.opened.query_one(Input).value == "pfEDWlt+-M"
        assert not any(what == "change" for what, *_ in app.asked)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_memories_of_any_text_do_nothing_to_the_screen(text: str) -> None:
    found = FoundLine("m1", text, text, text, text, 5.0, 0.5, text)
    model = BrowserModel(text, text, MemorySearch(), (found,), (text,), (text,), text, Notice(text))
    app = BrowserApp(model)
    detail = MemoryDetail(
        "m1", text, text, text, 1.0, 0.5, text, text, text, (text,), text, text, text, text,
        links=(LinkLine("m2", True, text, 0.5, text),), history=(VersionLine(text, text, text),),
    )  # fmt: skip
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.opened.show_detail(detail)
        await pilot.pause()
        for _ in range(2):
            strips = app.screen._compositor.render_strips()
            assert not CONTROL.search("".join(p.text for strip in strips for p in strip if not p.control))
            await pilot.press("tab", "l", "end")
            await pilot.pause()
        if text in MARKUP:
            await pilot.click("#filters", offset=(20, 0))


@pytest.mark.parametrize("size", [(1, 1), (30, 10), (200, 60)])
async def test_the_browser_opens_at_any_size(size: tuple[int, int]) -> None:
    app = BrowserApp()
    async with app.run_test(size=size) as pilot:
        await pilot.press("slash", "a", "escape", "tab", "tab")
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert app.is_running
