"""Holds the terminal for a cockpit that lives in a session of its own, and lets go of it when told to.

The cockpit reads and writes the terminal itself, by the descriptors that it has inherited: nothing stands
between, so keys, colours and mouse are as fast and as many as without. This process, which the shell waits
for, only passes signals on. As the cockpit is not in the terminal's session, neither the terminal's end nor
that of this process ends it. Imports little: it is there before anything else.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import termios
import threading
from typing import Any

PASSED_ON = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT, signal.SIGUSR1, signal.SIGUSR2),
)
LET_GO = b"go"
"""What the cockpit says where it goes on without a terminal."""
_OFF = (b"?1000l", b"?1003l", b"?1006l", b"?1015l", b"?2004l", b"?1004l", b"?7h")
RESET = b"".join(b"\x1b[" + each for each in (*_OFF, b"<u", b"?1049l", b"?25h"))
"""Takes down a screen whose program was killed."""


class Terminal:
    """The end of the cockpit: what holds its terminal.

    Args:
        held: the connection to the process that holds it.
    """

    def __init__(self, held: socket.socket) -> None:
        self._held = held
        threading.Thread(target=self._await_end, name="launcher", daemon=True).start()

    def _await_end(self) -> None:
        """The holder's end is the terminal's."""
        with contextlib.suppress(OSError):
            if not self._held.recv(1):
                os.kill(os.getpid(), signal.SIGHUP)

    def let_go(self) -> None:
        """Go on without the terminal: the shell has it back, and its end is not ours."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with contextlib.suppress(OSError):
            self._held.sendall(LET_GO)


def hold_terminal() -> Terminal | int:
    """Part in two: a process in a session of its own gets a `Terminal`, this one the exit code at its end."""
    with contextlib.suppress(termios.error):
        # In the background this waits until the terminal is ours.
        termios.tcsetattr(2, termios.TCSANOW, termios.tcgetattr(2))
    before = _attributes()
    ours, theirs = socket.socketpair()
    sys.stdout.flush()
    sys.stderr.flush()
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.pthread_sigmask(signal.SIG_BLOCK, {*PASSED_ON, signal.SIGCHLD})
    child = os.fork()
    if child == 0:
        for end in (awake, wake):
            os.close(end)
        ours.close()
        os.setsid()
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        return Terminal(theirs)
    theirs.close()
    for number in (*PASSED_ON, signal.SIGCHLD):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, lambda _number, _frame: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return _hold(child, ours, awake, before)


def _attributes() -> list[Any] | None:
    try:
        return termios.tcgetattr(0)
    except termios.error:
        return None


def _hold(child: int, connection: socket.socket, awake: int, before: list[Any] | None) -> int:
    """Pass signals on until the cockpit has ended or lets go; its exit code."""
    watched: list[Any] = [awake, connection]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if connection in ready:
            with contextlib.suppress(OSError):
                if connection.recv(len(LET_GO)) == LET_GO:
                    return 0
            watched = [awake]  # it is ending
        for number in os.read(awake, 4096) if awake in ready else b"":
            if number != signal.SIGCHLD:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, number)
        ended, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
        if ended and os.WIFSTOPPED(status):
            os.kill(os.getpid(), signal.SIGSTOP)
        elif ended:
            return _end_like(status, before)


def _end_like(status: int, before: list[Any] | None) -> int:
    """The exit code of a program that has ended; after its death by a signal this one dies of it, too."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    with contextlib.suppress(termios.error, OSError):
        os.write(2, RESET)
        if before is not None:
            termios.tcsetattr(0, termios.TCSANOW, before)
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    return 128 - code
