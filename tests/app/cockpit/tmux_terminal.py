"""The cockpit in a real terminal, as a process of its own: keys in through tmux, the screen out of it.

Each flight has a server of tmux, and each server a warden: a shell that waits for the end of a pipe whose
other end only the tests' process has. So server and cockpit end however that process ends: by a failed test,
an interrupt, a kill.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.benchmarks.cockpit import held_by
from tests.patience import PATIENCE_S as PATIENCE_S

ROOT = Path(__file__).parents[3]
COMMAND = f"{sys.executable} -m app.cli"
# $1: the server's socket; $2: the file with the cockpit's process id. A cockpit that does not end with its
# terminal fails a test of its own; none may be left behind here.
WARDEN = """
read -r _
tmux -L "$1" kill-server
read -r pid < "$2" && grep -q app.cli "/proc/$pid/cmdline" &&
    kill -9 $(cat "/proc/$pid/task/$pid/children") "$pid"
"""
NEEDS_TMUX = [
    pytest.mark.tmux,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed: NOTHING here was tested"),
]


class Terminal:
    """A terminal of tmux with a shell script in it, which tells the exit code when the cockpit ends."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment: dict[str, str] = {}
        """Variables that the cockpit is to have besides."""
        self.socket = ""
        self.exit_file = home / "exit"
        self._pid_file = home / "pid"
        self._wardens: list[subprocess.Popen[bytes]] = []

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self.socket, *words],
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        )
        return done.stdout

    def fly(self, arguments: str, *, redirect: str = "", term: str = "") -> None:
        """Start the cockpit; the window outlives it, so that the state of the terminal can be read."""
        # A server that was told to end still answers for a moment, so each flight has its own.
        self.socket = f"pilothouse-{uuid.uuid4().hex[:12]}"
        self.exit_file.unlink(missing_ok=True)
        self._pid_file = self.home / f"{self.socket}.pid"
        self._wardens.append(
            subprocess.Popen(
                ["sh", "-c", WARDEN, "warden", self.socket, str(self._pid_file)],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )  # fmt: skip
        script = self.home / "fly.sh"
        # exec keeps the process id that was written, and the shell around it lives on.
        script.write_text(
            f"cd {ROOT}\nunset COLUMNS LINES\n{'export TERM=' + term if term else ''}\n"
            f"sh -c 'echo $$ > {self._pid_file}; exec {COMMAND} {arguments}' {redirect}\n"
            f"echo $? > {self.exit_file}\nexec sleep 1000\n"
        )
        given = {"PILOTHOUSE_HOME": str(self.home), "TEXTUAL_ANIMATIONS": "none", **self.environment}
        environment = [word for name, value in given.items() for word in ("-e", f"{name}={value}")]
        self.tmux(
            "-f", "/dev/null", "new-session", "-d", "-s", "t", "-x", "120", "-y", "35", *environment,
            f"sh {script}",
        )  # fmt: skip

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", "t", *keys)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-t", "t", "-l", text)

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "t")

    def flag(self, name: str) -> str:
        """A format variable of the pane, such as `alternate_on`."""
        return self.tmux("display-message", "-p", "-t", "t", f"#{{{name}}}").strip()

    @property
    def pid(self) -> int:
        """The cockpit's process, for which the one that was started holds the terminal."""
        started = int(self._pid_file.read_text())
        return held_by(started) or started

    def until(
        self, holds: Callable[[], object], what: str, patience: float = PATIENCE_S, *, every: float = 0.05
    ) -> None:
        end = time.monotonic() + patience
        while not holds():
            assert time.monotonic() < end, f"never came true: {what}\n{self.screen}"
            time.sleep(every)

    def shows(self, *words: str) -> None:
        self.until(lambda: all(word in self.screen for word in words), f"on the screen: {words}")

    def closes(self, *words: str) -> None:
        """Escape from what has opened by itself, which is deaf at first, until the screen holds all words."""

        def closed() -> bool:
            self.keys("Escape")
            time.sleep(0.4)
            return all(word in self.screen for word in words)

        self.until(closed, f"on the screen behind escape: {words}")

    def ends(self) -> int:
        """Wait for the end of the cockpit; answers its exit code."""
        self.until(lambda: self.exit_file.exists() and self.exit_file.read_text().strip(), "the end")
        return int(self.exit_file.read_text())

    def in_order(self) -> bool:
        """Whether the terminal is as it was: cursor visible, main screen, no mouse reporting."""
        return (
            self.flag("alternate_on") == "0"
            and self.flag("cursor_flag") == "1"
            and self.flag("mouse_any_flag") == "0"
            and self.flag("mouse_sgr_flag") == "0"
        )

    def close(self) -> None:
        """End every flight."""
        while self._wardens:
            self._wardens.pop().communicate(timeout=PATIENCE_S)
