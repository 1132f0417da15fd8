"""From the supervisor's fork to the command: each step of the confinement, in its order, or not at all.

Loaded in the supervisor. Order and reason of it: sandbox spec §5.1. Landlock comes after everything that
opens files, seccomp last, because it forbids what the steps before need.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # signal itself loads enum, 4 ms
import _socket  # socket itself loads enum
import fcntl
import os
import resource

from engine.sandbox import kernel, landlock, limits

JAIL_FAILED = 125
"""Exit code of a child that could not be confined; the command did not run."""
CANNOT_START = 127
_REPORT, _SENDER = 3, 4
"""Where the two descriptors that the steps still need are put, out of the way of the closing."""
_FREE = 16
_TIOCSCTTY = 0x540E
_DEFAULTED = (1, 2, 3, 13, 15, 17, 22, 25)
"""SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGCHLD, SIGTTOU, SIGXFSZ."""
_SIGKILL = 9

TYPE_CHECKING = False  # typing itself is slow to load
if TYPE_CHECKING:
    from typing import Any


class StepError(Exception):
    """A step of the confinement was refused by the kernel."""


def become(spec: dict[str, Any], cwd: int, report: int, sender: int) -> None:
    """Turn this process into the command; it does not return.

    Args:
        spec: the launch specification; see `engine.sandbox.supervisor`.
        cwd: descriptor of the working directory.
        report: pipe on which a failure is told; closed by a successful exec.
        sender: socket on which the filter's listener is handed to the supervisor; -1 without a broker.
    """
    code, said = JAIL_FAILED, "jail session: it ended early"
    try:
        os.fchdir(cwd)
        spec["terminal"] = _keep(report, sender, spec["terminal"])
        _step("session", lambda: _settle(spec["nice"], spec["terminal"]))
        _step("limits", lambda: limits.apply(spec["rlimits"]))
        if spec["landlock"] is not None:
            _step("landlock", lambda: _restrict(spec["landlock"]))
        if spec["filter"]:
            _step("seccomp", lambda: _filter(spec["filter"], sender >= 0))
        code = CANNOT_START
        os.execve(spec["executable"], spec["argv"], spec["env"])
    except StepError as failed:
        said = f"jail {failed}"
    except OSError as error:
        said = f"launch {error.strerror or error}"
    finally:  # an error of any other kind, want of memory for one, must not pass for a start either
        os.write(_REPORT, said.encode())
        os._exit(code)


def _step(name: str, work: Any) -> None:
    try:
        work()
    except (OSError, ValueError) as error:
        raise StepError(f"{name}: {error}") from error


def _keep(report: int, sender: int, terminal: int) -> int:
    """Put the descriptors that the steps need where `_settle` leaves them; the sender may be missing.

    Returns:
        Where the terminal is now, out of their way; -1 when there is none.
    """
    ends = (report, report if sender < 0 else sender)
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _FREE) for end in ends]
    if terminal >= 0:
        terminal = fcntl.fcntl(terminal, fcntl.F_DUPFD_CLOEXEC, _FREE)
    for place, end in zip((_REPORT, _SENDER), moved, strict=True):
        os.dup2(end, place, inheritable=False)
    return terminal


def _settle(nice: int, terminal: int) -> None:
    """A session of its own, no descriptor but the three, ordinary signals; a terminal only when given."""
    os.setsid()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
    _signal.set_wakeup_fd(-1)
    for number in _DEFAULTED:
        _signal.signal(number, _signal.SIG_DFL)
    os.umask(0o077)
    if terminal < 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    else:
        fcntl.ioctl(terminal, _TIOCSCTTY, 0)
        for standard in (0, 1, 2):
            os.dup2(terminal, standard)
    os.closerange(_SENDER + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    os.nice(nice)
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write("1000")
    except OSError:
        pass  # then another process may be chosen; it confines nothing


def _restrict(rules: dict[str, Any]) -> None:
    ruleset = landlock.create_ruleset(rules["files"], rules["ports"], rules["scope"])
    for path, access in rules["paths"]:
        landlock.allow_path(ruleset, path, access & rules["files"])
    for port in rules["connect"]:
        landlock.allow_port(ruleset, port, landlock.CONNECT_TCP)
    landlock.restrict_self(ruleset)
    os.close(ruleset)


def _filter(program: bytes, listened: bool) -> None:
    listener = kernel.install_filter(program, listener=listened)
    if listened:
        channel = _socket.socket(fileno=_SENDER)
        rights = listener.to_bytes(4, "little")
        channel.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        os.close(listener)
        if not channel.recv(1):
            raise OSError(0, "nobody answers for the calls handed on")
        channel.close()
