"""The pane in an app: keys, pastes, mouse, scrolling, drawing, and a real child on a real terminal."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection

from engine.sandbox.kernel import set_to_default
from tests.patience import PATIENCE_S
from widgets.base.dialog import ConfirmDialog
from widgets.base.line_pane import CopyRequested, Requested
from widgets.terminal.pane import TerminalPane

SIZE = (82, 26)
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Shell(App[None]):
    """An app around the pane with bindings of its own, which the pane must keep from the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "steal", priority=True),
        Binding("f2,tab,escape", "steal"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.pane = TerminalPane(self)
        self.typed = b""
        self.answered = b""
        self.sizes: list[tuple[int, int]] = []
        self.handed_back = 0
        self.stolen = 0
        self.copied: list[str] = []
        self.to_child: Callable[[bytes], object] = lambda data: None

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_mount(self) -> None:
        self.pane.focus()

    def action_steal(self) -> None:
        self.stolen += 1

    def write(self, data: bytes) -> None:
        self.typed += data
        self.to_child(data)

    def answer(self, data: bytes) -> None:
        self.answered += data
        self.to_child(data)

    def resize(self, rows: int, columns: int) -> None:
        self.sizes.append((columns, rows))

    def on_requested(self, event: Requested) -> None:
        self.handed_back += event.what == "hand_back"

    def on_copy_requested(self, event: CopyRequested) -> None:
        self.copied.append(event.text)

    async def put(self, data: bytes | str) -> None:
        self.pane.put(data.encode() if isinstance(data, str) else data)
        await self.pane.settled()


def shown(app: Shell) -> list[str]:
    return [app.pane.render_line(y).text.rstrip() for y in range(app.pane.content_size.height)]


def rendered(app: Shell) -> str:
    """All text that would go to the terminal, without the sequences Textual itself adds."""
    strips = app.screen._compositor.render_strips()
    return "".join(segment.text for strip in strips for segment in strip if not segment.control)


def numbered(count: int, first: int = 0) -> bytes:
    return b"".join(b"line %d\r\n" % number for number in range(first, first + count))


async def until(pilot: Pilot[None], seen: Callable[[], bool]) -> None:
    """Wait for something to be on the screen, for at most half a minute."""
    async with asyncio.timeout(PATIENCE_S):
        while not seen():
            await pilot.pause(0.01)


# Keys


async def test_every_key_but_one_is_the_childs() -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press(
            "a", "tab", "shift+tab", "escape", "ctrl+c", "ctrl+q", "ctrl+p", "up", "f2", "f10", "enter"
        )
        await pilot.press("ctrl+z", "space", "backspace", "é")

        assert app.typed == (b"a\t\x1b[Z\x1b\x03\x11\x10\x1b[A\x1bOQ\x1b[21~\r\x1a \x7f" + "é".encode())
        assert app.stolen == 0
        assert app.is_running
        assert app.focused is app.pane


async def test_one_key_hands_the_shell_back() -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+right_square_bracket")

        assert app.handed_back == 1
        assert app.typed == b""


async def test_cursor_keys_follow_what_the_child_asked() -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        await app.put("\x1b[?1h")
        await pilot.press("up", "ctrl+up")
        assert app.typed == b"\x1bOA\x1b[1;5A"


# Pastes


async def test_a_paste_goes_in_brackets_when_the_child_asked_for_them() -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        await app.put("\x1b[?2004h")
        app.pane.post_message(events.Paste("one\ntwo\x1b[201~\n"))
        await pilot.pause()
        assert app.typed == b"\x1b[200~one\rtwo[201~\r\x1b[201~"


async def test_a_paste_of_one_line_is_typed() -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        app.pane.post_message(events.Paste("ls -l"))
        await pilot.pause()
        assert app.typed == b"ls -l"


@pytest.mark.parametrize(
    ("key", "sent"), [("y", b"rm a\rrm b\r"), ("n", b""), ("escape", b""), ("enter", b"")]
)
async def test_a_paste_whose_lines_would_run_asks_first(key: str, sent: bytes) -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        app.pane.post_message(events.Paste("rm a\nrm b\n"))
        await pilot.pause()
        assert isinstance(app.screen, ConfirmDialog)
        assert "Paste 2 lines into the shell?" in rendered(app)
        assert app.typed == b""

        await pilot.press(key)
        assert app.typed == sent


# Size and words


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ((82, 26), "YOU HOLD THE SHELL — ctrl+] hands it back"),
        ((40, 10), "YOU HOLD THE SHELL — ctrl+] ends"),
        ((26, 6), "YOUR SHELL — ctrl+]"),
    ],
)
async def test_the_border_says_who_holds_the_shell(size: tuple[int, int], words: str) -> None:
    app = Shell()
    async with app.run_test(size=size):
        assert words in rendered(app)
        assert "╔" in rendered(app)


