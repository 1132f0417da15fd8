"""The cockpit in a real terminal, as a process of its own."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tmux_terminal import NEEDS_TMUX, PATIENCE_S, ROOT, Terminal

from tests.app.strangers import make, recipe, settings
from widgets.base.dialog import DEAF_S

pytestmark = NEEDS_TMUX


def first_flight(terminal: Terminal, workspace: Path) -> None:
    terminal.fly(f"--workspace {workspace} --mission first-flight")
    terminal.shows("mkdir first_flight", "PAUSED", "held next")


def test_a_stepped_session(terminal: Terminal, tmp_path: Path) -> None:
    first_flight(terminal, tmp_path / "ws")
    assert not terminal.in_order()
    terminal.keys("s")
    terminal.shows("✓ s1  mkdir first_flight", "▷ s2  cd first_flight")
    terminal.keys("s", "s", "s", "s")
    terminal.shows("✓ s5  run python -m unittest -v", "PAUSED")
    # Letters that follow the colon at once reach the bar, and are no keys of the cockpit.
    terminal.type(":! run echo x-s-d-in-one-burst")
    terminal.shows("❯ ! run echo x-s-d-in-one-burst")
    terminal.keys("Enter")
    terminal.shows("x-s-d-in-one-burst", "✓ run as you")
    terminal.tmux("resize-window", "-t", "t", "-x", "80", "-y", "24")
    terminal.shows("5 Session", "6 Mind", "✓ s5  run python -m unittest")
    terminal.keys("Escape")
    terminal.shows("✓ exit 0")  # nothing runs any more that leaving would ask about
    terminal.keys("C-q")
    assert terminal.ends() == 0
    assert terminal.in_order()


def test_a_strangers_folder_is_asked_about_before_it_is_opened(terminal: Terminal, tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    make(workspace, random.Random(2), settings, recipe)
    terminal.fly(f"--workspace {workspace}")
    terminal.shows(
        "Do you trust this folder?", "pilothouse.toml (new)", "approvals: allow", "y trust exactly"
    )
    time.sleep(2 * DEAF_S)  # what has just opened takes no key
    terminal.keys("q")
    assert terminal.ends() == 0
    assert not (workspace / ".pilothouse" / "journal.db").exists()
    terminal.fly(f"--workspace {workspace}")
    terminal.shows("Do you trust this folder?")
    time.sleep(2 * DEAF_S)  # what has just opened takes no key
    terminal.keys("Escape")
    terminal.shows("RESTRICTED", "run/pause", "nothing to do")
    terminal.keys("C-q")
    assert terminal.ends() == 0
    terminal.fly(f"--workspace {workspace}")
    terminal.shows("Do you trust this folder?")
    (changed,) = (workspace / "recipes").iterdir()
    changed.write_text(changed.read_text() + "# a moment later\n")
    for sees in ("look at it once more", "run/pause"):
        time.sleep(2 * DEAF_S)  # what has just opened takes no key
        terminal.keys("y")
        terminal.shows(sees)
    assert "RESTRICTED" not in terminal.screen
    terminal.keys("C-q")
    assert terminal.ends() == 0
    assert terminal.in_order()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_signal_leaves_the_terminal_in_order(
    terminal: Terminal, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    first_flight(terminal, tmp_path / "ws")
    os.kill(terminal.pid, number)
    assert terminal.ends() == code
    assert terminal.in_order()
    assert "Traceback" not in terminal.screen


def test_a_signal_while_a_command_runs_ends_the_command_too(terminal: Terminal, tmp_path: Path) -> None:
    sandbox = tmp_path / "ws" / "sandbox"
    sandbox.mkdir(parents=True)
    (sandbox / "wait_in_tmux.py").write_text(
        "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\ntime.sleep(100)\n"
    )
    terminal.fly(f"--workspace {tmp_path / 'ws'}")
    terminal.shows("PAUSED", "press : and type")
    terminal.keys(":")
    terminal.type("! run python wait_in_tmux.py")
    terminal.keys("Enter")
    terminal.until(lambda: (sandbox / "pid").exists() and (sandbox / "pid").read_text(), "the command")
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.ends() == 143
    assert terminal.in_order()
    # By name: the id that a jailed program sees of itself is its own.
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # another program may have ended meanwhile
            assert b"wait_in_tmux.py" not in path.read_bytes()


def test_a_terminal_that_goes_away_ends_the_cockpit_and_frees_the_workspace(
    terminal: Terminal, tmp_path: Path
) -> None:
    first_flight(terminal, tmp_path / "ws")
    pid = terminal.pid
    terminal.tmux("kill-server")
    end = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end, "the cockpit outlived its terminal"
        time.sleep(0.05)
    terminal.fly(f"--workspace {tmp_path / 'ws'}")
    terminal.shows("mkdir first_flight", "PAUSED", "held next")


def test_ctrl_c_pauses_and_twice_leaves(terminal: Terminal, tmp_path: Path) -> None:
    first_flight(terminal, tmp_path / "ws")
    terminal.keys("Space")
    terminal.shows("RUNNING")
    terminal.keys("C-c")
    terminal.shows("PAUSED", "ctrl+c again")
    terminal.keys("C-c")
    terminal.until(lambda: terminal.exit_file.exists() or "Leave while" in terminal.screen, "leaving")
    if not terminal.exit_file.exists():
        terminal.keys("y")
    assert terminal.ends() == 0
    assert terminal.in_order()


@pytest.mark.parametrize(
    ("redirect", "term"), [("2>/dev/null", ""), (">/dev/null", ""), ("</dev/null", ""), ("", "dumb")]
)
def test_without_a_whole_terminal_it_refuses_politely(
    terminal: Terminal, tmp_path: Path, redirect: str, term: str
) -> None:
    terminal.fly(f"--workspace {tmp_path / 'ws'}", redirect=redirect, term=term)
    assert terminal.ends() == 2
    assert terminal.in_order()
    if not redirect.startswith("2"):
        assert "the cockpit needs a terminal" in terminal.screen
    assert not (tmp_path / "ws" / ".pilothouse").exists()


def test_a_workspace_that_is_open_elsewhere_is_operated_there(terminal: Terminal, tmp_path: Path) -> None:
    first_flight(terminal, tmp_path / "ws")
    second = Terminal(tmp_path / "second")
    second.home.mkdir()
    second.environment["PILOTHOUSE_HOME"] = str(terminal.home)  # of the same user
    try:
        second.fly(f"--workspace {tmp_path / 'ws'}")
        second.tmux("resize-window", "-t", "t", "-x", "160")  # where the whole of it has room
        second.shows("attached to cockpit", "mkdir first_flight")
        second.keys("C-q")
        assert second.ends() == 0
        assert second.in_order()
    finally:
        second.close()


def test_what_a_command_prints_does_not_reach_the_terminal(terminal: Terminal, tmp_path: Path) -> None:
    sandbox = tmp_path / "ws" / "sandbox"
    sandbox.mkdir(parents=True)
    (sandbox / "evil.py").write_text(
        "print('\\x1b]0;OWNED\\x07\\x1b[2J\\x1b[?1049l\\x1b]52;c;T1dORUQ=\\x07\\x9b2Jdone-evil')\n"
    )
    terminal.fly(f"--workspace {tmp_path / 'ws'}")
    terminal.shows("press : and type")
    terminal.tmux("set", "-g", "set-clipboard", "on")
    terminal.keys(":")
    terminal.type("! run python evil.py")
    terminal.keys("Enter")
    terminal.shows("done-evil", "exit 0", "2 Plan")
    assert "OWNED" not in terminal.flag("pane_title")
    assert terminal.flag("alternate_on") == "1"
    assert "OWNED" not in terminal.tmux("list-buffers")


FLY_TWICE = """
import sys, time
from pathlib import Path
from tmux_terminal import Terminal
terminal = Terminal(Path(sys.argv[1]))
terminal.fly("--version")
first = terminal.socket
terminal.fly("--version")
print(first, terminal.socket, flush=True)
time.sleep(1000)
"""


def test_no_server_outlives_the_tests_that_started_it(tmp_path: Path) -> None:
    words = [sys.executable, "-c", FLY_TWICE, str(tmp_path)]
    with subprocess.Popen(words, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout
        sockets = tests.stdout.readline().split()
        assert [_answers(socket) for socket in sockets] == [True, True]
        tests.kill()
    end = time.monotonic() + PATIENCE_S
    while any(_answers(socket) for socket in sockets):
        assert time.monotonic() < end, "a server outlived its tests"
        time.sleep(0.05)


def _answers(socket: str) -> bool:
    return not subprocess.run(["tmux", "-L", socket, "has-session"], capture_output=True).returncode


def test_a_terminal_that_ends_without_a_signal_is_seen(tmp_path: Path) -> None:
    """As one that is not the session's own: reading it gives its end again and again."""
    master, slave = os.openpty()
    cockpit = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "--workspace", tmp_path / "ws"],
        stdin=slave, stdout=slave, stderr=slave, start_new_session=True, cwd=ROOT,
        env={**os.environ, "TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(slave)
    seen = b""
    while b"pilothouse" not in seen:
        seen += os.read(master, 4096)
    os.close(master)
    try:
        assert cockpit.wait(PATIENCE_S) == 128 + signal.SIGHUP
    finally:
        cockpit.kill()
