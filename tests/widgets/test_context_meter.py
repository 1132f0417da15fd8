from __future__ import annotations

from dataclasses import replace

import pytest
from test_dialogs import OPEN, DialogApp
from test_hostile_text import CONTROL, HOSTILE

from widgets.base.facts import LongText
from widgets.base.line_pane import CopyRequested, LinePane, Notice
from widgets.base.text_layout import bar, plain
from widgets.dialogs.context_meter import (
    BlockList,
    CallLine,
    ContextBlock,
    ContextDialog,
    ContextModel,
    GoalSpending,
)

METER = ContextModel(
    agent="pilot-1",
    model="claude-test",
    window=10_000,
    blocks=(
        ContextBlock("role", 300, "You are the planner.\nYou never act."),
        ContextBlock("tools", 600, "\n".join(f"tool {number}" for number in range(60))),
        ContextBlock("goal", 100, "The goal to plan for:\nbuild it"),
    ),
    call=CallLine("plan · for g1 · 14:03:07", "tokens 950 in · 20 out · $0.0100 · 1.2 s"),
    goals=(GoalSpending("g1 build it", 2, 1_940, 0.02), GoalSpending("", 1, 100, 0.0)),
    total="in all 3 calls, 2.0k tokens, $0.020",
    settings='{"model": "claude-test"}',
    answer="First a directory.",
)


class MeterApp(DialogApp):
    """Keeps what is to be copied."""

    def __init__(self, model: ContextModel = METER) -> None:
        self.opened = ContextDialog(model)
        super().__init__(self.opened)
        self.copied: list[str] = []

    def on_copy_requested(self, event: CopyRequested) -> None:
        self.copied.append(event.text)

    def lines(self, kind: type[LinePane] = BlockList) -> list[str]:
        pane = self.opened.query_one(kind)
        rows = (pane.render_line(y).text[2:].rstrip(" │┃") for y in range(pane.content_size.height))
        return [row for row in rows if row]


def test_a_bar_shows_at_least_one_cell_of_what_is_not_nothing() -> None:
    assert plain(bar(0.0, 5)) == "░░░░░"
    assert plain(bar(0.001, 5)) == "▓░░░░"
    assert plain(bar(0.5, 4)) == "▓▓░░"
    assert plain(bar(7.0, 3)) == "▓▓▓"
    assert plain(bar(0.5, 0)) == ""


@pytest.mark.parametrize("size", [(160, 45), (100, 30), (80, 24)])
async def test_each_block_shows_its_tokens_and_its_share_of_prompt_and_window(size: tuple[int, int]) -> None:
    app = MeterApp()
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        lines = app.lines()
        assert lines[0].split() == ["block", "tokens", "prompt", "of", "10.0k"]
        assert lines[1].split() == ["role", "300", "▓" * 6 + "░" * 14, "30%", "3.0%"]
        assert lines[2].split() == ["tools", "600", "▓" * 12 + "░" * 8, "60%", "6.0%"]
        assert lines[4].split() == ["in", "all", "1,000", "▓▓" + "░" * 18, "100%", "10.0%"]
        assert "plan · for g1 · 14:03:07" in lines
        assert lines[-3].split() == ["g1", "build", "it", "2", "calls", "1.9k", "tok", "$0.020"]
        assert lines[-2].split() == ["for", "no", "goal", "1", "call", "100", "tok", "$0.000"]


async def test_the_prompt_can_be_read_word_by_word_and_copied_unbroken() -> None:
    app = MeterApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await pilot.pause()
        assert app.lines(LongText)[:3] == ["── role ──", "You are the planner.", "You never act."]
        await pilot.press("Y")
        await pilot.pause()
        assert app.copied[0].endswith('── sent with it ──\n{"model": "claude-test"}')
        assert "── goal ──\nThe goal to plan for:\nbuild it" in app.copied[0]


async def test_enter_on_a_block_reads_that_block() -> None:
    app = MeterApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("down", "enter")
        await pilot.pause()
        assert app.lines(LongText)[:2] == ["── tools ──", "tool 0"]
        await pilot.press("tab")
        await pilot.pause()
        assert app.lines(LongText) == ["the answer", "First a directory."]
        await pilot.press("tab")
        assert app.focused is app.opened.query_one(BlockList)
        assert app.result is OPEN
        await pilot.press("c")
        assert app.result is None


async def test_a_newer_call_is_shown_and_the_page_stays() -> None:
    app = MeterApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("3")
        app.opened.show(replace(METER, answer="Then a file."))
        await pilot.pause()
        assert app.lines(LongText) == ["the answer", "Then a file."]


async def test_without_a_call_each_page_says_what_will_appear() -> None:
    app = MeterApp(ContextModel(agent="pilot-1", notice=Notice("No model was asked yet.")))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for key, kind in (("1", BlockList), ("2", LongText), ("3", LongText)):
            await pilot.press(key)
            await pilot.pause()
            assert app.lines(kind) == ["No model was asked yet."]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_a_prompt_of_any_text_does_nothing_to_the_screen(text: str) -> None:
    blocks = (ContextBlock(text, 10, text), ContextBlock("goal", 0, text))
    model = ContextModel(
        text, text, 7, blocks, CallLine(text, text, text), (GoalSpending(text, 1, 2, 3.0),), text, text, text
    )
    app = MeterApp(model)
    async with app.run_test(size=(80, 24)) as pilot:
        for key in ("1", "2", "3"):
            await pilot.press(key, "Y")
            await pilot.pause()
            strips = app.screen._compositor.render_strips()
            shown = "".join(part.text for strip in strips for part in strip if not part.control)
            assert not CONTROL.search(shown)


@pytest.mark.parametrize("size", [(1, 1), (30, 10), (200, 60)])
async def test_the_meter_opens_at_any_size(size: tuple[int, int]) -> None:
    app = MeterApp()
    async with app.run_test(size=size) as pilot:
        await pilot.press("2", "1")
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert app.lines()[1].startswith("role")
