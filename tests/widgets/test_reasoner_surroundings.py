"""The panes and dialogs of a BDI agent under hostile text, at any size, in any theme."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from reasoner_samples import GENERATED, WORLD, ReasonerApp
from test_hostile_text import CONTROL, HOSTILE, MARKUP
from test_sizes import SIZES
from test_themes import COLOURED, contrast

from engine.core.reasoner import Generation, ProposedPlan
from widgets.base.facts import ListModel
from widgets.base.line_pane import Notice
from widgets.base.text_layout import source_pieces
from widgets.dialogs.generated_plans import GeneratedPlansDialog
from widgets.panes.beliefs import belief_row
from widgets.panes.goals import FrameLine, intention_rows
from widgets.panes.world import WorldModel, WorldSign

TEXTS = [*HOSTILE, "x" * 100_000, "[b]" * 33_000]


def fill_with(app: ReasonerApp, text: str) -> None:
    app.world.show(
        WorldModel(
            text,
            (text, f". {text} A"),
            (WorldSign("A", text, "agent"), WorldSign(text, text)),
            ((text, text),),
        )
    )
    app.beliefs.show(
        ListModel(rows=[belief_row(text, (text, text), 1), belief_row(f"b({text})", (), 2, True)])
    )
    frames = (FrameLine(text, text, text, ((text, text),), 2), FrameLine(text))
    app.intentions.show(ListModel(rows=list(intention_rows(text, "waiting", text, text, frames))))


def plans_of(text: str) -> GeneratedPlansDialog:
    plans = (ProposedPlan(text, (text,)), ProposedPlan(text))
    told = {"model": text, "system": text, "prompt": text, "answer": text, "reason": text}
    made = Generation(text, text, attempt=1, plans=plans, problems=(text,), **told)
    return GeneratedPlansDialog(made, 2, lambda plan: [text])


def assert_clean(app: ReasonerApp) -> None:
    strips = app.screen._compositor.render_strips()
    found = CONTROL.search("".join(each.text for strip in strips for each in strip if not each.control))
    assert found is None, repr(found)


async def test_no_pane_lets_hostile_text_through() -> None:
    app = ReasonerApp(guarded=False)
    async with app.run_test(size=(120, 40)) as pilot:
        for text in TEXTS:
            fill_with(app, text)
            await pilot.pause()
            assert_clean(app)
            for pane in (app.world, app.beliefs, app.intentions):
                await pilot.click(pane, offset=(6, 1), times=2)
                await pilot.press("y", "left")
            await pilot.resize_terminal(60, 30)
            await pilot.pause()
            assert_clean(app)
            await pilot.resize_terminal(120, 40)
            assert app.booms == 0


@pytest.mark.parametrize("text", MARKUP)
async def test_hostile_notices_are_harmless(text: str) -> None:
    app = ReasonerApp(guarded=False)
    async with app.run_test(size=(120, 40)) as pilot:
        app.world.show(WorldModel(notice=Notice(text, "error")))
        app.beliefs.show(ListModel(notice=Notice(text)))
        app.intentions.show(ListModel(notice=Notice(text, "loading")))
        await pilot.pause()
        assert_clean(app)


async def test_no_dialog_lets_hostile_text_act() -> None:
    app = ReasonerApp(guarded=False)
    async with app.run_test(size=(100, 40)) as pilot:
        for text in TEXTS:
            app.push_screen(plans_of(text))
            for key in ("tab", "end", "e"):
                await pilot.press(key)
                assert_clean(app)
            for y in range(4, 36, 8) if text in MARKUP else ():
                await pilot.click(offset=(12, y))
            assert app.booms == 0
            app.pop_screen()
            await pilot.pause()


async def test_panes_survive_any_size_and_any_change_of_it() -> None:
    app = ReasonerApp()
    sizes = SIZES * 2
    random.Random(7).shuffle(sizes)
    async with app.run_test(size=(80, 24)) as pilot:
        app.fill()
        for number, size in enumerate(sizes):
            await pilot.resize_terminal(*size)
            app.world.show(replace(WORLD, facts=(("moves", str(number)),)))
            await pilot.pause()
            lines = app.screen._compositor.render_strips()
            assert all(line.cell_length <= size[0] for line in lines)


@pytest.mark.parametrize("size", [(1, 1), (40, 10), (80, 24)])
async def test_dialogs_open_at_any_size(size: tuple[int, int]) -> None:
    app = ReasonerApp()
    async with app.run_test(size=size) as pilot:
        app.push_screen(GeneratedPlansDialog(GENERATED, 3, lambda plan: []))
        await pilot.press("e")
        await pilot.resize_terminal(60, 20)
        await pilot.resize_terminal(*size)
        await pilot.pause()
        app.pop_screen()
        await pilot.pause()


async def test_every_line_of_a_pane_has_the_panes_width() -> None:
    app = ReasonerApp()
    async with app.run_test(size=(120, 40)) as pilot:
        app.fill()
        await pilot.pause()
        for pane in (app.world, app.beliefs, app.intentions):
            for y in range(pane.content_size.height):
                assert pane.render_line(y).cell_length == pane.content_size.width, (pane, y)


async def test_signs_tell_apart_what_colours_do() -> None:
    app = ReasonerApp("pilothouse-ansi")
    async with app.run_test(size=(160, 45)) as pilot:
        app.fill()
        await pilot.pause()
        text = "\n".join(line.text for line in app.screen._compositor.render_strips())
        for sign in (" A→", " H", " R ", "▒ ▒", " • ", "→ object", "● visited", "@ home_is"):
            assert sign in text
        colors = {
            color
            for line in app.screen._compositor.render_strips()
            for segment in line
            if segment.style
            for color in (segment.style.color, segment.style.bgcolor)
        }
        assert all(color is None or color.is_default or color.is_system_defined for color in colors)


@pytest.mark.parametrize("name", COLOURED)
async def test_every_text_is_readable_on_its_ground(name: str) -> None:
    least = 7.0 if name == "pilothouse-contrast" else 4.5
    app = ReasonerApp(name)
    async with app.run_test(size=(160, 45)) as pilot:
        app.fill()
        app.intentions.focus()
        await pilot.pause()
        for pane in (app.world, app.beliefs, app.intentions):
            for y in range(pane.content_size.height):
                for segment in pane.render_line(y):
                    style = segment.style
                    if segment.text.strip(" │┃▌") and style and style.color and style.bgcolor:
                        assert contrast(style.color, style.bgcolor) >= least, (pane, segment)


@pytest.mark.parametrize(
    ("step", "styled"),
    [
        ('.print("at ", X)', {".print": "accent", '"at "': "success", "X": "warning"}),
        ("-+count(N - 1)", {"-+": "accent", "N": "warning"}),
        ("if (not at(home))", {"if": "accent", "not": "accent"}),
        ('"open', {}),
    ],
)
def test_a_step_of_a_program_has_its_parts_told_apart_and_its_text_stays(
    step: str, styled: dict[str, str]
) -> None:
    pieces = source_pieces(step, "text")
    assert "".join(piece.text for piece in pieces) == step
    assert {piece.text: piece.style for piece in pieces if piece.style != "text"} == styled
