from __future__ import annotations

import random

import pytest
from cockpit_samples import SESSION, Cockpit
from rich.color import Color

from widgets.base.dialog import ConfirmDialog
from widgets.dialogs.help import HelpDialog
from widgets.dialogs.step_editor import StepDraft, StepEditor
from widgets.dialogs.turn import InterventionDialog, InterventionModel

SIZES = [(1, 1), (2, 3), (5, 2), (40, 10), (20, 60), (80, 24), (300, 100), (1, 50), (200, 1)]


async def test_panes_survive_any_size_and_any_change_of_it() -> None:
    app = Cockpit()
    sizes = SIZES * 2
    random.Random(7).shuffle(sizes)
    async with app.run_test(size=(80, 24)) as pilot:
        app.fill()
        for size in sizes:
            await pilot.resize_terminal(*size)
            app.session.append(SESSION)
            await pilot.pause()
            lines = app.screen._compositor.render_strips()
            assert all(line.cell_length <= size[0] for line in lines)


@pytest.mark.parametrize("size", SIZES)
async def test_panes_can_be_filled_at_any_size(size: tuple[int, int]) -> None:
    app = Cockpit()
    async with app.run_test(size=size) as pilot:
        app.fill()
        app.plan.focus()
        await pilot.press("down", "G", "pageup", "home", "y", "Y")
        assert app.is_running


@pytest.mark.parametrize("size", [(1, 1), (40, 10), (80, 24)])
async def test_dialogs_open_at_any_size(size: tuple[int, int]) -> None:
    app = Cockpit()
    async with app.run_test(size=size) as pilot:
        for dialog in (
            ConfirmDialog("Really?"),
            HelpDialog({"Keys": [("a", "does a")]}),
            InterventionDialog(InterventionModel("goal", "step", "NETWORK_ERROR", "message", ("tried",))),
            StepEditor(StepDraft("Edit"), lambda tool, command, args: []),
        ):
            app.push_screen(dialog)
            await pilot.pause()
            await pilot.resize_terminal(60, 20)
            await pilot.resize_terminal(*size)
            await pilot.pause()
            app.pop_screen()
            await pilot.pause()


async def test_every_line_of_a_pane_has_the_panes_width() -> None:
    app = Cockpit()
    async with app.run_test(size=(120, 40)) as pilot:
        app.fill()
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
            for y in range(pane.content_size.height):
                assert pane.render_line(y).cell_length == pane.content_size.width, (pane, y)


async def test_without_colour_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = Cockpit()
    async with coloured.run_test(size=(120, 40)) as pilot:
        coloured.fill()
        await pilot.pause()
        await pilot.pause()  # what a highlighted row shows comes with a message
        text = [line.text for line in coloured.screen._compositor.render_strips()]

    monkeypatch.setenv("NO_COLOR", "1")
    grey = Cockpit()
    async with grey.run_test(size=(120, 40)) as pilot:
        grey.fill()
        await pilot.pause()
        await pilot.pause()  # what a highlighted row shows comes with a message
        lines = grey.screen._compositor.render_strips()

        assert [line.text for line in lines] == text
        for line in lines:
            for segment in line:
                color = segment.style.color if segment.style else None
                assert color is None or _grey(color)


def _grey(color: Color) -> bool:
    return color.triplet is None or len(set(color.triplet)) == 1


@pytest.mark.parametrize("theme", ["pilothouse-ansi", "pilothouse-ansi-light"])
async def test_the_sixteen_colour_themes_use_no_other_colours(theme: str) -> None:
    app = Cockpit(theme)
    async with app.run_test(size=(120, 40)) as pilot:
        app.fill()
        app.session.clear()  # a tool's own colours are its own
        app.plan.focus()
        await pilot.pause()
        await pilot.pause()  # what a highlighted row shows comes with a message
        styles = {
            segment.style
            for line in app.screen._compositor.render_strips()
            for segment in line
            if segment.style
        }

        for style in styles:
            for color in (style.color, style.bgcolor):
                assert color is None or color.is_default or color.is_system_defined, (style, color)