async def test_the_child_is_told_its_size_at_first_and_when_it_changes() -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        assert app.sizes == [(80, 24)]
        await pilot.resize_terminal(42, 12)
        await pilot.pause()
        assert app.sizes == [(80, 24), (40, 10)]
        await app.put(b"x" * 45)
        assert shown(app)[:2] == ["x" * 40, "xxxxx"]


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 3), (300, 100)])
async def test_no_size_breaks_the_pane(size: tuple[int, int]) -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        await app.put(numbered(60) + "日本語\x1b[?1049h\x1b[5;5Hx".encode())
        await pilot.resize_terminal(*size)
        await pilot.pause()
        await app.put("\x1b[?1049l日本語")
        await pilot.resize_terminal(*SIZE)
        await pilot.pause()
        assert app.is_running


async def test_the_pane_says_when_keys_go_elsewhere() -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        assert app.pane.border_subtitle is None
        app.set_focus(None)
        await pilot.pause()
        assert "keys go elsewhere" in str(app.pane.border_subtitle)


# Drawing


async def test_wide_characters_stay_in_their_columns() -> None:
    app = Shell()
    async with app.run_test(size=SIZE):
        await app.put("日本語|👩‍👩‍👧|e\u0301|\x1b[2;1H......|..|.|")
        assert shown(app)[0] == "日本語|👩‍👩‍👧|e\u0301|"
        assert app.pane.render_line(0).cell_length == 80


async def test_the_alternate_screen_comes_and_goes() -> None:
    app = Shell()
    async with app.run_test(size=SIZE):
        await app.put("$ vi\r\n\x1b[?1049h\x1b[H~ editor")
        assert shown(app)[0] == "~ editor"
        await app.put("\x1b[?1049l$ ")
        assert shown(app)[:2] == ["$ vi", "$"]


def cursor_places(app: Shell, y: int) -> list[int]:
    places, at = [], 0
    for segment in app.pane.render_line(y):
        if segment.style and segment.style.reverse:
            places.append(at)
        at += segment.cell_length
    return places


async def test_the_cursor_is_drawn_where_it_is() -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        await app.put("ab")
        assert cursor_places(app, 0) == [2]
        await app.put("\x1b[1;2H")
        assert cursor_places(app, 0) == [1]
        await app.put("\x1b[?25l")
        assert cursor_places(app, 0) == []
        await app.put("\x1b[?25h\x1b[2;1H\x1b[7mxyz\x1b[0m\x1b[2;2H")
        assert cursor_places(app, 1) == [0, 2]  # reversed twice is plain again
        await app.put("\x1b[3;1H日本\x1b[3;3H")
        assert [s.text for s in app.pane.render_line(2) if s.style and s.style.reverse] == ["本"]
        app.set_focus(None)
        await pilot.pause()
        assert cursor_places(app, 2) == []


HOSTILE = [
    "[/x]",
    "[@click=app.steal]x[/]",
    "[/]",
    "$text {0} %s",
    "\x1b]52;c;aGVsbG8=\x1b\\",
    "\x1b]0;title\x07",
    "\x1b]8;;http://localhost/\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]9;note\x07",
    "\x1b]777;notify;a;b\x07",
    "\x1b]1337;File=:AAAA\x07",
    "\x1bP+q544e\x1b\\",
    "\x1b[2J",
    "\x9b2J",
    "\x1b",
    "\x1b[31",
    "\x1b[?1049h",
    "\x1b[?1000h\x1b[?1006h",
    "\x1b[?2004h",
    "\x07" * 5_000,
    "\x00\x08\x0b\x0c\x0e\x7f\x85",
    "abc\rdef",
    "safe\u202egnp.exe",
    "\u2066isolated",
    "x" * 10_000,
    "👩‍👩‍👧‍👦 family",
    "日本語の文字列" * 20,
    "e\u0301\u0327 combining",
    "two\nlines\n\n",
    "\t tab",
    "\U000e0041tag",
    "\x1b[201~",
    "\x1b_Ga=T;AAAA\x1b\\",
    "\x1b[99;99H\x1b#8",
    "\x1b[6n\x1b[c\x1b[21t",
    "\x1bc",
    "",
]


