"""What the program is started with does not matter: it and its programs set signals for themselves."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.forking import PATIENCE_S

_HOSTILE = """
import os, signal, sys
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execv(sys.executable, [sys.executable, "-m", "app.cli.main", *sys.argv[1:]])
"""
"""Starts the program with all signals ignored and blocked."""
_SHOWN = """
import json, signal
ignored = [n for n in signal.valid_signals() if signal.getsignal(n) is signal.SIG_IGN]
ignored = [n.name for n in ignored if n not in (signal.SIGPIPE, signal.SIGXFSZ)]  # Python ignores these
print(json.dumps([ignored, [int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, [])]]))
"""


def _start(workspace: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _HOSTILE, "--workspace", str(workspace), *words],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_jailed_program_starts_with_default_dispositions_and_blocks_nothing(tmp_path: Path) -> None:
    (tmp_path / "sandbox").mkdir()
    (tmp_path / "sandbox" / "show.py").write_text(_SHOWN)
    out, err = _start(tmp_path, "coder", "-c", "run python show.py").communicate(timeout=PATIENCE_S)
    answer = json.loads(out)
    assert answer["status"] == "SUCCESS", (answer, err)
    assert json.loads(answer["stdout"]) == [[], []]


def test_ctrl_c_cancels_also_where_it_was_ignored_and_blocked(tmp_path: Path) -> None:
    (tmp_path / "sandbox").mkdir()
    begun = tmp_path / "sandbox" / "begun"
    (tmp_path / "sandbox" / "slow.py").write_text("import time\nopen('begun', 'w')\ntime.sleep(1000)\n")
    running = _start(tmp_path, "run", "run slow.py", "--json")
    until = time.monotonic() + PATIENCE_S
    while not begun.exists():
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130
