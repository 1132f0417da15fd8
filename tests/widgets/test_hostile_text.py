"""What agents, tools and models say can be anything; the terminal must not notice.

The panes are tested without the filter, so that each net is shown to hold by itself.
"""

from __future__ import annotations

import re

import pytest
from cockpit_samples import Cockpit
from rich.segment import Segment
from textual.color import Color

from widgets.base.dialog import ConfirmDialog
from widgets.base.facts import ListModel
from widgets.base.line_pane import Notice
from widgets.base.text_layout import ControlCharacterFilter
from widgets.dialogs.help import HelpDialog
from widgets.dialogs.step_editor import StepDraft, StepEditor
from widgets.dialogs.turn import InterventionDialog, InterventionModel, Offer
from widgets.panes.beliefs import entry_row, memory_rows
from widgets.panes.errors import error_rows
from widgets.panes.goals import agent_row, goal_row, stacked
from widgets.panes.mind_stream import mind_row
from widgets.panes.plan import PlanModel, StepLine
from widgets.panes.session import SessionChunk, SessionModel
from widgets.panes.status_bar import StatusModel

MARKUP = ["[/x]", "[@click=app.boom]x[/]"]
HOSTILE = [
    *MARKUP,
    "[/] $text {0} %s [",
    "\x1b]52;c;aGVsbG8=\x1b\\ \x1b]0;title\x07 \x1b[2J",
    "\x9b2J safe\u202egnp.exe \u2066isolated \ud800",
    "\x1b",
    "\x1b[31",
    "\x00\x07\x08\x0b\x0c\x0e\x7f\x85 abc\rdef",
    "x" * 10_000,
    "👩‍👩‍👧‍👦 e\u0301\u0327 " + "日本語の文字列" * 20,
    "\t two\nlines\n\n",
    "",
]
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def fill_with(app: Cockpit, text: str) -> None:
    goals, agents = (
        [goal_row("g", text, "active", "└ ", 1, 2)],
        [agent_row("a", "asks", text), agent_row(text)],
    )
    app.goals.show(ListModel(rows=stacked(goals, (), agents)))
    app.plan.show(
        PlanModel(
            steps=(
                StepLine(
                    "s", text, "failed", tool=text, command=text, args={text: text, "deep": {text: [text]}},
                    thinker=text, recipe=text, clause=text, clause_index=1, summary=text, error=text,
                    depends_on=(text,), group=text,
                ),
            ),
            goal=text,
            revision=2,
        )
    )  # fmt: skip
    app.memory.show(memory_rows([entry_row("m", text, text, focused=True, confidence=0.5)]))
    app.errors.show(
        ListModel(
            rows=[
                *error_rows("e", text, text, text, (text,), history=text),
                *error_rows("f", text, text, resolved=True),
            ]
        )
    )
    app.mind.show(ListModel(rows=(mind_row("d", "thought", text, text),)))
    app.session.append(
        [
            SessionChunk(text, "prompt"),
            SessionChunk(text),
            SessionChunk(text, "err"),
            SessionChunk(text, "note"),
        ]
    )
    app.session.show(SessionModel(exit_status=1, held_by=text))
    app.status.show(StatusModel(text, text, "PAUSED", text, 1, text, sandbox=text, journal=text))
    app.bar.show(text, "error")
    app.bar.set_text(text)


def rendered(app: Cockpit) -> str:
    """All text that would go to the terminal, without the sequences Textual itself adds."""
    strips = app.screen._compositor.render_strips()
    return "".join(segment.text for strip in strips for segment in strip if not segment.control)


def assert_clean(app: Cockpit) -> None:
    found = CONTROL.search(rendered(app))
    assert found is None, repr(found)


async def test_no_pane_lets_hostile_text_through() -> None:
    app = Cockpit(guarded=False)
    async with app.run_test(size=(120, 40)) as pilot:
        for text in HOSTILE:
            fill_with(app, text)
            await pilot.pause()
            assert_clean(app)
            app.plan.focus()
            await pilot.press("down", "y", "Y")
            await pilot.resize_terminal(60, 30)
            await pilot.pause()
            assert_clean(app)
            await pilot.resize_terminal(120, 40)


@pytest.mark.parametrize("text", MARKUP)
async def test_a_click_on_hostile_text_runs_nothing(text: str) -> None:
    app = Cockpit(guarded=False)
    async with app.run_test(size=(120, 40)) as pilot:
        fill_with(app, text)
        await pilot.pause()
        for pane in (
            app.goals,
            app.plan.steps,
            app.plan.detail,
            app.memory,
            app.errors,
            app.session,
            app.mind,
        ):
            for y in (1, 2, 3):
                await pilot.click(pane, offset=(6, y))
        await pilot.click(app.status, offset=(4, 0))
        await pilot.click("#message", offset=(6, 0))
        await pilot.pause()

        assert app.booms == 0
        assert app.is_running


async def test_an_empty_pane_shows_hostile_notices_harmlessly() -> None:
    app = Cockpit(guarded=False)
    async with app.run_test(size=(120, 40)) as pilot:
        for text in HOSTILE:
            app.goals.show(ListModel(notice=Notice(text, "error")))
            app.plan.show(PlanModel(notice=Notice(text, "loading")))
            app.session.show(SessionModel(notice=Notice(text)))
            await pilot.pause()
            assert_clean(app)


async def test_no_dialog_lets_hostile_text_act() -> None:
    app = Cockpit(guarded=False)
    async with app.run_test(size=(100, 40)) as pilot:
        for text in HOSTILE:
            offers = {Offer.TAKE_SHELL: text}
            for dialog in (
                ConfirmDialog(text, text, text, text),
                HelpDialog({text: [(text, text)]}, text),
                InterventionDialog(InterventionModel(text, text, text, text, (text, text), offers)),
                StepEditor(StepDraft(text, text, text, {text: text}), lambda *_call: [text]),  # noqa: B023
            ):
                app.push_screen(dialog)
                await pilot.pause()
                assert_clean(app)
                for y in range(12, 28, 4) if text in MARKUP else ():
                    await pilot.click(offset=(40, y))
                assert app.booms == 0
                app.pop_screen()
                await pilot.pause()


def test_the_filter_is_a_net_of_its_own() -> None:
    segments = [Segment("safe"), Segment("a\x1b[2Jb\x9b\u202ec"), Segment("日本 👩‍👧")]

    clean = ControlCharacterFilter().apply(segments, Color(0, 0, 0))

    assert clean[0] is segments[0]
    assert not CONTROL.search(clean[1].text)
    assert clean[2].text == "日本 👩‍👧"


async def test_the_net_holds_what_a_widget_lets_through() -> None:
    leaks = Cockpit(guarded=False)
    async with leaks.run_test(size=(100, 30)) as pilot:
        leaks.bar.input.value = "pasted \x1b[2J"
        await pilot.pause()
        assert CONTROL.search(rendered(leaks))

    held = Cockpit()
    async with held.run_test(size=(100, 30)) as pilot:
        held.bar.input.value = "pasted \x1b[2J"
        await pilot.pause()
        assert_clean(held)