async def test_nothing_of_the_childs_reaches_the_terminal() -> None:
    app = Shell()
    async with app.run_test(size=(82, 26)) as pilot:
        for at, text in enumerate(HOSTILE):
            await pilot.resize_terminal(*((42, 12) if at % 2 else (82, 26)))
            await app.put(text)
            await app.put(b"\xff\xfe" + text.encode("utf-8", "replace") + b"\x9d0;x")
            await pilot.pause()
            assert not CONTROL.search(rendered(app))
            await pilot.click(app.pane, offset=(2, 1))
            await pilot.pause()

            assert not CONTROL.search(rendered(app))
            assert app.stolen == 0
            assert app.title == "Shell"
            assert app.typed == b""
            await app.put("\x1b\\\x1bc")


async def test_answers_go_to_the_child_in_fixed_words_and_few() -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        await app.put("ab\x1b[6n\x1b[c\x1b]0;evil\x07\x1b[21t\x1bP$qevil\x1b\\")
        await until(pilot, lambda: app.answered == b"\x1b[1;3R\x1b[?62;22c")

        await app.put(b"\x1b[6n" * 50_000)
        assert app.answered.count(b"R") < 2_000
        assert app.typed == b""


# Scrolling and selecting


async def test_the_wheel_and_the_keyboard_show_what_scrolled_away() -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        await app.put(numbered(100))
        assert shown(app)[0] == "line 77"

        await pilot.press("shift+pageup")
        assert shown(app)[0] == "line 54"
        assert "23 lines back" in str(app.pane.border_subtitle)
        await app.put(numbered(10, 100))
        assert shown(app)[0] == "line 54"

        app.pane._forward_event(wheel(up=True, app=app))
        await pilot.pause()
        assert shown(app)[0] == "line 51"
        await pilot.press("shift+pagedown")
        assert not app.pane.at_end
        await pilot.press("x")
        assert app.pane.at_end
        assert app.typed == b"x"
        assert shown(app)[-2] == "line 109"


def wheel(*, up: bool, app: Shell) -> events.MouseEvent:
    kind = events.MouseScrollUp if up else events.MouseScrollDown
    return kind(app.pane, 3, 3, 0, 0, 0, False, False, False, screen_x=3, screen_y=3)


async def test_a_reader_whose_lines_are_dropped_sees_the_oldest_kept() -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        await app.put(numbered(100))
        await pilot.press(*["shift+pageup"] * 9)
        assert shown(app)[0] == "line 0"
        await app.put(numbered(6_000, 100))
        await until(pilot, lambda: shown(app)[0] == "line 1077")


async def test_the_wheel_presses_arrows_on_the_alternate_screen() -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        await app.put("\x1b[?1049h")
        app.pane._forward_event(wheel(up=True, app=app))
        await pilot.pause()
        assert app.typed == b"\x1b[A" * 3


async def test_selected_text_is_copied() -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        await app.put("first line\r\nsecond line\r\n")
        await pilot.mouse_down(app.pane, offset=(7, 1))
        await pilot.hover(app.pane, offset=(7, 2))
        await pilot.mouse_up(app.pane, offset=(7, 2))
        await pilot.pause()
        assert app.copied == ["line\nsecond "]


async def test_a_selection_joins_wrapped_rows_and_reaches_into_the_scrollback() -> None:
    app = Shell()
    async with app.run_test(size=SIZE):
        await app.put(b"x" * 100 + b"\r\n" + numbered(50))
        picked = app.pane.get_selection(Selection(Offset(0, 0), Offset(6, 2)))
        assert picked == ("x" * 100 + "\nline 0", "\n")


# Floods


async def test_ten_megabytes_leave_the_loop_free_and_the_end_right() -> None:
    app = Shell()
    async with app.run_test(size=SIZE):
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count_turns())
        piece = b"y\r\n" * 21_845
        for _ in range(160):
            app.pane.put(piece)
            await asyncio.sleep(0)
        await app.put("the end")
        counting.cancel()

        assert shown(app)[-2:] == ["y", "the end"]
        assert app.pane._emulator.screen_top > 100_000
        assert turns > 50


