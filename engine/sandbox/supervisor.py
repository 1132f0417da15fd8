"""Runs one command and ends all of its processes; a program of its own, started by `engine.sandbox.process`.

`python -I -S supervisor.py SPEC_FD` reads a launch specification as JSON, runs the command in a new
session and watches it. Standard input is the life line: when the cockpit closes it, or dies, the command
ends. Orphans of the command come back to this process (child subreaper), so a daemon that forks twice and
calls setsid is found too. The limit on time holds even while the cockpit's loop is stalled.

It imports only the standard library, for it runs without site-packages. Source: sandbox spec §3.2, §5.1 L3.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from dataclasses import dataclass
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_SAMPLE_S = 0.25
_LAST_RESORT_S = 10.0
"""How long SIGKILL is repeated before a process is reported as not ending."""
_IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTTOU)


@dataclass(frozen=True)
class Spec:
    """What to run and how far it may go; the keys of the JSON object."""

    executable: str
    argv: list[str]
    env: dict[str, str]
    cwd: int
    status: int
    limit_s: float
    grace_s: float
    memory_bytes: int
    disk_floor_bytes: int
    rlimits: dict[str, int]
    processes: int


def processes() -> dict[int, tuple[int, str, int]]:
    """Parent, state and number of threads of every process, by id."""
    found: dict[int, tuple[int, str, int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - pathlib costs start-up time
                    fields = file.read().rpartition(b")")[2].split()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            found[int(name)] = (int(fields[1]), fields[0].decode(), int(fields[17]))
    return found


def descendants(of: int) -> list[int]:
    """Living processes below one, nearest first."""
    children: dict[int, list[int]] = {}
    table = processes()
    for pid, (parent, _, _) in table.items():
        children.setdefault(parent, []).append(pid)
    order = list(children.get(of, ()))
    for pid in order:
        order.extend(children.get(pid, ()))
    return [pid for pid in order if table[pid][1] not in "ZX"]


def resident_bytes(pids: list[int]) -> int:
    """Resident memory of the processes together; shared pages count once for each."""
    pages = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123
                pages += int(file.read().split()[1])
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return pages * resource.getpagesize()


def signal_all(pids: list[int], number: int) -> None:
    """Send a signal to each, whether or not it is still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


class Watch:
    """One command from its start to the end of its last process."""

    def __init__(self, spec: Spec, libc: Any) -> None:
        self.spec = spec
        self.libc = libc
        self.child = 0
        self.wait_status: int | None = None
        self.disk_floor = min(spec.disk_floor_bytes, self._free_disk() // 2)
        self.wake, wake_write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_write, False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)

    def start(self) -> str:
        """Fork and execute; returns an empty text, or why the program could not be started."""
        report_read, report_write = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            try:
                self._become_command(report_write)
            except OSError as error:
                os.write(report_write, (error.strerror or str(error)).encode())
            finally:
                os._exit(127)
        os.close(report_write)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)  # only the command holds its pipes, so that their end is its end
        os.dup2(null, 2)
        with os.fdopen(report_read, "rb") as report:
            return report.read().decode()

    def _become_command(self, report: int) -> None:
        spec = self.spec
        os.setsid()
        self.libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        self.libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        signal.set_wakeup_fd(-1)
        for number in (*_IGNORED, signal.SIGCHLD, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.fchdir(spec.cwd)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if report != 3:
            os.dup2(report, 3, inheritable=False)
        os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        for name, value in spec.rlimits.items():
            _lower(getattr(resource, name), value)
        try:
            os.execve(spec.executable, spec.argv, spec.env)
        except OSError as error:
            os.write(3, (error.strerror or str(error)).encode())

    def until_end(self) -> str:
        """Wait for the command's exit or a reason to end it; returns `exit` or the reason."""
        deadline = time.monotonic() + self.spec.limit_s
        while True:
            self.reap()
            if self.wait_status is not None:
                return "exit"
            now = time.monotonic()
            if now >= deadline:
                return "timeout"
            ready, _, _ = select.select([0, self.wake], [], [], min(_SAMPLE_S, deadline - now))
            if 0 in ready and not os.read(0, 1):
                return "cancelled"
            if self.wake in ready:
                os.read(self.wake, 512)
            elif breach := self._breach():
                return breach

    def _breach(self) -> str:
        if resident_bytes(descendants(os.getpid())) > self.spec.memory_bytes:
            return "memory"
        return "disk" if self._free_disk() < self.disk_floor else ""

    def _free_disk(self) -> int:
        status = os.fstatvfs(self.spec.cwd)
        return status.f_bavail * status.f_frsize

    def reap(self) -> None:
        """Collect every child that ended, the command and adopted orphans alike."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.child:
                self.wait_status = status

    def end_tree(self) -> tuple[int, int]:
        """SIGTERM, a grace, then SIGKILL until none is left; how many there were, how many remain."""
        me = os.getpid()
        left = descendants(me)
        first = len(left)
        signal_all(left, signal.SIGTERM)
        until = time.monotonic() + self.spec.grace_s
        while left and time.monotonic() < until:
            select.select([self.wake], [], [], 0.01)
            self.reap()
            left = descendants(me)
        until = time.monotonic() + _LAST_RESORT_S
        while left and time.monotonic() < until:
            signal_all(left, signal.SIGKILL)
            self.reap()
            left = descendants(me)
        self.reap()
        return first, len(left)


def _lower(kind: int, value: int) -> None:
    """Set a limit, never above the one in force."""
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _threads_of_user() -> int:
    """Threads that the user has now, the base of RLIMIT_NPROC."""
    total = 0
    for pid, (_, _, threads) in processes().items():
        try:
            if os.stat(f"/proc/{pid}").st_uid == os.getuid():  # noqa: PTH116
                total += threads
        except FileNotFoundError:
            continue
    return total


def main() -> None:
    """Run the command whose specification stands in the file behind the descriptor in argv[1]."""
    with os.fdopen(int(sys.argv[1]), "rb") as file:
        spec = Spec(**json.load(file))
    os.set_inheritable(spec.status, False)
    spec.rlimits["RLIMIT_NPROC"] = _threads_of_user() + spec.processes
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    watch = Watch(spec, libc)
    started = time.monotonic()
    problem = watch.start()
    ended = "launch" if problem else watch.until_end()
    duration = time.monotonic() - started
    leftover, remaining = watch.end_tree()
    status = watch.wait_status
    report = {
        "ended": ended,
        "problem": problem,
        "code": None if status is None else os.waitstatus_to_exitcode(status),
        "leftover": leftover if ended == "exit" else 0,
        "remaining": remaining,
        "duration_s": duration,
    }
    os.write(spec.status, json.dumps(report).encode())


if __name__ == "__main__":
    main()
