from __future__ import annotations

from dataclasses import replace

import pytest
from reasoner_samples import WORLD, ReasonerApp
from test_rows import PaneApp, shown

from widgets.base.line_pane import LinePane
from widgets.panes.world import WorldModel, WorldPane, WorldSign


def texts(pane: WorldPane) -> list[str]:
    return [pane.render_line(y).text[2:].rstrip(" │┃") for y in range(pane.content_size.height)]


async def drawn(model: WorldModel, size: tuple[int, int]) -> list[str]:
    pane = WorldPane()
    async with PaneApp(pane).run_test(size=size) as pilot:
        pane.show(model)
        await pilot.pause()
        return [pane.render_line(y).text[2:].rstrip() for y in range(pane.content_size.height)]


async def test_with_room_the_world_is_a_grid_of_boxes_with_the_facts_beside_it() -> None:
    lines = await drawn(WORLD, (70, 16))

    assert lines[:11] == [
        "┌───┬───┬───┬───┬───┐   moves    12",
        "│   │ R │   │   │   │   cycles   57",
        "├───┼───┼───┼───┼───┤   action   move(east)",
        "│   │ • │ • │ • │   │   here     nothing",
        "├───┼───┼───┼───┼───┤",
        "│   │   │ • │ A→│   │   A robot",
        "├───┼───┼───┼───┼───┤   H home",
        "│   │▒▒▒│▒▒▒│▒▒▒│   │   R rock",
        "├───┼───┼───┼───┼───┤   ▒ obstacle",
        "│   │   │   │   │ H │   • was here",
        "└───┴───┴───┴───┴───┘   → last move",
    ]


async def test_a_narrow_pane_has_the_facts_below_the_grid() -> None:
    lines = await drawn(WORLD, (32, 24))

    assert lines[0] == "┌───┬───┬───┬───┬───┐"
    assert lines[11:] == [
        "",
        "moves    12",
        "cycles   57",
        "action   move(east)",
        "here     nothing",
        "A robot   H home   R rock",
        "▒ obstacle   • was here",
        "→ last move",
        "",
        "",
        "",
    ]


async def test_a_low_pane_shows_the_compact_form() -> None:
    lines = await drawn(WORLD, (70, 13))
    assert lines[0].startswith("┌───┬")

    lines = await drawn(replace(WORLD, legend=WORLD.legend[:1]), (70, 10))
    assert [line[:10] for line in lines[:5]] == [
        " . R . . .",
        " . • • • .",
        " . . • A→.",
        " . # # # .",
        " . . . . H",
    ]


@pytest.mark.parametrize("size", [(20, 6), (12, 24), (6, 4), (3, 3)])
async def test_where_nothing_fits_the_world_is_cut_and_scrolls(size: tuple[int, int]) -> None:
    pane = WorldPane()
    async with PaneApp(pane).run_test(size=size) as pilot:
        pane.show(WORLD)
        await pilot.press("G", "home")
        assert pane.top == 0


@pytest.mark.parametrize(
    ("moved", "cell"),
    [
        ("north", " A↑"),
        ("south", " A↓"),
        ("east", " A→"),
        ("west", "←A "),
        ("north_west", "↖A "),
        ("south_east", " A↘"),
        ("here", " A "),
        ("", " A "),
        ("upwards", " A "),
    ],
)
async def test_an_arrow_shows_where_the_last_move_led(moved: str, cell: str) -> None:
    lines = await drawn(replace(WORLD, moved=moved), (70, 16))

    assert f"│{cell}│" in lines[5]
    assert ("last move" in "\n".join(lines)) == (cell != " A ")


async def test_the_trail_never_covers_what_is_in_a_cell_and_its_last_cells_stand_out() -> None:
    pane = WorldPane()
    trail = ((1, 0), (1, 3), (4, 4), (0, 0), (0, 1), (0, 2), (9, 9))
    async with PaneApp(pane).run_test(size=(70, 16)) as pilot:
        pane.show(replace(WORLD, trail=trail))
        await pilot.pause()
        styles = {y: next(piece.style for piece in pane.line(y) if piece.text == "•") for y in (1, 3, 5)}

        assert texts(pane)[1].startswith("│ • │ R │")
        assert "│▒▒▒│▒▒▒│▒▒▒│" in texts(pane)[7]
        assert "│ H │" in texts(pane)[9]
        assert styles == {1: "dim", 3: "accent", 5: "accent"}


async def test_a_ragged_picture_and_wide_signs_keep_the_grid_straight() -> None:
    model = WorldModel(lines=(". 日 é", "", ". \u202eA . ."), legend=(WorldSign("A", "robot", "agent"),))
    lines = await drawn(model, (60, 12))

    assert [line[:17] for line in lines[:7]] == [
        "┌───┬───┬───┬───┐",
        "│   │ ? │ é │   │",
        "├───┼───┼───┼───┤",
        "│   │   │   │   │",
        "├───┼───┼───┼───┤",
        "│   │ A │   │   │",
        "└───┴───┴───┴───┘",
    ]


async def test_a_move_repaints_only_the_lines_that_changed_and_needs_no_layout() -> None:
    pane = WorldPane()
    async with PaneApp(pane).run_test(size=(70, 16)) as pilot:
        pane.show(WORLD)
        await pilot.pause()
        painted: list[int] = []
        pane.render_line = lambda y: painted.append(y) or LinePane.render_line(pane, y)  # type: ignore[method-assign]
        layouts = pane.screen._layout_updates

        pane.show(replace(WORLD))
        await pilot.pause()
        assert painted == []

        moved = (*WORLD.lines[:2], ". . . . A", *WORLD.lines[3:])
        pane.show(replace(WORLD, lines=moved, trail=(*WORLD.trail, (3, 2))))
        await pilot.pause()
        # The trail's oldest cell that stood out is among them.
        assert set(painted) <= {3, 4, 5}
        assert 5 in painted
        assert pane.screen._layout_updates == layouts


async def test_the_title_is_the_worlds_and_an_empty_pane_says_what_will_be_there() -> None:
    app = ReasonerApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        assert "The world the agent acts in" in "\n".join(shown(app.world))

        app.world.show(replace(WORLD, title="[b]explorer[/]"))
        await pilot.pause()
        assert app.world.border_title == r"5 World · \[b]explorer\[/]"
        assert "5 World · [b]explorer[/]" in app.screen._compositor.render_strips()[0].text