async def test_what_comes_between_two_repaints_is_painted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        await app.pane._rested.wait()
        painted: list[int] = []
        rests: list[Callable[[], None]] = []
        real = app.pane._repaint
        monkeypatch.setattr(app.pane, "_repaint", lambda: (painted.append(1), real()))
        monkeypatch.setattr(app.pane, "set_timer", lambda seconds, callback: rests.append(callback))

        await app.put("first ")
        for number in range(300):
            app.pane.put(f"{number} ".encode())
        await pilot.pause()
        assert len(painted) == 1
        assert shown(app)[0] == "first"

        rests[0]()
        await app.pane.settled()
        assert len(painted) == 2
        assert "298 299" in "".join(shown(app))


# A real child on a real terminal


class Child:
    """A program on a pseudo-terminal, wired to the pane as the engine will wire it."""

    def __init__(self, app: Shell, *argv: str) -> None:
        self.app = app
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                set_to_default()  # a test run from a script may have been told to ignore ctrl+c
                os.execvpe(
                    argv[0],
                    argv,
                    {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "PS1": "$ ", "LC_ALL": "C.UTF-8"},
                )
            finally:
                os._exit(127)
        self.resize(80, 24)
        app.to_child = lambda data: os.write(self.fd, data)
        self.reading = asyncio.create_task(self._read())

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def _read(self) -> None:
        while True:
            try:
                data = await asyncio.to_thread(os.read, self.fd, 65_536)
            except OSError:
                return
            if not data:
                return
            self.app.pane.put(data)
            await asyncio.sleep(0)

    async def end(self) -> None:
        with suppress(OSError):  # what runs in the foreground would keep the terminal open
            group = os.tcgetpgrp(self.fd)  # 0 when nothing does, which would mean this program's own
            if group > 1:
                os.killpg(group, signal.SIGKILL)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        await self.reading
        os.close(self.fd)


async def test_a_shell_on_a_real_terminal() -> None:
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        child = Child(app, "/bin/sh")
        try:
            await until(pilot, lambda: "$" in shown(app)[0])
            await pilot.press(*"stty size", "enter")
            await until(pilot, lambda: "24 80" in shown(app))
            await pilot.press(*"cat", "enter", *"hello", "enter")
            await until(pilot, lambda: shown(app).count("hello") == 2)
            await pilot.press("ctrl+c")
            await until(pilot, lambda: any(line.startswith("^C") for line in shown(app)))

            child.resize(40, 10)
            await pilot.press(*"stty size", "enter")
            await until(pilot, lambda: "10 40" in shown(app))
            await pilot.press(*"yes | head -c 1000000; echo at the end", "enter")
            await until(pilot, lambda: "at the end" in shown(app)[-3:])
        finally:
            await child.end()


@pytest.mark.skipif(shutil.which("vi") is None, reason="vi is not installed")
async def test_an_editor_on_a_real_terminal(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("vi") / "notes"
    path.write_text("one\ntwo\n日本語\n", encoding="utf-8")
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        child = Child(app, "vi", "-u", "NONE", str(path))
        try:
            await until(pilot, lambda: shown(app)[:4] == ["one", "two", "日本語", "~"])
            await pilot.press("down", "o", *"put in", "escape")
            await until(pilot, lambda: shown(app)[:4] == ["one", "two", "put in", "日本語"])
            await pilot.press(*":wq", "enter")
            await until(pilot, lambda: not app.pane._emulator.alternate_screen)
            await until(pilot, lambda: path.read_text(encoding="utf-8").splitlines()[2:3] == ["put in"])
        finally:
            await child.end()


@pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
async def test_a_pager_on_a_real_terminal(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("less") / "numbers"
    path.write_bytes(numbered(200))
    app = Shell()
    async with app.run_test(size=SIZE) as pilot:
        child = Child(app, "less", str(path))
        try:
            await until(pilot, lambda: shown(app)[22] == "line 22")
            await pilot.press("G")
            await until(pilot, lambda: shown(app)[22] == "line 199")
            await pilot.press("pageup")
            await until(pilot, lambda: shown(app)[22] == "line 176")
            app.pane._forward_event(wheel(up=True, app=app))
            await until(pilot, lambda: shown(app)[22] == "line 173")
            await pilot.press("q")
        finally:
            await child.end()
