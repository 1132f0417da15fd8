"""Panes: focus by number, zoom, tabs, copying, the mouse."""

from __future__ import annotations

from pathlib import Path

import pytest
from flight import Flight, cockpit

from app.cockpit.controllers.layout import PANES


async def write_and_see(flight: Flight, text: str) -> None:
    (flight.engine.root / "seen.txt").write_text(text)
    await flight.type("! read seen.txt")
    await flight.until(lambda: text.splitlines()[0] in flight.session_text, "the file")
    await flight.press("escape")


async def test_the_number_keys_focus_the_panes(flight: Flight) -> None:
    for name, (key, _title) in PANES.items():
        await flight.press(key)
        await flight.until(lambda name=name: flight.app.controllers.layout.focused_pane() == name, name)


async def test_z_gives_the_focused_pane_the_screen_and_back(flight: Flight) -> None:
    await flight.press("6")
    await flight.until(lambda: flight.app.controllers.layout.focused_pane() == "mind")
    await flight.press("z")
    await flight.until(lambda: flight.app.query_one("#mind").size.width > 110, "the wide pane")
    assert not flight.plan.is_on_screen
    await flight.press("5")
    await flight.until(lambda: flight.session.size.width > 110, "another pane alone")
    await flight.press("z")
    await flight.until(lambda: flight.plan.is_on_screen and flight.session.is_on_screen, "all panes")
    assert flight.app.controllers.layout.focused_pane() == "session"


@pytest.mark.parametrize("size", [(80, 24), (40, 10)])
async def test_tabs_choose_a_pane_with_the_mouse(flight: Flight, size: tuple[int, int]) -> None:
    await flight.pilot.resize_terminal(*size)
    tabs = flight.app.query_one("#tabs")
    await flight.until(lambda: tabs.is_on_screen and tabs.region.right <= size[0], "tabs")
    await flight.pilot.pause()  # they shorten their names when they have become narrow
    line = next(line for line in flight.text.splitlines() if "1" in line and "4" in line)
    await flight.pilot.click("#tabs", offset=(line.index("4"), 0))
    await flight.until(lambda: flight.app.controllers.layout.focused_pane() == "errors", "the errors")
    assert flight.app.query_one("#errors").is_on_screen


async def test_a_pane_keeps_the_focus_when_the_window_becomes_narrow(flight: Flight) -> None:
    await flight.press("4")
    await flight.until(lambda: flight.app.controllers.layout.focused_pane() == "errors")
    for size in ((80, 24), (30, 10), (120, 35)):
        await flight.pilot.resize_terminal(*size)
        await flight.pilot.pause()
        assert flight.app.query_one("#errors").is_on_screen, size
        assert flight.app.controllers.layout.focused_pane() == "errors", size


async def test_y_copies_the_row_and_capital_y_the_pane(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight") as flight:
        await flight.select("s2")
        await flight.press("y")
        await flight.says("copied the row")
        assert flight.app.clipboard == "cd first_flight"
        await flight.press("Y")
        await flight.says("copied the pane")
        assert "mkdir first_flight" in flight.app.clipboard
        assert "python -m unittest" in flight.app.clipboard


async def test_text_selected_with_the_mouse_is_copied_by_ctrl_c(flight: Flight) -> None:
    await write_and_see(flight, "abcdefghij\n")
    lines = flight.session_text.splitlines()
    row = next(at for at, line in enumerate(lines) if line.startswith("abcdefghij"))
    place = {"widget": "#session", "offset": (4, 1 + row)}
    await flight.pilot.mouse_down(**place)
    await flight.pilot.hover("#session", offset=(9, 1 + row))
    await flight.pilot.mouse_up("#session", offset=(9, 1 + row))
    await flight.press("ctrl+c")
    await flight.until(lambda: flight.app.clipboard, "the clipboard")
    assert flight.app.clipboard in "abcdefghij"
    assert len(flight.app.clipboard) >= 4


async def test_a_click_on_a_step_selects_it_and_a_double_click_edits_it(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight") as flight:
        await flight.pilot.click(flight.plan.steps, offset=(5, 2))
        assert flight.plan.selected == "s3"
        await flight.shows("step     write navigation.py")
        await flight.pilot.click(flight.plan.steps, offset=(5, 2), times=2)
        await flight.shows("Edit s3")


async def test_the_plan_keeps_the_cursor_where_the_operator_put_it(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight") as flight:
        await flight.select("s7")
        await flight.press("s", "s")
        await flight.until(lambda: flight.state.actions == 2)
        assert flight.plan.selected == "s7"


async def test_choosing_an_error_goes_to_the_step_that_failed(waiting: Path) -> None:
    async with cockpit(waiting) as flight:
        await flight.press("4", "home", "enter")
        await flight.until(lambda: flight.app.controllers.layout.focused_pane() == "plan", "the plan")
        assert flight.plan.selected == flight.state.intervention.step


async def test_empty_panes_say_what_will_appear_there(flight: Flight) -> None:
    await flight.shows("The plan will appear here", "will appear here. Press s", "No errors")


async def test_at_100_columns_words_stay_whole_and_z_names_the_way_back(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", size=(100, 30)) as flight:
        await flight.type("tour")
        await flight.shows("tour 1/10", "4 Errors", "5 Sandbox")
        assert "here." in flight.text.partition("4 Errors")[2].partition("5 Sandbox")[0]
        await flight.goal("create a directory called abcdirectory")
        await flight.shows("● g1 create ", " a directory ", " abcdirectory ")
        await flight.press("z")
        await flight.says("z shows the other panes again")
        await flight.press("z")
        await flight.says("all panes are shown")


async def test_output_in_a_hidden_pane_is_there_when_it_is_shown(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", size=(80, 24)) as flight:
        await flight.goal("run 'echo hidden-output'")
        await flight.press("4", "s")
        await flight.until(lambda: flight.state.actions == 1, "the action")
        assert not flight.session.is_on_screen
        await flight.press("5")
        await flight.until(lambda: "hidden-output" in flight.session_text.splitlines(), "the output")


async def test_the_narrow_layout_shows_what_the_operators_own_call_answers(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", size=(80, 24)) as flight:
        await flight.press("4")
        await flight.type("! run echo called-by-hand")
        await flight.until(lambda: flight.session.is_on_screen, "the session")
        await flight.shows("called-by-hand", "exit 0")
