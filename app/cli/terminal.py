"""The operator's terminal: its colours, widths of characters, clipboard, and keys that it takes."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from rich.cells import cell_len
from rich.console import Console

GLYPHS = "●▶▷✓✗»‖★◆▓░…─日"
"""Characters that panes are drawn with, and one that is two cells wide."""


def terminal_report() -> dict[str, dict[str, Any]]:
    """The terminal, its characters, clipboard and keys, as `pilothouse doctor` tells them."""
    term, size = os.environ.get("TERM", ""), shutil.get_terminal_size()
    here = sys.stdin.isatty() and sys.stdout.isatty()
    usable = here and term not in ("", "dumb")
    reason = "" if here else "standard input or output is no terminal"
    if here and not usable:
        reason = f"TERM is '{term}': set it to what your terminal is, such as xterm-256color"
    terminal = {
        "ok": usable,
        "term": term,
        "program": os.environ.get("TERM_PROGRAM", "") or "unknown",
        "colours": "none (NO_COLOR)" if "NO_COLOR" in os.environ else Console().color_system or "none",
        "columns": size.columns,
        "rows": size.lines,
        "tmux": "TMUX" in os.environ,
    }
    setting = _tmux("-sv", "set-clipboard")
    dropped = f"tmux drops what y copies (set-clipboard is {setting}): tmux set -s set-clipboard on"
    copies = setting in ("", "on")
    wrong = _wrong_characters() if usable else ""
    return {
        "terminal": {**terminal, "reason": reason},
        "characters": {"ok": not wrong, "reason": wrong or f"{sys.stdout.encoding}, widths as expected"},
        "clipboard": {"ok": copies, "reason": "OSC 52, where the terminal allows it" if copies else dropped},
        "keys": {"ok": True, "reason": "; ".join(_taken_keys()) or "none is known to be taken"},
    }


def _wrong_characters() -> str:
    """Which characters are not as wide as panes take them to be; the terminal is asked."""
    if (encoding := sys.stdout.encoding.lower().replace("-", "")) != "utf8":
        return f"{encoding} cannot show them: set LANG to a UTF-8 one such as C.UTF-8"
    widths = _measured(GLYPHS)
    wrong = [f"{glyph} takes {cells}" for glyph, cells in widths.items() if cells != cell_len(glyph)]
    return f"{', '.join(wrong)} cells: set ambiguous characters to narrow" if wrong else ""


def _measured(glyphs: str) -> dict[str, int]:
    """How many cells the terminal gives each character; nothing where it does not answer."""
    widths: dict[str, int] = {}
    with suppress(OSError, termios.error):
        file = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
        before = termios.tcgetattr(file)
        try:
            tty.setcbreak(file)
            for glyph in glyphs:
                os.write(file, f"\r{glyph}\x1b[6n".encode())
                answer = b""
                # Half a second for an answer; what comes without an end is none.
                while len(answer) < 64 and answer[-1:] != b"R" and select.select([file], [], [], 0.5)[0]:
                    answer += os.read(file, 32) or b"R"
                match = re.search(rb"\x1b\[\d+;(\d+)R", answer)
                if match is None:
                    break
                widths[glyph] = int(match[1]) - 1
            os.write(file, b"\r\x1b[K")
        finally:
            termios.tcsetattr(file, termios.TCSAFLUSH, before)
            os.close(file)
    return widths


def _tmux(*words: str) -> str:
    """What tmux answers; empty where it does not."""
    if "TMUX" not in os.environ:
        return ""
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.check_output(["tmux", "show-options", *words], text=True, timeout=2).strip()
    return ""


def _taken_keys() -> Iterator[str]:
    """Keys of the cockpit that the surroundings keep for themselves, with what to do."""
    for name in ("prefix", "prefix2"):
        if (key := _tmux("-gv", name).lower().replace("c-", "ctrl+")) not in ("", "none"):
            yield f"{key} is tmux's (twice sends it)"
    if "STY" in os.environ:
        yield "ctrl+a is screen's (ctrl+a a sends it)"
    if os.environ.get("TERM_PROGRAM") == "vscode":
        yield "f1, ctrl+p, ctrl+q may be the editor's (? shows all keys, : is the command bar, :quit leaves)"
    elif "VTE_VERSION" in os.environ:
        yield "f1 and f10 may be the window's (turn its menu keys off; : help also opens help)"
    with suppress(termios.error, OSError):
        if sys.stdin.isatty() and termios.tcgetattr(0)[0] & termios.IXON:
            yield "ctrl+s and ctrl+q are flow control's in the shell (the cockpit turns it off)"
