from __future__ import annotations

from rich.color import Color
from test_rows import PaneApp, shown
from textual.geometry import Offset
from textual.selection import Selection

from widgets.panes.session import SandboxPane, SessionChunk, SessionModel, size_text
from widgets.terminal.ansi_stream import LINES_KEPT

SIZE = (60, 12)


def lines(first: int, count: int) -> list[SessionChunk]:
    return [SessionChunk("".join(f"line {number}\n" for number in range(first, first + count)))]


async def test_output_keeps_its_colours() -> None:
    pane = SandboxPane()
    async with PaneApp(pane).run_test(size=SIZE):
        pane.append([SessionChunk("plain \x1b[1;38;2;10;20;30mcoloured\x1b[0m\n")])

        segments = {segment.text: segment.style for segment in pane.render_line(0)}
        style = segments["coloured"]
        assert style is not None
        assert style.color == Color.from_rgb(10, 20, 30)
        assert style.bold


async def test_commands_and_errors_are_marked_with_a_sign() -> None:
    pane = SandboxPane()
    async with PaneApp(pane).run_test(size=SIZE):
        pane.append(
            [
                SessionChunk("./x $ make", "prompt"),
                SessionChunk("no end"),
                SessionChunk("careful\n", "err"),
                SessionChunk("./x $ ls", "prompt"),
            ]
        )

        assert [text[:12] for text in shown(pane)[:4]] == [
            "❯ ./x $ make",
            "no end",
            "┆ careful",
            "❯ ./x $ ls",
        ]


async def test_lines_of_background_jobs_are_led_by_their_name_and_never_glued() -> None:
    pane = SandboxPane()
    async with PaneApp(pane).run_test(size=SIZE):
        pane.append(
            [
                SessionChunk("half \x1b[31mred"),
                SessionChunk("python app.py", "prompt", "j1"),
                SessionChunk("one\nt", "out", "j1"),
                SessionChunk("other", "out", "j2"),
                SessionChunk("wo\n\x1b[32mgreen\r\x1b[Kblank", "out", "j1"),
                SessionChunk("exited 0", "note", "j1"),
                SessionChunk("\x1b[0m a line", "out"),
            ]
        )
        pane.show(SessionModel(exit_status=0, jobs=2))

        assert [text.rstrip() for text in shown(pane)[:9]] == [
            "half red",
            "❯ j1│ python app.py",
            "j1│ one",
            "j1│ t",
            "j2│ other",
            "j1│ wo",
            "j1│ blank",
            "· j1│ exited 0",
            "a line",
        ]
        assert pane.border_subtitle is not None
        assert "✓ exit 0 · 2 jobs" in str(pane.border_subtitle)


async def test_the_pane_follows_the_end_until_the_reader_scrolls_up() -> None:
    pane = SandboxPane()
    async with PaneApp(pane).run_test(size=SIZE) as pilot:
        pane.append(lines(0, 100))
        assert shown(pane)[-1] == "line 99"

        await pilot.press("pageup")
        place = shown(pane)
        pane.append(lines(100, 25))
        assert shown(pane) == place
        assert pane.unseen == 25

        await pilot.press("end")
        assert shown(pane)[-1] == "line 124"
        assert pane.following


async def test_a_reader_keeps_the_lines_while_the_ring_turns() -> None:
    pane = SandboxPane()
    async with PaneApp(pane).run_test(size=SIZE):
        pane.append(lines(0, LINES_KEPT))
        pane.scroll_lines_to(2_000)
        place = shown(pane)
        pane.append(lines(LINES_KEPT, 1_500))

        assert pane.line_total() == (1_500, LINES_KEPT + 1_500)
        assert shown(pane) == place


async def test_the_oldest_line_is_shown_when_the_readers_own_is_dropped() -> None:
    pane = SandboxPane()
    async with PaneApp(pane).run_test(size=SIZE):
        pane.append(lines(0, LINES_KEPT))
        pane.scroll_lines_to(100)
        pane.append(lines(LINES_KEPT, 1_000))

        assert shown(pane)[0] == "line 1000"


async def test_a_selection_stays_on_its_text_while_the_ring_turns() -> None:
    pane = SandboxPane()
    async with PaneApp(pane).run_test(size=SIZE):
        pane.append(lines(0, LINES_KEPT))
        selection = Selection(Offset(0, 4_000), Offset(4, 4_001))
        pane.append(lines(LINES_KEPT, 1_000))

        assert pane.get_selection(selection) == ("line 4000\nline", "\n")


async def test_progress_rewrites_the_last_line() -> None:
    pane = SandboxPane()
    async with PaneApp(pane).run_test(size=SIZE):
        for percent in range(0, 101, 10):
            pane.append([SessionChunk(f"\r{percent:3d}% done")])
        assert shown(pane)[0] == "100% done"
        pane.append([SessionChunk("\nready\n")])
        assert shown(pane)[:2] == ["100% done", "ready"]


async def test_long_lines_can_be_read_to_their_end() -> None:
    pane = SandboxPane()
    async with PaneApp(pane).run_test(size=(30, 12)) as pilot:
        pane.append([SessionChunk("start " + "日" * 30 + " the end\n")])
        assert shown(pane)[0].endswith("…")

        await pilot.press(*["right"] * 6)
        assert "the end" in shown(pane)[0]

        await pilot.press(*["left"] * 6)
        assert shown(pane)[0].startswith("start")


async def test_the_lower_border_tells_how_the_command_ended() -> None:
    pane = SandboxPane()
    async with PaneApp(pane).run_test(size=SIZE):
        pane.show(SessionModel(exit_status=2, duration_s=3.25, bytes_hidden=12_500))
        assert pane.border_subtitle == "✗ exit 2 · 3.2 s · 12.5 kB not shown"

        pane.show(SessionModel(running=True, held_by="operator"))
        assert pane.border_subtitle == "held by operator · ▶ running"
        assert pane.has_class("-held")


async def test_a_flood_is_taken_in_batches_with_one_repaint_each() -> None:
    pane = SandboxPane()
    async with PaneApp(pane).run_test(size=SIZE) as pilot:
        for batch in range(40):
            pane.append(lines(batch * 500, 500))
            await pilot.pause()

        assert pane.line_total() == (15_000, 20_000)
        assert shown(pane)[-1] == "line 19999"


async def test_clearing_forgets_the_session() -> None:
    pane = SandboxPane()
    async with PaneApp(pane).run_test(size=SIZE):
        pane.append(lines(0, 100))
        pane.clear()
        assert "What the agent runs" in shown(pane)[1]
        pane.append(lines(0, 2))
        assert shown(pane)[:2] == ["line 0", "line 1"]


def test_sizes_are_short() -> None:
    assert [size_text(count) for count in (0, 999, 12_500, 3_100_000)] == [
        "0 B",
        "999 B",
        "12.5 kB",
        "3.1 MB",
    ]
