"""Running a program in the sandbox: bounded in time, memory and output, and never leaving a process behind.

Each command has a supervisor process of its own (see `engine.sandbox.supervisor`). A confinement, such as
a kernel jail, slots in as one object that rewrites the launch.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from engine.domain.ports import OutputSink
from engine.sandbox.completion import to_the_end
from engine.sandbox.output import Capture
from engine.sandbox.policy import SandboxPolicy

_SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))
_MARK = "PILOTHOUSE_RUN"
_BACKSTOP_S = 15.0
"""Seconds past its own limit after which a supervisor is held to be stopped or lost."""
_DRAIN_S = 2.0
_MAX_TRUST_PIPE = 64 * 1024


class Ended(StrEnum):
    """Why a command ended."""

    EXIT = "exit"
    SIGNAL = "signal"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    OUTPUT = "output"
    """It wrote more than the policy's `output_bytes`."""
    MEMORY = "memory"
    DISK = "disk"
    LAUNCH = "launch"
    """The program could not be started."""
    LOST = "lost"
    """Its supervisor was killed; what was left of the tree was found by its mark and killed too."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A program, ready to be executed."""

    executable: str
    """Absolute path."""
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


class Confinement(Protocol):
    """What keeps a command inside the root, other than good manners."""

    @property
    def name(self) -> str:
        """The tier, in the words of sandbox spec §5.1: FULL, KERNEL, SEATBELT, PATHS."""

    def wrap(self, launch: Launch, root: Path, policy: SandboxPolicy) -> Launch:
        """The launch that starts the program confined. It runs inside the supervisor."""


class Unconfined:
    """No confinement: only the file commands are held to the root, commands are not."""

    name = "PATHS"

    def wrap(self, launch: Launch, root: Path, policy: SandboxPolicy) -> Launch:
        """The launch as it is."""
        return launch


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """What came of a command."""

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
    """Why it could not be started."""

    @property
    def truncated(self) -> bool:
        """True when output was left out."""
        return bool(self.stdout_dropped or self.stderr_dropped)


class Launcher:
    """Starts commands for one sandbox."""

    def __init__(self, root: Path, policy: SandboxPolicy, confinement: Confinement | None = None) -> None:
        self.root = root
        self.policy = policy
        self.confinement: Confinement = confinement or Unconfined()

    async def run(self, launch: Launch, cwd: int, *, limit_s: float, output: OutputSink) -> ProcessResult:
        """Run a program to its end; afterwards none of its processes is alive.

        Args:
            launch: executable, arguments and the whole environment.
            cwd: descriptor of the working directory.
            limit_s: wall-clock seconds.
            output: receives output as it comes, on the event loop.

        Raises:
            asyncio.CancelledError: after the whole tree has ended.
        """
        mark = secrets.token_hex(12)
        launch = replace(launch, env={**launch.env, _MARK: mark})
        launch = self.confinement.wrap(launch, self.root, self.policy)
        running = _Running(self.policy, mark, limit_s)
        running.start(launch, cwd)
        try:
            return await to_the_end(running.follow(output), on_cancel=running.stop)
        finally:
            running.stop()


class _Running:
    """One supervisor and its pipes."""

    def __init__(self, policy: SandboxPolicy, mark: str, limit_s: float) -> None:
        self._policy = policy
        self._mark = mark
        self._limit_s = limit_s
        self._life = -1
        self._ends: tuple[int, int, int] = (-1, -1, -1)
        self._overflowed = False
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, launch: Launch, cwd: int) -> None:
        """Start the supervisor; about a millisecond, so it may run on the loop."""
        pipes = [os.pipe() for _ in range(4)]
        (life_read, self._life), (out, out_write), (err, err_write), (status, status_write) = pipes
        try:
            with tempfile.TemporaryFile() as file:
                file.write(json.dumps(self._specification(launch, cwd, status_write)).encode())
                file.seek(0)
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", _SUPERVISOR, str(file.fileno())],
                    stdin=life_read,
                    stdout=out_write,
                    stderr=err_write,
                    pass_fds=(cwd, status_write, file.fileno()),
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

    def _specification(self, launch: Launch, cwd: int, status: int) -> dict[str, Any]:
        policy = self._policy
        return {
            "executable": launch.executable,
            "argv": list(launch.argv),
            "env": dict(launch.env),
            "cwd": cwd,
            "status": status,
            "limit_s": self._limit_s,
            "grace_s": policy.grace_s,
            "memory_bytes": policy.memory_bytes,
            "disk_floor_bytes": policy.disk_floor_bytes,
            "processes": policy.processes,
            "rlimits": {
                "RLIMIT_CORE": 0,
                "RLIMIT_DATA": policy.memory_bytes,
                "RLIMIT_FSIZE": policy.file_bytes,
                "RLIMIT_NOFILE": policy.open_files,
            },
        }

    def stop(self) -> None:
        """Cut the life line: the supervisor ends the tree. Harmless when done twice."""
        if self._life >= 0:
            os.close(self._life)
            self._life = -1

    def _overflow(self) -> None:
        self._overflowed = True
        self.stop()

    async def follow(self, output: OutputSink) -> ProcessResult:
        """Read until the supervisor reports, and put the result together."""
        started = time.monotonic()
        captures, transports = await self._connect(output)
        out, err, status = captures
        process = self._process
        assert process is not None, "follow comes after start"
        try:
            try:
                async with asyncio.timeout(self._limit_s + self._policy.grace_s + _BACKSTOP_S):
                    await status.ended
            except TimeoutError:
                process.send_signal(signal.SIGKILL)
            self.stop()
            await asyncio.to_thread(process.wait)
            report = _report(status.text)
            if report is None:
                await asyncio.to_thread(_kill_marked, self._mark)
            await asyncio.wait({out.ended, err.ended}, timeout=_DRAIN_S)
        finally:
            for transport, capture in zip(transports, captures, strict=True):
                transport.close()
                capture.finish()
        return self._result(report, out, err, time.monotonic() - started)

    async def _connect(self, output: OutputSink) -> tuple[list[Capture], list[asyncio.BaseTransport]]:
        policy, loop = self._policy, asyncio.get_running_loop()
        captures: list[Capture] = []
        transports: list[asyncio.BaseTransport] = []
        for name, end in zip(("stdout", "stderr", ""), self._ends, strict=True):
            capture = Capture(
                name,
                head=policy.output_head_bytes if name else _MAX_TRUST_PIPE,
                tail=policy.output_tail_bytes if name else 0,
                stream=policy.streamed_bytes if name else 0,
                limit=policy.output_bytes,
                sink=output,
                overflow=self._overflow,
            )
            transport, _ = await loop.connect_read_pipe(partial(_same, capture), os.fdopen(end, "rb"))
            captures.append(capture)
            transports.append(transport)
        return captures, transports

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
            leftover=report["leftover"],
            problem=report["problem"],
        )


def _same(capture: Capture) -> Capture:
    return capture


def _report(text: str) -> dict[str, Any] | None:
    """The supervisor's last word, or None when it died before."""
    try:
        report = json.loads(text)
    except json.JSONDecodeError:
        return None
    return report if isinstance(report, dict) else None


def _kill_marked(mark: str) -> None:
    """Kill every process that carries the run's mark in its environment; the supervisor is gone."""
    wanted = f"{_MARK}={mark}".encode()
    until = time.monotonic() + 5
    while time.monotonic() < until:
        found = [pid for pid in _pids() if wanted in _environment(pid)]
        if not found:
            return
        for pid in found:
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
