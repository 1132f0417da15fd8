from __future__ import annotations

from dataclasses import replace

import pytest
from cockpit_samples import STATUS, Cockpit

from widgets.base.text_layout import plain, width_of
from widgets.panes.status_bar import MODE_MARKS, Mode, StatusModel, count_text, line_of


def test_a_wide_line_shows_everything() -> None:
    line = plain(line_of(STATUS, 160))

    for part in (
        "pilothouse", "explorer-1", "‖ PAUSED", "before acting", "tick 42", "procedural", "12.4k tok $0.08",
        "ctx ▓▓░░░ 41%", "bg 2/10", "✗ 1 error", "KERNEL",
    ):  # fmt: skip
        assert part in line


def test_what_has_no_known_price_is_not_called_free() -> None:
    assert "$0.08+?" in plain(line_of(replace(STATUS, unpriced=True), 160))
    assert "tok $?" in plain(line_of(replace(STATUS, unpriced=True, cost_usd=0.0), 160))


@pytest.mark.parametrize("width", range(1, 161))
def test_no_width_is_exceeded_and_the_mode_is_the_last_to_go(width: int) -> None:
    line = line_of(STATUS, width)

    assert width_of(line) <= width
    if width >= 12:
        assert "‖ PAUSED" in plain(line)


def test_at_eighty_columns_what_matters_for_safety_is_there() -> None:
    unconfined = replace(STATUS, sandbox="PATHS · programs NOT CONFINED", sandbox_alarm="UNCONFINED")
    line = plain(line_of(replace(unconfined, journal="disk full"), 80))

    for part in ("PAUSED", "explorer-1", "✗ journal", "✗1", "UNCONFINED"):
        assert part in line
    for width in range(30, 161):
        assert "! " in plain(line_of(unconfined, width))
        assert "CONFINED" in plain(line_of(unconfined, width))


@pytest.mark.parametrize("mode", list(MODE_MARKS))
async def test_every_mode_has_its_word_its_sign_and_a_style_of_its_own(mode: Mode) -> None:
    app = Cockpit()
    async with app.run_test(size=(120, 10)) as pilot:
        looks = set()
        for each in MODE_MARKS:
            app.status.show(StatusModel(mode=each))  # type: ignore[arg-type]
            await pilot.pause()
            segment = next(s for s in app.status.render_line(0) if each in s.text)
            assert MODE_MARKS[each][0] in segment.text
            assert segment.style is not None
            looks.add((segment.style.bgcolor, segment.style.underline, segment.style.reverse))

        assert len(looks) == len(MODE_MARKS)


async def test_only_a_changed_model_is_painted() -> None:
    app = Cockpit()
    async with app.run_test(size=(120, 10)) as pilot:
        app.status.show(STATUS)
        await pilot.pause()
        painted: list[int] = []
        draw = app.status.render_line
        app.status.render_line = lambda y: painted.append(y) or draw(y)  # type: ignore[method-assign]

        app.status.show(replace(STATUS))
        await pilot.pause()
        assert painted == []

        app.status.show(replace(STATUS, tick=43))
        await pilot.pause()
        assert painted


def test_counts_are_short() -> None:
    assert [count_text(count) for count in (0, 999, 12_400, 3_100_000)] == ["0", "999", "12.4k", "3.1M"]


@pytest.mark.parametrize("width", [80, 100, 160])
def test_how_much_waits_is_seen_at_every_width_and_nothing_of_it_where_nothing_does(width: int) -> None:
    full = replace(STATUS, agent="explorer-with-a-long-name", job="campaign c3 judges candidate 4 of 9")

    assert "✉ 3" in plain(line_of(replace(full, waiting=3, journal="disk full"), width))
    assert "✉" not in plain(line_of(full, width))


async def test_a_click_on_what_waits_asks_for_the_inbox() -> None:
    class Listening(Cockpit):
        asked = 0

        def action_inbox(self) -> None:
            self.asked += 1

    app = Listening()
    async with app.run_test(size=(80, 10)) as pilot:
        model = replace(STATUS, waiting=12)
        app.status.show(model)
        await pilot.pause()
        at = plain(line_of(model, 80)).index("✉ 12")
        for column, asked in ((at - 1, 0), (at, 1), (at + 3, 2), (at + 4, 2)):
            await pilot.click(app.status, offset=(column, 0))
            await pilot.pause()
            assert app.asked == asked


@pytest.mark.parametrize(
    ("cell", "action"),
    [
        ("explorer-1", "fleet"),
        ("$", "budgets"),
        ("ctx", "context"),
        ("bg", "meta"),
        ("✗", "pane('errors')"),
        ("tick", ""),
    ],
)
async def test_a_click_on_a_cell_shows_in_full_what_it_counts(cell: str, action: str) -> None:
    app = Cockpit()
    async with app.run_test(size=(200, 10)) as pilot:
        app.status.show(STATUS)
        await pilot.pause()
        assert app.status.part_at(plain(line_of(STATUS, 200)).index(cell)) == action
