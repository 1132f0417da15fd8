"""Processes of the program without the half second of processor that each spends on importing it.

A server imports the program once and forks itself for each process that is asked for. What it gives is a
process of its own like any other: its arguments, directory, environment and files are those that were asked
for, it ends as Python ends, and a signal hits it alone. What begins before `main`, such as the
language, the home and the import path, is tested with interpreters that are really started.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import functools
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S as PATIENCE_S

CLI = "import sys\nfrom app.cli.main import main\nsys.exit(main())"
"""The code of the `pilothouse` command."""
IMPORTED = (
    *(
        "app.cli.main",
        "app.commands.command_runner",
        "app.commands.headless",
        "app.commands.coder_shell",
        "app.cli.doctor",
        "app.cli.sessions",
        "app.commands.missions",
    ),
    *(
        "engine.api.engine",
        "engine.api",
        "engine.core.store.verify",
        "engine.memory.memory",
        "engine.memory.open_memory",
    ),
    *("engine.memory.recorder", "engine.memory.note_writer", "aiosqlite", "asyncio.subprocess", "random"),
)
"""What the server has imported; whatever else a process needs, it imports itself."""
_MOST = 1 << 20


class Forked:
    """A process that the server was asked for."""

    def __init__(self, report: socket.socket, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._report = report

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        """How it ended, as `subprocess` says it: the exit code, or the negative number of the signal.

        Raises:
            TimeoutError: if it has not ended by then; it is left running.
        """
        if self.returncode is None:
            self._report.settimeout(timeout_s)
            self.returncode = int(self._report.recv(32))
            self._report.close()
        return self.returncode

    def kill(self) -> None:
        """End it at once, where it has not ended."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def start(
    code: str,
    *argv: str,
    cwd: Path,
    files: tuple[int, int, int],
    environment: Mapping[str, str] | None = None,
    preload: str = "",
) -> Forked:
    """Run a program in a process of its own; `files` are its standard input, output and error.

    A library that is to be preloaded is loaded into the server, and so into what it forks, not into programs
    that those start.
    """
    ours, report = socket.socketpair()
    wanted = {
        "code": code,
        "argv": ["-c", *argv],
        "cwd": str(cwd),
        "environment": dict(os.environ if environment is None else environment),
    }
    with report:
        rights = array.array("i", [*files, report.fileno()])
        data = json.dumps(wanted).encode()
        _server(preload).sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    ours.settimeout(PATIENCE_S)
    return Forked(ours, int.from_bytes(ours.recv(8), "big"))


def run(
    code: str, *argv: str, cwd: Path, environment: Mapping[str, str] | None = None, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with this on its standard input; what it wrote and how it ended."""
    with contextlib.ExitStack() as stack:
        given, out, err = (stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3))
        given.write(typed)
        given.seek(0)
        files = (given.fileno(), out.fileno(), err.fileno())
        process = start(code, *argv, cwd=cwd, files=files, environment=environment)
        try:
            code_of_end = process.wait()
        finally:
            process.kill()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess([*argv], code_of_end, out.read(), err.read())


@functools.cache
def _server(preload: str) -> socket.socket:
    """The end of the server's socket, which is started with the first process that is wanted."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        command = [sys.executable, "-c", "from tests.forking import serve; exec(serve())", str(its.fileno())]
        root = Path(__file__).parents[1]
        environment = {**os.environ, "PYTHONPATH": str(root)}
        if preload:
            environment["LD_PRELOAD"] = preload
        # A pipe that nothing is written to: what is forked may get one, in which there is no place to seek.
        server = subprocess.Popen(
            command, pass_fds=[its.fileno()], env=environment, cwd=root, stdout=subprocess.PIPE
        )
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST)

    def end() -> None:
        ours.close()
        server.wait(PATIENCE_S)

    atexit.register(end)
    return ours


def serve() -> str:
    """Fork a process for each request, until nobody asks any more.

    Returns:
        In each process that was forked, and only there: the code that it is to run.
    """
    for name in IMPORTED:
        __import__(name)
    sys.path[:] = [place for place in sys.path if place]
    gc.collect()
    gc.freeze()
    asked = socket.socket(fileno=int(sys.argv[1]))
    asked.setblocking(False)
    woken, wake = socket.socketpair()
    woken.setblocking(False)
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno())
    running: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as ready:
        ready.register(asked, selectors.EVENT_READ)
        ready.register(woken, selectors.EVENT_READ)
        while True:
            sources = {key.fileobj for key, _ in ready.select()}
            if woken in sources:
                with contextlib.suppress(BlockingIOError):
                    woken.recv(4096)
                _tell_ends(running)
            if asked not in sources:
                continue
            data, files, _flags, _address = socket.recv_fds(asked, _MOST, 4)
            if not data:
                os._exit(0)
            *standard, report = files
            if pid := os.fork():
                for file in standard:
                    os.close(file)
                running[pid] = socket.socket(fileno=report)
                running[pid].send(pid.to_bytes(8, "big"))
                continue
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for file in (report, *(other.detach() for other in running.values())):
                os.close(file)
            for end in (asked, woken, wake):
                end.close()
            break
    return _become(json.loads(data), standard)


def _tell_ends(running: dict[int, socket.socket]) -> None:
    """Say of every process that ended how it did."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with running.pop(pid) as report, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            report.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(wanted: dict[str, Any], standard: list[int]) -> str:
    """Make this process what was asked for."""
    for number, file in enumerate(standard):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    os.chdir(wanted["cwd"])
    sys.argv[:] = wanted["argv"]
    code: str = wanted["code"]
    return code
