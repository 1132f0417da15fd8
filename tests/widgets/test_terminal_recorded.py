"""The cockpit's own terminal, recorded while a child does its worst in the pane (sandbox §6 case 77)."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
from pathlib import Path

HERE = Path(__file__).parent
WORST = (
    b"\x1b]52;c;UFdORUQ=\x07\x1b]0;PWNED\x07\x1b]2;PWNED\x1b\\\x1b]8;;http://PWNED/\x07\x1b]8;;\x07\x1b]9;PWNED\x07"
    b"\x1b]777;notify;PWNED;b\x07\x1b]1337;File=name=PWNED:AAAA\x07\x1bPqPWNED\x1b\\\x1bP+q544e\x1b\\\x1b_GPWNED\x1b\\"
    b"\x1b^PWNED\x1b\\\x1bXPWNED\x1b\\\xc2\x9d0;\xc2\x9c\xc2\x9b6n\x1b[21t\x1b[8;9;9t\x1b[6n\x1b[c\x1b[5i\x1b[?1005h"
    b"\x1b[?1049l\x1b[?1000h\x1b[201~\x1b[?2004l\x1b[?1004h\x1bc\x1b[?47h" + b"\x07" * 1_000
)
END = b"the end"
PROGRAM = """
import asyncio, signal, sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from test_terminal_pane import Shell


class Recorded(Shell):
    async def on_ready(self):
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self.exit)
        await self.put(bytes.fromhex(sys.argv[3]))

Recorded().run()
"""


def recorded(data: bytes) -> bytes:
    """All that an app with the pane sends to its terminal while the child writes `data`, and then its end."""
    pid, master = pty.fork()
    if pid == 0:
        try:
            os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
            arguments = [str(HERE), str(HERE.parent.parent), (data + END).hex()]
            os.execv(sys.executable, [sys.executable, "-c", PROGRAM, *arguments])
        finally:
            os._exit(127)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 26, 82, 0, 0))
    out, shown = b"", False
    try:
        while piece := os.read(master, 65_536):
            out += piece
            if END in out and not shown:
                shown = True
                os.kill(pid, signal.SIGUSR1)
    except OSError:
        pass  # Linux says so when the other side is closed.
    os.waitpid(pid, 0)
    os.close(master)
    return out


def commands(out: bytes) -> set[bytes]:
    """Everything but text, colours and cursor movement."""
    strings = re.findall(rb"\x1b[\]PX^_][^\x07\x1b]*", out)
    sequences = re.findall(rb"\x1b\[[0-?]*[ -/]*[^mHABCD\d;?<=> -/]", out)
    controls = re.findall(rb"\xc2[\x80-\x9f]|[\x00-\x06\x0e-\x1a\x7f]", out)
    return {*strings, *sequences, *controls}


def test_the_real_terminal_hears_nothing_of_the_child() -> None:
    quiet, loud = recorded(b""), recorded(WORST)

    assert END in loud
    assert commands(loud) == commands(quiet)
    assert loud.count(b"\x07") <= quiet.count(b"\x07") + 1
    assert b"PWNED" not in loud
    assert b"UFdO" not in loud
