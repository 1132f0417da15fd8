from __future__ import annotations

from dataclasses import replace

import pytest
from reasoner_samples import WORLD, ReasonerApp
from test_rows import PaneApp, shown

from widgets.panes.world import WorldModel, WorldPane, WorldSign


def texts(pane: WorldPane) -> list[str]:
    return [pane.render_line(y).text[2:].rstrip(" │┃") for y in range(pane.content_size.height)]


async def drawn(model: WorldModel, size: tuple[int, int]) -> list[str]:
    pane = WorldPane()
    async with PaneApp(pane).run_test(size=size) as pilot:
        pane.show(model)
        await pilot.pause()
        return [pane.render_line(y).text[2:].rstrip() for y in range(pane.content_size.height)]


async def test_the_world_is_a_grid_of_signs_with_the_facts_and_a_legend_below_it() -> None:
    lines = await drawn(WORLD, (70, 14))

    assert [line.rstrip() for line in lines[:11]] == [
        ". R . . .",
        ". • • • .",
        ". . • A→.",
        ". ▒ ▒ ▒ .",
        ". . . . H",
        "",
        "moves    12",
        "cycles   57",
        "action   move(east)",
        "here     nothing",
        "A robot   H home   R rock   ▒ obstacle   • was here   → last move",
    ]


@pytest.mark.parametrize("size", [(20, 6), (12, 24), (6, 4), (3, 3)])
async def test_where_nothing_fits_the_world_is_cut_and_scrolls(size: tuple[int, int]) -> None:
    pane = WorldPane()
    async with PaneApp(pane).run_test(size=size) as pilot:
        pane.show(WORLD)
        await pilot.press("G", "home")
        assert pane.top == 0


async def test_an_arrow_shows_where_the_last_move_led() -> None:
    ways = {"north": "↑", "west": "←", "south_east": "↘", "here": "", "": "", "upwards": ""}
    for moved, arrow in ways.items():
        lines = await drawn(replace(WORLD, moved=moved), (70, 16))
        assert lines[2].startswith(f". . • A{arrow or ' '}.")
        assert ("last move" in "\n".join(lines)) == bool(arrow)


async def test_the_trail_never_covers_what_is_in_a_cell_and_its_last_cells_stand_out() -> None:
    pane = WorldPane()
    trail = ((1, 0), (1, 3), (4, 4), (2, 0), (0, 1), (0, 2), (9, 9))
    async with PaneApp(pane).run_test(size=(70, 16)) as pilot:
        pane.show(replace(WORLD, trail=trail))
        await pilot.pause()
        styles = {y: next(piece.style for piece in pane.line(y) if piece.text == "•") for y in (0, 1, 2)}

        assert texts(pane)[0].startswith(". R •")
        assert texts(pane)[3].startswith(". ▒ ▒ ▒ .")
        assert texts(pane)[4].endswith("H")
        assert styles == {0: "dim", 1: "accent", 2: "accent"}


async def test_a_ragged_picture_and_wide_signs_keep_the_grid_straight() -> None:
    model = WorldModel(lines=(". 日 é", "", ". \u202eA . ."), legend=(WorldSign("A", "robot", "agent"),))
    lines = await drawn(model, (60, 12))

    assert [line.rstrip() for line in lines[:3]] == [". ? é", "", ". A . ."]


async def test_the_title_is_the_worlds_and_an_empty_pane_says_what_will_be_there() -> None:
    app = ReasonerApp()
    async with app.run_test(size=(100, 30)) as pilot:
        app.world.loaded()
        await pilot.pause()
        assert "The world the agent acts in" in "\n".join(shown(app.world))

        app.world.show(replace(WORLD, title="[b]explorer[/]"))
        await pilot.pause()
        assert app.world.border_title == r"5 World · \[b]explorer\[/]"
        assert "5 World · [b]explorer[/]" in app.screen._compositor.render_strips()[0].text
