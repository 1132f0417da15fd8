"""Running a program in the sandbox: bounded in time, memory and output, and never leaving a process behind.

Each command has a supervisor process of its own (see `engine.sandbox.supervisor`). A confinement, such as
a kernel jail, slots in as one object that says how the command is held.
"""

from __future__ import annotations

import asyncio
import marshal
import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from engine.core.ports import OutputSink
from engine.core.sandbox import TreeKind
from engine.sandbox.completion import run_to_completion
from engine.sandbox.jail import Confined, Confinement, Launch, specification
from engine.sandbox.kernel import JAIL_FAILED
from engine.sandbox.output import Capture
from engine.sandbox.policy import SandboxPolicy, Tier
from engine.sandbox.process_trees import ProcessTree, Status
from engine.sandbox.programs import BASE_PYTHON
from engine.value import dataclass, replace

BOOT = str(Path(__file__).resolve().with_name("boot.py"))
_MARK = "PILOTHOUSE_RUN"
_BACKSTOP_S = 15.0
"""Seconds past its own limit after which a supervisor is held to be stopped or lost."""
_DRAIN_S = 2.0
P = TypeVar("P", bound=asyncio.Protocol)


class Ended(StrEnum):
    """Why a command ended."""

    EXIT = "exit"
    SIGNAL = "signal"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    OUTPUT = "output"
    """It wrote more than the policy's `output_bytes`."""
    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"
    LAUNCH = "launch"
    """The program could not be started."""
    JAIL = "jail"
    """A step of the confinement failed; the program did not run."""
    LOST = "lost"
    """Its supervisor was killed; what was left of the tree was found by its mark and killed too."""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The result of a command."""

    ended: Ended
    return_code: int | None
    """Exit code, -N when signal N ended it, None when it never started or its end was not seen."""
    stdout: str = ""
    """Head and tail, stripped at the end."""
    stderr: str = ""
    stdout_dropped: int = 0
    """Bytes left out between head and tail."""
    stderr_dropped: int = 0
    duration_s: float = 0.0
    leftover: int = 0
    """Processes that outlived the command and were ended."""
    problem: str = ""
    """Why it could not be started or confined (with the step's name first), or which limit it broke."""
    tier: Tier = Tier.PATHS
    """How firmly it was held."""
    remaining: int = 0
    """Processes that could not be ended."""

    @property
    def truncated(self) -> bool:
        """True when output was left out."""
        return bool(self.stdout_dropped or self.stderr_dropped)


class Launcher:
    """Starts commands for one sandbox."""

    def __init__(self, root: Path, policy: SandboxPolicy) -> None:
        self.root = root
        self.policy = policy

    async def run(
        self,
        launch: Launch,
        cwd: int,
        *,
        jail: Confinement,
        limit_s: float,
        output: OutputSink,
        standard: tuple[int, ...] = (),
        started: Callable[[], None] = lambda: None,
        tree: ProcessTree | None = None,
    ) -> ProcessResult:
        """Run a program to its end; afterwards none of its processes is alive.

        Args:
            launch: executable, arguments and the whole environment.
            cwd: descriptor of the working directory, at the root or beneath it.
            jail: what holds it to the root.
            limit_s: wall-clock seconds.
            output: receives output as it comes, on the event loop.
            standard: descriptors that become its standard input and output; or a single one, a terminal that
                becomes the program's own, for a person who takes over, when nothing comes as output. Without
                any it has no terminal and nothing to read.
            started: called on the event loop once the program is up; not at all when it never is.
            tree: its processes, as others reach them; a frozen one lets it begin when it is thawed.

        Raises:
            asyncio.CancelledError: after the whole tree has ended.
        """
        mark = secrets.token_hex(12)
        launch = replace(launch, env={**launch.env, _MARK: mark}, terminal=_terminal_path(standard))
        confined = jail.confine(launch, self.root, self.policy)
        tree = tree or ProcessTree(TreeKind.CALL, "", "")
        running = _Running(self, mark, limit_s, tree)
        try:
            await tree.may_start()
            running.start(launch, confined, cwd, standard)
            tree.mark_started(running)
            result = await run_to_completion(running.follow(output, started), on_cancel=running.stop)
        finally:
            running.stop()
            tree.is_over(running.remaining)
        return replace(result, tier=jail.tier)


class _Running:
    """One supervisor and its pipes."""

    def __init__(self, launcher: Launcher, mark: str, limit_s: float, tree: ProcessTree) -> None:
        self._root, self._policy = launcher.root, launcher.policy
        self._tree = tree
        self.remaining = 0
        """Processes that could not be ended, once it is over."""
        self._mark = mark
        self._limit_s = limit_s
        self._life = -1
        self._ends: tuple[int, int, int] = (-1, -1, -1)
        self._overflowed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._patience: asyncio.Timeout | None = None
        self._left_s: float | None = None
        """Seconds of patience that were left when it was frozen; None while the clock runs."""

    def start(self, launch: Launch, confined: Confined, cwd: int, standard: tuple[int, ...]) -> None:
        """Start the supervisor; about a millisecond, so it may run on the loop."""
        pipes = [os.pipe() for _ in range(4)]
        (life_read, self._life), (out, out_write), (err, err_write), (status, status_write) = pipes
        data = specification(
            launch,
            confined,
            self._policy,
            root=self._root,
            cwd=cwd,
            standard=standard,
            status=status_write,
            limit_s=self._limit_s,
        )
        try:
            arguments = b"".join(os.fsencode(argument) + b"\0" for argument in confined.outer_arguments)
            with _file(marshal.dumps(data)) as spec, _file(arguments) as more:
                outer, kept = [*confined.outer], [status_write, spec.fileno(), *standard]
                if confined.outer_arguments:
                    outer += ["--args", str(more.fileno()), "--"]
                    kept.append(more.fileno())
                if not confined.namespaces:
                    kept.append(cwd)
                self._process = subprocess.Popen(
                    [*outer, str(BASE_PYTHON), "-I", "-S", BOOT, "supervisor", str(spec.fileno())],
                    stdin=life_read,
                    stdout=out_write,
                    stderr=err_write,
                    pass_fds=kept,
                    start_new_session=True,
                    cwd="/",
                    env={},
                )
        except BaseException:
            for end in (self._life, out, err, status):
                os.close(end)
            raise
        finally:
            for end in (life_read, out_write, err_write, status_write):
                os.close(end)
        self._ends = (out, err, status)

    def stop(self) -> None:
        """Cut the life line: the supervisor ends the tree. Harmless when done twice."""
        if self._life < 0:
            return
        os.close(self._life)
        self._life = -1
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(asyncio.get_running_loop().time() + self._grace_s)

    @property
    def ending(self) -> bool:
        """See `engine.sandbox.process_trees.Supervised`."""
        return self._life < 0

    def tell(self, letter: bytes) -> bool:
        """See `engine.sandbox.process_trees.Supervised`."""
        if self._life < 0:
            return False
        try:
            os.write(self._life, letter)
        except OSError:  # the supervisor is gone
            return False
        return True

    def hold_clock(self, held: bool) -> None:
        """See `engine.sandbox.process_trees.Supervised`."""
        patience, now = self._patience, asyncio.get_running_loop().time()
        if patience is None or patience.expired() or self._life < 0:
            return
        if held and self._left_s is None:
            when = patience.when()
            self._left_s = when - now if when is not None else None
            patience.reschedule(None)
        elif not held and self._left_s is not None:
            patience.reschedule(now + self._left_s)
            self._left_s = None

    @property
    def _grace_s(self) -> float:
        """Seconds in which a supervisor that should end the tree has ended it."""
        return self._policy.grace_s + _BACKSTOP_S

    def _overflow(self) -> None:
        self._overflowed = True
        self.stop()

    async def follow(self, output: OutputSink, started: Callable[[], None]) -> ProcessResult:
        """Read until the supervisor reports, and put the result together."""
        begun = time.monotonic()
        process = self._process
        assert process is not None, "follow comes after start"
        out, err, status, transports = await self._connect(output, started)
        try:
            try:
                async with asyncio.timeout(self._limit_s + self._grace_s) as self._patience:
                    self.hold_clock(self._tree.frozen)
                    await status.ended
            except TimeoutError:
                process.send_signal(signal.SIGKILL)
            finally:
                self._patience = None
            self.stop()
            await _collected(process)
            report = status.report
            if report is None:
                await asyncio.to_thread(_kill_marked, self._mark)
            await asyncio.wait({out.ended, err.ended}, timeout=_DRAIN_S)
            if not status.up:
                report = _never_up(err.text)
        finally:
            for transport in transports:
                transport.close()
            for reader in (out, err, status):
                reader.finish()
        self.remaining = report.get("remaining", 0) if report is not None else 0
        return self._result(report, out, err, time.monotonic() - begun)

    async def _connect(
        self, output: OutputSink, started: Callable[[], None]
    ) -> tuple[Capture, Capture, Status, list[asyncio.BaseTransport]]:
        out, err = (Capture(name, self._policy, output, self._overflow) for name in ("stdout", "stderr"))
        status = Status(started, self._tree.set_census)
        loop = asyncio.get_running_loop()
        transports: list[asyncio.BaseTransport] = []
        for reader, end in zip((out, err, status), self._ends, strict=True):
            transport, _ = await loop.connect_read_pipe(partial(_same, reader), os.fdopen(end, "rb"))
            transports.append(transport)
        return out, err, status, transports

    def _result(
        self, report: dict[str, Any] | None, out: Capture, err: Capture, duration_s: float
    ) -> ProcessResult:
        if report is None:
            report = {"ended": Ended.LOST, "code": None, "leftover": 0, "problem": ""}
        ended = Ended(report["ended"])
        code = None if ended is Ended.LAUNCH else report["code"]
        if self._overflowed and ended is not Ended.LOST:
            ended = Ended.OUTPUT
        elif ended is Ended.EXIT and code is not None and code < 0:
            ended = Ended.SIGNAL
        return ProcessResult(
            ended=ended,
            return_code=code,
            stdout=out.text,
            stderr=err.text,
            stdout_dropped=out.dropped,
            stderr_dropped=err.dropped,
            duration_s=report.get("duration_s", duration_s),
            leftover=report.get("leftover", 0),
            remaining=self.remaining,
            problem=report["problem"],
        )


def signal_name(return_code: int) -> str:
    """What ended a program whose return code is negative: `SIGSEGV (11)`."""
    try:
        return f"{signal.Signals(-return_code).name} ({-return_code})"
    except ValueError:
        return str(-return_code)


def _terminal_path(standard: tuple[int, ...]) -> str:
    """Where the terminal can be opened by name; empty without one, and where no name leads to it."""
    try:
        return os.ttyname(standard[0]) if len(standard) == 1 else ""
    except OSError:
        return ""


def _same(reader: P) -> P:
    return reader


@contextmanager
def _file(data: bytes) -> Iterator[BinaryIO]:
    """An anonymous file that holds the data, to be read from its start."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file


def _never_up(stderr: str) -> dict[str, Any]:
    """The supervisor never started: what should have started it says why on standard error."""
    problem = stderr.strip().rpartition("\n")[2] or "the supervisor did not start"
    return {"ended": Ended.JAIL, "code": JAIL_FAILED, "problem": f"start: {problem}"}


async def _collected(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that has nothing left to do; one that somebody stopped would never end by itself."""
    waiting = asyncio.ensure_future(asyncio.to_thread(process.wait))
    done, _ = await asyncio.wait({waiting}, timeout=_BACKSTOP_S)
    if not done:
        process.kill()
    await waiting


def _kill_marked(mark: str) -> None:
    """Kill every process that carries the run's mark in its environment; the supervisor is gone."""
    expected = f"{_MARK}={mark}".encode()
    until = time.monotonic() + 5
    while time.monotonic() < until:
        result = [pid for pid in _pids() if expected in _environment(pid)]
        if not result:
            return
        for pid in result:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue


def _pids() -> Sequence[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except FileNotFoundError:
        return []


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
