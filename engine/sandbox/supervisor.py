"""Runs one command and ends all of its processes; a program of its own, started by `engine.sandbox.process`.

It reads a launch specification (marshal, from the cockpit itself), runs the command in a new session and
watches it. Standard input is the life line: when the cockpit closes it, or dies, the command ends; a letter
on it asks to freeze (`f`), thaw (`t`) or look at (`l`) the command's processes, and is answered in a line.
Orphans of the command come back to this process (child subreaper), so a daemon that forks twice and calls
setsid is found too. The limit on time holds even while the cockpit's loop is stalled.

Between the fork and the command each step of the confinement is taken in its order, or the command does not
run: Landlock comes after everything that opens files, seccomp last, because it forbids what the steps before
need. The supervisor runs without site-packages and loads as little as it can.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import fcntl
import marshal
import os
import resource
import select
import time

from engine.sandbox import kernel, landlock, limits
from engine.sandbox import process_table as tree
from engine.sandbox.broker import Broker

CANNOT_START = 127
_REPORT, _SENDER = 3, 4
"""Where the two descriptors that the steps still need are put, out of the way of the closing."""
_FREE = 16
_TIOCSCTTY = 0x540E
_SIGKILL = 9

TYPE_CHECKING = False  # typing itself is slow to load
if TYPE_CHECKING:
    from typing import Any


class StepError(Exception):
    """A step of the confinement was refused by the kernel."""


def exec_command(spec: dict[str, Any], cwd: int, report: int, sender: int) -> None:
    """Turn this process into the command; it does not return.

    Args:
        spec: the launch specification; see `engine.sandbox.supervisor`.
        cwd: descriptor of the working directory.
        report: pipe on which a failure is told; closed by a successful exec.
        sender: socket on which the filter's listener is handed to the supervisor; -1 without a broker.
    """
    code, text = kernel.JAIL_FAILED, "jail session: it ended early"
    try:
        os.fchdir(cwd)
        given = _keep(report, sender, spec["standard"])
        _step("session", lambda: _settle(spec, given))
        _step("limits", lambda: limits.apply(spec["rlimits"]))
        if spec["landlock"] is not None:
            _step("landlock", lambda: _restrict(spec["landlock"]))
        if spec["filter"]:
            _step("seccomp", lambda: _filter(spec["filter"], sender >= 0))
        code = CANNOT_START
        os.execve(spec["executable"], spec["argv"], spec["env"])
    except StepError as failed:
        text = f"jail {failed}"
    except OSError as error:
        text = f"launch {error.strerror or error}"
    finally:  # an error of any other kind, want of memory for one, must not pass for a start either
        os.write(_REPORT, text.encode())
        os._exit(code)


def _step(name: str, work: Any) -> None:
    try:
        work()
    except (OSError, ValueError) as error:
        raise StepError(f"{name}: {error}") from error


def _keep(report: int, sender: int, given: list[int]) -> list[int]:
    """Put the descriptors that the steps need where `_settle` leaves them; the sender may be missing.

    Returns:
        Where the descriptors that were given to the program are now, out of their way.
    """
    ends = (report, report if sender < 0 else sender, *given)
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _FREE) for end in ends]
    for place, end in zip((_REPORT, _SENDER), moved, strict=False):
        os.dup2(end, place, inheritable=False)
    return moved[2:]


def _settle(spec: dict[str, Any], given: list[int]) -> None:
    """A session of its own, no descriptor but the three, ordinary signals; a terminal only when given."""
    os.setsid()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
    _signal.set_wakeup_fd(-1)
    kernel.set_to_default()
    os.umask(spec["umask"])
    if not given:
        given = [os.open(os.devnull, os.O_RDONLY)]
    elif len(given) == 1:
        fcntl.ioctl(given[0], _TIOCSCTTY, 0)
        given = given * 3
    for place, end in enumerate(given):
        os.dup2(end, place)
    os.closerange(_SENDER + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    os.nice(spec["nice"])
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


TYPE_CHECKING = False  # typing itself is slow to load
if TYPE_CHECKING:
    from typing import Any

_SIGTERM, _SIGCHLD = 15, 17
_IGNORED = (1, 2, 3, 13, 15, 22)
"""SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGTTOU: only the life line ends it."""
_LAST_RESORT_S = 10.0
"""How long SIGKILL is repeated before a process is reported as not ending."""


class Watch:
    """One command from its start to the end of its last process."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.child = 0
        self.wait_status: int | None = None
        self.broker: Broker | None = None
        self.alone = False
        """True when no child is left, the command's orphans included."""
        kernel.drop_capabilities()
        root = os.open(spec["root"], os.O_RDONLY | os.O_DIRECTORY)
        self.cwd = spec["cwd"] if spec["cwd"] >= 0 else _walk(root, spec["cwd_path"], spec["cwd_identity"])
        self.sampler = limits.Sampler(root, spec["limits"])
        self.guarded = False
        if spec["scope"]:
            landlock.enter_signal_scope()
            self.guarded = tree.out_of_reach([os.getppid(), spec["canary"]])
        if self.guarded and spec["reserve"]:
            tree.leave_reserve()
        # One signal to all would stop the process in reserve too, which must go on to be of use.
        self.frost = tree.ProcessFreezer(self.guarded and not spec["reserve"])
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        self.wake = _wake_by_signals()

    def start(self) -> tuple[str, str]:
        """Fork and execute; returns what went wrong: `jail` or `launch`, and why, or two empty texts."""
        report_read, report_write = os.pipe()
        ours, theirs = (end.detach() for end in _socket.socketpair()) if self.spec["broker"] else (-1, -1)
        self.child = os.fork()
        if self.child == 0:
            exec_command(self.spec, self.cwd, report_write, theirs)
        for end in (report_write, *self.spec["standard"]):
            os.close(end)
        if ours >= 0:
            os.close(theirs)
            self._meet_broker(ours)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)  # only the command holds its pipes, so that their end is its end
        os.dup2(null, 2)
        with os.fdopen(report_read, "rb") as report:
            kind, _, problem = report.read().decode().partition(" ")
        return kind, problem

    def _meet_broker(self, ours: int) -> None:
        """Take the filter's listener and let the child continue; without a word it must not run."""
        channel = _socket.socket(fileno=ours)
        try:
            results = channel.recvmsg(1, _socket.CMSG_SPACE(4))[1]
            if results:
                self.broker = Broker(int.from_bytes(results[0][2][:4], "little"), self.spec["broker"])
                channel.send(b".")
        finally:
            channel.close()

    def until_end(self) -> tuple[str, str]:
        """Wait for the command's exit or a reason to end it; returns `exit` or the reason, and words.

        The time in which it is frozen counts for no limit.
        """
        begun = time.monotonic()
        while True:
            self.reap()
            if self.wait_status is not None:
                return "exit", ""
            left = begun + self.spec["limit_s"] + self.frost.total_s - time.monotonic()
            if left <= 0:
                return "timeout", ""
            wait_s = self.frost.wait_s if self.frost.frozen else min(left, self.sampler.wait_s())
            if self._wait(wait_s):
                return "cancelled", ""
            if self.frost.frozen:
                self.frost.hold()  # the kernel lets processes go on whose group has lost its leader
                continue
            kind, words = self.sampler.breach()
            if kind:
                return kind, words

    def _wait(self, seconds: float) -> bool:
        """Wait for a signal, a call for the broker or the time; True when the life line was cut."""
        heard = [0, self.wake]
        if self.broker is not None:
            heard.append(self.broker.listener)
        ready, _, _ = select.select(heard, [], [], seconds)
        if self.wake in ready:
            os.read(self.wake, 512)
        if self.broker is not None and self.broker.listener in ready and not self.broker.serve():
            os.close(self.broker.listener)
            self.broker = None
        return 0 in ready and not self._heed(os.read(0, 512))

    def _heed(self, letters: bytes) -> bool:
        """Do what was asked for on the life line, and tell what is there then; False when it was cut."""
        for letter in letters:
            if letter == ord("f"):
                self.frost.freeze()
            elif letter == ord("t"):
                self.frost.thaw()
            self.tell("answer")
        return bool(letters)

    def tell(self, kind: str) -> None:
        """Say on the status pipe which processes are alive."""
        try:  # noqa: SIM105 - contextlib costs start-up time
            os.write(self.spec["status"], f"{kind} {self.frost.look()!r}\n".encode())
        except BrokenPipeError:
            pass  # whoever asked is gone, and the life line with them

    def reap(self) -> None:
        """Collect every child that ended, the command and adopted orphans alike."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.alone = True
                return
            if pid == 0:
                return
            if pid == self.child:
                self.wait_status = status

    def end_tree(self, *, gently: bool) -> tuple[int, int]:
        """SIGTERM and a grace when gently, then SIGKILL until none is left; how many there were, remain."""
        self.reap()
        if self.alone:
            return 0, 0
        first = self._ask_to_end() if gently else 0
        until = time.monotonic() + _LAST_RESORT_S
        while not self.alone and time.monotonic() < until:
            tree.kill_all(self.guarded, os.getpid())
            self._wait_for_child(0.02)
        return first, 0 if self.alone else len(tree.ProcessTable().below(os.getpid()))

    def _ask_to_end(self) -> int:
        left = tree.ProcessTable().below(os.getpid())
        tree.signal_each(left, _SIGTERM)
        until = time.monotonic() + self.spec["grace_s"]
        while not self.alone and time.monotonic() < until:
            self._wait_for_child(0.02)
        return len(left)

    def _wait_for_child(self, seconds: float) -> None:
        if select.select([self.wake], [], [], seconds)[0]:
            os.read(self.wake, 512)
        self.reap()


def _wake_by_signals() -> int:
    """A descriptor that can be read when a child ended; signals that a terminal sends are ignored."""
    wake, wake_write = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(wake_write, False)
    _signal.signal(_SIGCHLD, lambda _number, _frame: None)
    _signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in _IGNORED:
        _signal.signal(number, _signal.SIG_IGN)
    return wake


def _walk(root: int, path: str, identity: tuple[int, int]) -> int:
    """The directory at a path beneath the root, no link followed, if it is still the same one.

    Raises:
        OSError: it is gone, or another one is there now.
    """
    at = os.dup(root)
    for name in path.split("/"):
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
        os.close(at)
        at = below
    status = os.fstat(at)
    if (status.st_dev, status.st_ino) != tuple(identity):
        raise OSError(0, "the working directory was replaced")
    return at


def main(arguments: list[str]) -> None:
    """Run the command whose specification stands in the file behind the descriptor in the first argument.

    The keys of the specification: executable, argv, env; cwd (a descriptor, or -1 and cwd_path with
    cwd_identity); standard (descriptors of its standard input and output, or one of its terminal, or
    none); umask; root; status (a descriptor for the report); limit_s,
    grace_s, nice; limits and rlimits by name; scope and canary (a process outside) for `kill(-1)`; reserve
    (whether nothing else ends the tree when this process is killed); landlock (None or files, ports, scope,
    paths, connect), filter (BPF), broker (roots whose metadata may be changed).
    """
    kernel.set_to_default(kept=kernel.PYTHONS_OWN)
    with os.fdopen(int(arguments[0]), "rb") as file:
        spec = marshal.load(file)
    status = spec["status"]
    os.set_inheritable(status, False)
    os.write(status, b"up\n")
    try:
        report = _run(spec)
    except OSError as error:
        report = {"ended": "jail", "problem": f"supervisor: {error}", "code": kernel.JAIL_FAILED}
    os.write(status, repr(report).encode())
    os._exit(0)  # taking the interpreter down in order would cost the caller two milliseconds


def _run(spec: dict[str, Any]) -> dict[str, Any]:
    """The command's whole life, as it is reported to the cockpit."""
    watch = Watch(spec)
    if "RLIMIT_NPROC" not in spec["rlimits"]:
        spec["rlimits"]["RLIMIT_NPROC"] = limits.threads_of_user() + spec["limits"]["processes"]
    begun = time.monotonic()
    ended, problem = watch.start()
    if not ended:
        os.write(spec["status"], b"started\n")
        ended, problem = watch.until_end()
    duration = time.monotonic() - begun - watch.frost.total_s
    if ended == "cancelled":
        watch.tell("ending")
    # What outgrows its limits would go on growing through the grace, and what is frozen hears of nothing.
    gently = ended not in ("memory", "processes") and not watch.frost.frozen
    leftover, remaining = watch.end_tree(gently=gently)
    status = watch.wait_status
    return {
        "ended": ended,
        "problem": problem,
        "code": None if status is None else os.waitstatus_to_exitcode(status),
        "leftover": leftover if ended == "exit" else 0,
        "remaining": remaining,
        "duration_s": duration,
    }
