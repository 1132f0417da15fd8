"""Every size of terminal: it starts, every pane can be reached, nothing breaks."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from flight import Flight, cockpit

from app.cockpit.controllers.layout import PANES
from app.commands.settings import Settings

SIZES = [(160, 45), (100, 30), (80, 24), (40, 10), (20, 5), (1, 1)]


@pytest.mark.parametrize("size", SIZES)
async def test_it_starts_and_every_pane_can_be_reached(tmp_path: Path, size: tuple[int, int]) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight", size=size) as flight:
        for name, (key, _title) in PANES.items():
            await flight.press(key)
            await flight.until(lambda name=name: flight.app.controllers.layout.focused_pane() == name, name)
            if size > (1, 1):
                await flight.until(lambda name=name: flight.app.query_one(f"#{name}").is_on_screen, name)
                assert flight.app.query_one(f"#{name}").region.height >= 1
        lines = flight.app.screen._compositor.render_strips()
        assert len(lines) == size[1]
        assert all(line.cell_length == size[0] for line in lines)
        await flight.press("s")
        await flight.until(lambda: flight.state.actions == 1, "a step at this size")


@pytest.mark.parametrize("size", [(60, 20)])
async def test_the_narrow_layout_shows_tabs_and_keeps_the_plan(tmp_path: Path, size: tuple[int, int]) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight", size=size) as flight:
        for key in "13456":
            await flight.press(key)
            await flight.shows("1 Goals", "3 Memory", "4 Errors", "5 Session", "6 Mind", "mkdir first_flight")


@pytest.mark.parametrize("size", [(40, 10), (20, 5)])
async def test_a_tiny_terminal_begins_with_the_plan(tmp_path: Path, size: tuple[int, int]) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight", size=size) as flight:
        await flight.shows("2 Plan", "▷ s1  mk")


def widths(flight: Flight) -> set[int]:
    """How wide the lines of the screen are."""
    return {line.cell_length for line in flight.app.screen._compositor.render_strips()}


async def test_a_storm_of_resizes_breaks_nothing(tmp_path: Path) -> None:
    sizes = [*SIZES, (200, 60), (1, 50), (200, 1), (5, 2)]
    random.Random(7).shuffle(sizes)
    async with cockpit(tmp_path / "ws", mission="first-flight") as flight:
        await flight.press("space")
        for size in sizes:
            await flight.pilot.resize_terminal(*size)
            await flight.until(lambda size=size: widths(flight) == {size[0]}, f"{size}", every=0.05)  # type: ignore[misc]
        await flight.pilot.resize_terminal(120, 35)
        await flight.shows("2 Plan", "6 Mind", "write")


@pytest.mark.parametrize("size", [(80, 24), (40, 10), (20, 5)])
async def test_dialogs_open_at_small_sizes(waiting: Path, size: tuple[int, int]) -> None:
    async with cockpit(waiting, size=size) as flight:
        for key in ("i", "e", "question_mark"):
            await flight.press(key)
            await flight.until(lambda: len(flight.app.screen_stack) == 2, key)
            await flight.pilot.pause()
            await flight.press("escape")
            await flight.no_dialog()


async def test_every_mode_has_a_word_without_colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with cockpit(tmp_path / "ws", mission="first-flight") as flight:
        await flight.shows("PAUSED", "held next")
        colours = {
            segment.style.color.triplet
            for strip in flight.app.screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None and segment.style.color is not None and segment.style.color.triplet
        }
        assert all(red == green == blue for red, green, blue in colours)


async def test_the_sixteen_colour_theme_uses_the_terminals_own_colours(tmp_path: Path) -> None:
    settings = Settings(theme="ansi-dark", home=tmp_path / "home")
    async with cockpit(tmp_path / "ws", mission="first-flight", settings=settings) as flight:
        await flight.shows("PAUSED", "mkdir first_flight")
        await flight.press("s")
        await flight.until(lambda: flight.state.actions == 1)
