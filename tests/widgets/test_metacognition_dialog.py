from __future__ import annotations

from dataclasses import replace

import pytest
from memory_samples import META
from test_dialogs import OPEN, DialogApp
from test_hostile_text import CONTROL, HOSTILE

from widgets.base.line_pane import LinePane, Notice, Requested
from widgets.dialogs.metacognition import BackgroundLine, Gauge, MetaDialog, MetaModel

SIZES = [(160, 45), (100, 30), (80, 24)]


class MetaApp(DialogApp):
    """Keeps what is asked."""

    def __init__(self, model: MetaModel = META) -> None:
        self.opened = MetaDialog(model)
        super().__init__(self.opened)
        self.asked: list[tuple[object, ...]] = []

    def on_requested(self, event: Requested) -> None:
        self.asked.append((event.what, *event.args))

    def lines(self) -> list[str]:
        pane = self.opened.query_one(LinePane)
        rows = (pane.render_line(y).text[1:].rstrip(" │┃") for y in range(pane.content_size.height))
        return [row for row in rows if row]


@pytest.mark.parametrize("size", SIZES)
async def test_each_counter_stands_against_its_threshold_with_when_it_is_due_and_why(
    size: tuple[int, int],
) -> None:
    app = MetaApp()
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        lines = app.lines()
        assert lines[1].split() == [
            "reflect",
            "▓" * 10 + "░" * 6,
            "4.5/7",
            "successes",
            "in",
            "3",
            "successes",
        ]
        assert lines[2].split() == ["last:", "7", "successes", "→", "done:", "summary"]
        assert lines[3].split() == ["!", "consolidate", "▓" * 16, "12/12", "successes", "due", "now"]
        assert lines[4].startswith("▶ working mem")
        assert lines[5].startswith("– maintenance")


async def test_jobs_show_why_they_run_for_how_long_and_what_came_of_them() -> None:
    app = MetaApp()
    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.pause()
        text = "\n".join(" ".join(line.split()) for line in app.lines())
        assert "in the background 2/10" in text
        assert "▶ q4 optimise 8 loops 3s" in text
        assert "q3 reflect timed out 7 successes → 60 s were over 2m" in text
        assert "may be stuck\nthree times the same: run ls" in text
        assert "waits for the next prompt\noperator: look at the tests first" in text
        assert "failures 2 of the last 50 actions (4%)" in text


async def test_a_task_is_forced_vetoed_allowed_and_set_and_a_job_cancelled() -> None:
    app = MetaApp()
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.press("f", "v", "plus", "minus", "x")
        await pilot.press("down", "down", "x", "plus")
        await pilot.press("down", "v")
        await pilot.press("down", "down", "x", "f")
        await pilot.pause()
        assert app.asked == [
            ("force", "reflect"),
            ("veto", "reflect", True),
            ("threshold", "reflect", 8),
            ("threshold", "reflect", 6),
            ("cancel", "q4"),
            ("veto", "maintain", False),
            ("cancel", "q5"),
        ]
        assert app.result is OPEN
        await pilot.press("m")
        assert app.result is None


async def test_the_cursor_stays_while_counters_go_on() -> None:
    app = MetaApp()
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.press("down")
        gauges = (replace(META.gauges[0], value=6), *META.gauges[1:])
        app.opened.show(replace(META, gauges=gauges, running=()))
        await pilot.pause()
        assert app.lines()[1].split()[2] == "6/7"
        assert "nothing runs" in "\n".join(app.lines())
        await pilot.press("f")
        await pilot.pause()
        assert app.asked == [("force", "consolidate")]


async def test_where_there_is_nothing_it_says_what_will_appear() -> None:
    app = MetaApp(MetaModel("pilot-1"))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f", "v", "x", "plus")
        assert app.asked == []
        assert "Press space to run it." in " ".join(app.lines())


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_reasons_of_any_text_do_nothing_to_the_screen(text: str) -> None:
    gauge = Gauge(text, text, 1, 2, text, "due", text, text, text)
    line = BackgroundLine("q1", text, text, text, text, text)
    model = MetaModel(text, (gauge,), (line,), 10, (line,), ((text, text),), (text,), (text,), Notice(text))
    app = MetaApp(replace(model, ended=()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        strips = app.screen._compositor.render_strips()
        assert not CONTROL.search("".join(p.text for strip in strips for p in strip if not p.control))


@pytest.mark.parametrize("size", [(1, 1), (30, 10), (200, 60)])
async def test_the_gauges_open_at_any_size(size: tuple[int, int]) -> None:
    app = MetaApp()
    async with app.run_test(size=size) as pilot:
        await pilot.press("down", "f")
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert app.is_running
