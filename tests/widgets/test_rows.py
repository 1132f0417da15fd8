from __future__ import annotations

from collections.abc import Iterable

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.selection import Selection

from widgets.base.line_pane import CopyRequested, LinePane, Notice
from widgets.base.rows import Row
from widgets.base.text_layout import Piece, plain


class Rows(LinePane):
    EMPTY = "Rows will appear here. Press a to add one."

    def __init__(self) -> None:
        super().__init__()
        self.highlighted: list[str] = []
        self.chosen: list[str] = []

    def row_highlighted(self, key: str) -> None:
        self.highlighted.append(key)

    def row_chosen(self, key: str) -> None:
        self.chosen.append(key)


class Tail(Rows):
    FOLLOWS = True
    STARTS_ON_FIRST = False


class PaneApp(App[None]):
    def __init__(self, pane: LinePane) -> None:
        super().__init__()
        self.pane = pane
        self.copied: list[tuple[str, str]] = []

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_mount(self) -> None:
        self.pane.focus()

    def on_copy_requested(self, event: CopyRequested) -> None:
        self.copied.append((event.text, event.what))


def rows(keys: Iterable[object], text: str = "row") -> list[Row]:
    return [Row(str(key), (Piece(f"{text} {key}"),)) for key in keys]


def shown(pane: LinePane) -> list[str]:
    return [pane.render_line(y).text.rstrip("│┃ ").strip("▌ ") for y in range(pane.content_size.height)]


SIZE = (30, 12)  # ten lines within the border


async def test_the_cursor_stays_on_its_row_when_rows_come_before_it() -> None:
    pane = Rows()
    async with PaneApp(pane).run_test(size=SIZE) as pilot:
        pane.set_rows(rows(range(5)))
        await pilot.press("down", "j")
        pane.set_rows(rows(["new", *range(5)]))
        await pilot.pause()

        assert pane.cursor == "2"
        assert pane.render_line(3).text.startswith("▌ row 2")
        assert pane.highlighted == ["1", "2"]


async def test_the_cursor_goes_to_the_nearest_row_when_its_own_is_gone() -> None:
    pane = Rows()
    async with PaneApp(pane).run_test(size=SIZE) as pilot:
        pane.set_rows(rows(range(5)))
        await pilot.press("down", "down")
        pane.set_rows(rows([0, 1, 4]))

        assert pane.cursor == "4"
        pane.set_rows(rows([0, 1]))
        assert pane.cursor == "1"


async def test_the_reader_stays_at_the_same_row_when_rows_come_before_it() -> None:
    pane = Rows()
    async with PaneApp(pane).run_test(size=SIZE) as pilot:
        pane.set_rows(rows(range(100)))
        pane.scroll_lines_to(40)
        pane.set_rows(rows(["a", "b", "c", *range(100)]))
        await pilot.pause()

        assert shown(pane)[0] == "row 40"


async def test_the_reader_stays_at_the_same_row_when_the_pane_is_resized() -> None:
    pane = Rows()
    async with PaneApp(pane).run_test(size=SIZE) as pilot:
        long = "words " * 12
        pane.set_rows([Row(str(n), (Piece(f"{n} {long}"),), most=9) for n in range(30)])
        pane.scroll_lines_to(60)
        before = pane.list.place(pane.top)[0]
        await pilot.resize_terminal(60, 20)
        await pilot.pause()

        assert pane.list.place(pane.top)[0] == before


async def test_a_pane_at_the_end_follows_and_a_reader_is_left_alone() -> None:
    pane = Tail()
    async with PaneApp(pane).run_test(size=SIZE) as pilot:
        pane.set_rows(rows(range(50)), added=50)
        assert shown(pane)[-1] == "row 49"

        await pilot.press("pageup", "pageup")
        place = shown(pane)
        pane.set_rows(rows(range(60)), added=10)
        await pilot.pause()
        assert shown(pane) == place
        assert pane.unseen == 10
        assert pane.border_subtitle is not None
        assert "10 new ↓" in pane.border_subtitle

        await pilot.press("G")
        assert shown(pane)[-1] == "row 59"
        assert pane.unseen == 0
        assert not pane.border_subtitle
        pane.set_rows(rows(range(61)), added=1)
        assert shown(pane)[-1] == "row 60"


async def test_a_reader_keeps_the_place_when_old_rows_leave_the_ring() -> None:
    pane = Tail()
    async with PaneApp(pane).run_test(size=SIZE):
        pane.set_rows(rows(range(100)), added=100)
        pane.scroll_lines_to(50)
        pane.set_rows(rows(range(20, 120)), added=20)

        assert shown(pane)[0] == "row 50"


@pytest.mark.parametrize(
    ("keys", "cursor"),
    [
        (["end"], "49"),
        (["G"], "49"),
        (["G", "home"], "0"),
        (["pagedown"], "9"),
        (["pagedown", "pageup"], "0"),
        (["up"], "0"),
        (["j", "j", "k"], "1"),
    ],
)
async def test_keys_move_the_cursor(keys: list[str], cursor: str) -> None:
    pane = Rows()
    async with PaneApp(pane).run_test(size=SIZE) as pilot:
        pane.set_rows(rows(range(50)))
        await pilot.press(*keys)

        assert pane.cursor == cursor
        assert any(line == f"row {cursor}" for line in shown(pane))


async def test_the_cursor_skips_headings() -> None:
    pane = Rows()
    async with PaneApp(pane).run_test(size=SIZE) as pilot:
        pane.set_rows([Row("head", (Piece("head"),), selectable=False), *rows(range(3))])
        await pilot.press("up")

        assert pane.cursor == "0"


