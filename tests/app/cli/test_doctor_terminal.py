"""What `pilothouse doctor` says of the terminal, asked of one that is not like most."""

from __future__ import annotations

import json
import os
import pty
import sys
from contextlib import suppress
from typing import Any

from app.cli.doctor import _logs
from app.commands.command_runner import log_fault

REPORT = "import json; from app.cli.doctor import terminal_report; print(json.dumps(terminal_report()))"


def report(widths: dict[str, int], **environment: str) -> dict[str, Any]:
    """The report on a terminal that tells where its cursor is, with such widths of characters."""
    child, terminal = pty.fork()
    if child == 0:
        surroundings = {name: value for name, value in os.environ.items() if name not in ("TMUX", "STY")}
        os.execvpe(sys.executable, [sys.executable, "-c", REPORT], {**surroundings, **environment})
    printed = ""
    with suppress(OSError):  # the end
        while piece := os.read(terminal, 4096):
            printed += piece.decode()
            if printed.endswith("\x1b[6n"):
                glyph = printed.removesuffix("\x1b[6n").rpartition("\r")[2]
                os.write(terminal, f"\x1b[1;{widths.get(glyph, 1) + 1}R".encode())
    os.waitpid(child, 0)
    os.close(terminal)
    answer: dict[str, Any] = json.loads(printed.strip().splitlines()[-1].rpartition("\x1b[K")[2])
    return answer


def test_the_terminal_is_asked_how_wide_characters_are() -> None:
    good = report({"日": 2}, TERM="xterm-256color", LC_ALL="C.UTF-8")
    assert good["terminal"]["ok"]
    assert good["characters"] == {"ok": True, "reason": "utf-8, widths as expected"}
    wide = report({"日": 2, "●": 2}, TERM="xterm-256color", LC_ALL="C.UTF-8")
    assert not wide["characters"]["ok"]
    assert "● takes 2 cells" in wide["characters"]["reason"]


def test_keys_that_the_surroundings_take_are_named_with_what_to_do() -> None:
    taken = report({"日": 2}, TERM="screen", STY="1.tty", TERM_PROGRAM="vscode")["keys"]["reason"]
    for words in ("ctrl+a is screen's", "f1, ctrl+p", "flow control's"):
        assert words in taken


def test_a_dumb_terminal_is_told_what_to_set() -> None:
    dumb = report({}, TERM="dumb")["terminal"]
    assert (dumb["ok"], dumb["reason"]) == (
        False,
        "TERM is 'dumb': set it to what your terminal is, such as xterm-256color",
    )


def test_the_log_of_faults_holds_no_secret_and_the_doctor_names_it(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / ".pilothouse").mkdir()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-0123456789")
    said = log_fault(tmp_path, ValueError("refused: sk-0123456789"))
    written = (tmp_path / ".pilothouse" / "faults.log").read_text()
    assert "sk-0123456789" not in written
    assert "refused: [ANTHROPIC_API_KEY]" in written
    ident = said.partition("(error ")[2].partition(";")[0]
    assert _logs(tmp_path)["reason"] == f"newest faults: {ident}"