async def test_a_click_selects_and_a_double_click_chooses() -> None:
    pane = Rows()
    async with PaneApp(pane).run_test(size=SIZE) as pilot:
        pane.set_rows(rows(range(5)))
        await pilot.click(pane, offset=(6, 4))
        assert pane.cursor == "3"
        assert pane.chosen == []

        await pilot.click(pane, offset=(6, 3), times=2)
        assert pane.chosen == ["2"]


async def test_the_wheel_scrolls_and_leaves_the_cursor() -> None:
    pane = Rows()
    async with PaneApp(pane).run_test(size=SIZE) as pilot:
        pane.set_rows(rows(range(50)))
        await pilot._post_mouse_events([_wheel()], pane, offset=(3, 3))
        await pilot.pause()

        assert pane.top == 3
        assert pane.cursor == "0"


def _wheel() -> type:
    from textual import events

    return events.MouseScrollDown


async def test_copy_keys_hand_over_the_row_and_the_pane() -> None:
    pane = Rows()
    app = PaneApp(pane)
    async with app.run_test(size=SIZE) as pilot:
        pane.set_rows([*rows(range(2)), Row("x", (Piece("shown"),), copy="the whole text")])
        await pilot.press("y", "G", "y", "Y")
        await pilot.pause()

        assert app.copied == [("row 0", "row"), ("the whole text", "row"), ("row 0\nrow 1\nshown", "pane")]


async def test_a_mouse_selection_gives_the_full_text_of_cut_lines() -> None:
    pane = Rows()
    async with PaneApp(pane).run_test(size=SIZE) as pilot:
        pane.set_rows([Row("a", (Piece("start " + "x" * 60),)), Row("b", (Piece("end"),))])
        await pilot.pause()
        assert "…" in pane.render_line(0).text

        text = pane.get_selection(Selection(Offset(6, 0), Offset(2, 1)))
        assert text == ("x" * 60 + "\nen", "\n")


async def test_dragging_selects_text_on_the_screen() -> None:
    pane = Rows()
    async with PaneApp(pane).run_test(size=SIZE) as pilot:
        pane.set_rows(rows(range(5)))
        await pilot.pause()
        await pilot.mouse_down(pane, offset=(3, 2))
        await pilot.hover(pane, offset=(5, 2))
        await pilot.hover(pane, offset=(7, 2))
        await pilot.mouse_up(pane, offset=(7, 2))

        assert pane.screen.get_selected_text() == "row 1"


async def test_an_unchanged_list_is_not_painted_again() -> None:
    pane = Rows()
    async with PaneApp(pane).run_test(size=SIZE) as pilot:
        pane.set_rows(rows(range(5)))
        await pilot.pause()
        painted: list[int] = []
        pane.render_line = lambda y: painted.append(y) or LinePane.render_line(pane, y)  # type: ignore[method-assign]

        pane.set_rows(rows(range(5)))
        await pilot.pause()
        assert painted == []

        changed = rows(range(5))
        changed[3] = Row("3", (Piece("other"),))
        pane.set_rows(changed)
        await pilot.pause()
        assert set(painted) == {3}


async def test_an_update_needs_no_layout() -> None:
    pane = Rows()
    async with PaneApp(pane).run_test(size=SIZE) as pilot:
        pane.set_rows(rows(range(5)))
        await pilot.pause()
        before = pane._layout_updates, pane.screen._layout_updates

        for size in (50, 500, 3):
            pane.set_rows(rows(range(size)), added=size)
            await pilot.pause()

        assert (pane._layout_updates, pane.screen._layout_updates) == before


async def test_an_empty_pane_says_what_will_be_there_and_which_key_makes_it() -> None:
    pane = Rows()
    async with PaneApp(pane).run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        assert "Press a to add one." in "\n".join(shown(pane))

        pane.set_notice(Notice("Reading the journal", "loading"))
        assert "… Reading the journal" in "\n".join(shown(pane))

        pane.set_notice(Notice("The journal cannot be read", "error"))
        assert "✗ The journal cannot be read" in "\n".join(shown(pane))

        pane.set_notice(None)
        pane.set_rows(rows(range(2)))
        assert shown(pane)[:2] == ["row 0", "row 1"]


async def test_wrapped_rows_show_all_their_text() -> None:
    pane = Rows()
    async with PaneApp(pane).run_test(size=(24, 12)) as pilot:
        pane.set_rows([Row("a", (Piece("12:00 "), Piece("a thought of many words")), indent=6, most=5)])
        await pilot.pause()

        assert [plain(pane.line(n)) for n in range(pane.line_total()[1])] == [
            "12:00 a thought of",
            "      many words",
        ]


async def test_a_list_that_begins_with_a_heading_begins_with_it() -> None:
    pane = LinePane()
    app = PaneApp(pane)
    async with app.run_test(size=(40, 6)) as pilot:
        rows = [Row("head", (Piece("heading"),), selectable=False)]
        rows += [Row(f"r{number}", (Piece(f"row {number}"),)) for number in range(20)]
        pane.set_rows(rows)
        await pilot.pause()
        assert pane.top == 0


async def test_rows_that_went_and_came_are_laid_out_as_if_all_were_new() -> None:
    pane, afresh = Tail(), Tail()
    async with PaneApp(pane).run_test(size=SIZE), PaneApp(afresh).run_test(size=SIZE):
        ring = rows(range(40), "a row of several words that takes two lines")
        for begin, end in ((0, 20), (0, 25), (5, 30), (5, 30), (29, 40), (12, 20)):
            pane.set_rows(ring[begin:end])
            afresh.set_rows([])
            afresh.set_rows(ring[begin:end])
            assert (pane.list.lines, pane.list._starts) == (afresh.list.lines, afresh.list._starts)
            assert list(pane.list._laid_out) == list(afresh.list._laid_out)
