"""A server's program: started, connected over its standard streams, and ended with all that it started.

It is run by the sandbox's launcher, so that a supervisor of its own ends its whole tree, also when the
cockpit is killed. Usually it is the operator's own program: it has no jail and no limits, no privileges, and
an environment made of a few names and of what `mcp.json` says. With `"jail": true` it is held like an agent's
command, under the workspace's policy.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from engine.sandbox.completion import run_to_completion
from engine.sandbox.jail import Confinement, Launch, Unconfined
from engine.sandbox.policy import GIB, SandboxPolicy, Tier
from engine.sandbox.process import Launcher, ProcessResult
from engine.sandbox.programs import child_environment
from engine.sandbox.tier import JailRefusal, best_jail
from engine.tools.mcp.settings import ServerSettings, expanded
from engine.value import dataclass, replace

CLOSE_S = 2.0
"""Seconds between closing the program's input and SIGTERM."""
TERMINATE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""
LINE_LIMIT = 16 * 1024 * 1024
"""Bytes of one message."""
_LIFE_S = 10 * 366 * 86_400.0
_KEPT = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")
"""What an operator's own program gets of the cockpit's environment."""
_BOUNDLESS = 1 << 50


class StartError(Exception):
    """The program could not be started; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class ProgramEnvironment:
    """Where servers' programs run."""

    workspace: Path
    root: Path
    """The sandbox root, for those in the jail."""
    policy: SandboxPolicy
    environ: Mapping[str, str]
    """The cockpit's own environment."""


def unlimited_policy() -> SandboxPolicy:
    """Limits of a program that is the operator's own: none that it would meet."""
    amounts: dict[str, Any] = {
        **dict.fromkeys(("cpu_s", "memory_bytes", "address_bytes", "file_bytes", "disk_bytes"), _BOUNDLESS),
        "memory_floor_bytes": 1,
        "disk_floor_bytes": 1,
        "output_bytes": _BOUNDLESS,
        "open_files": 4096,
        "processes": 100_000,
        "streamed_bytes": GIB,
    }
    return SandboxPolicy(grace_s=TERMINATE_S, nice=1, accept_paths=True, **amounts)


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What an operator's own program gets where its settings say nothing."""
    return {name: value for name, value in environ.items() if name in _KEPT or name.startswith("LC_")}


@dataclass(slots=True)
class Streams:
    """The program's ends as the SDK is given them."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    ended: asyncio.Task[ProcessResult]
    """Done when the program and all that it started are gone."""
    tier: Tier


_Plan = tuple[Launch, Path, Confinement, Launcher]
"""A program, its working directory, what holds it and what runs it."""


@asynccontextmanager
async def running_program(
    settings: ServerSettings, around: ProgramEnvironment, heard: Callable[[str], None]
) -> AsyncIterator[Streams]:
    """The server's program while the block runs; afterwards no process of it is left.

    Args:
        settings: of the server.
        around: where it runs.
        heard: receives what it writes to standard error.

    Raises:
        StartError: it could not be started.
        MissingVariableError: a variable that the settings name is not set.
    """
    with tempfile.TemporaryDirectory(prefix="mcp-", ignore_cleanup_errors=True) as place:
        plan = await asyncio.to_thread(_plan, settings, around, Path(place))
        async with _started(plan, heard) as streams:
            yield streams


def _plan(settings: ServerSettings, around: ProgramEnvironment, place: Path) -> _Plan:
    """How the program is run; an operator's own has an empty directory as the root that limits look at."""
    given = expanded(settings.env, around.environ)
    if settings.jail:
        policy = replace(around.policy.for_jobs, grace_s=TERMINATE_S)
        jail = best_jail(policy)
        if isinstance(jail, JailRefusal):
            raise StartError(jail.message)
        env, root = child_environment(around.root, policy, None, around.environ) | given, around.root
        cwd = root / settings.cwd
        if not cwd.resolve().is_relative_to(root.resolve()):
            raise StartError(f"its cwd {settings.cwd} is not beneath the sandbox root")
    else:
        policy, jail, root = unlimited_policy(), Unconfined(), place
        env = own_environment(around.environ) | given
        cwd = Path(settings.base or around.workspace) / settings.cwd
    if not cwd.is_dir():
        raise StartError(f"its cwd {settings.cwd} is no directory")
    words = (_program(settings.command, cwd, env), *settings.args)
    return Launch(words[0], words, env, umask=0o022), cwd, jail, Launcher(root, policy)


def _program(command: str, cwd: Path, env: Mapping[str, str]) -> str:
    """The program's path."""
    if "/" in command:
        path = cwd / Path(command).expanduser()
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    elif program := shutil.which(command, path=env.get("PATH", os.defpath)):
        return program
    raise StartError(f"there is no program {command!r}: install it, or write its whole path")


@asynccontextmanager
async def _started(plan: _Plan, heard: Callable[[str], None]) -> AsyncIterator[Streams]:
    launch, directory, jail, launcher = plan
    descriptors: list[int] = []
    try:
        descriptors += os.pipe()
        descriptors += os.pipe()
        descriptors.append(os.open(directory, os.O_RDONLY | os.O_DIRECTORY))
    except OSError as error:
        _close(descriptors)
        raise StartError(f"its pipes cannot be made: {error}") from error
    its_input, into, out, its_output, cwd = descriptors
    started = asyncio.Event()
    run = launcher.run(
        launch,
        cwd,
        jail=jail,
        limit_s=_LIFE_S,
        output=lambda _stream, text: heard(text),
        standard=(its_input, its_output),
        started=started.set,
    )
    ended = asyncio.create_task(run, name=f"mcp {launch.executable}")
    writer: asyncio.StreamWriter | None = None
    try:
        await _up(started, ended, launch, jail.tier)
        _close([descriptors.pop(descriptors.index(end)) for end in (its_input, its_output, cwd)])
        descriptors.remove(out)
        reader = await open_reader(out)
        descriptors.remove(into)
        writer = await open_writer(into)
        yield Streams(reader, writer, ended, jail.tier)
    finally:
        await run_to_completion(_end(writer, ended), on_cancel=ended.cancel)
        _close(descriptors)


async def _up(started: asyncio.Event, ended: asyncio.Task[ProcessResult], launch: Launch, tier: Tier) -> None:
    """Wait until the program has been started.

    Raises:
        StartError: it ended before.
    """
    waiting = asyncio.ensure_future(started.wait())
    try:
        await asyncio.wait({waiting, ended}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if not started.is_set():
        result = ended.result()
        if result.problem == os.strerror(errno.ENOENT) and tier is not Tier.PATHS:
            raise StartError(
                f"the jail has no {launch.executable}, or not what it is run by: install it below the "
                'sandbox or for the system, or leave out "jail"'
            )
        raise StartError(result.problem or result.stderr[-300:] or "it ended before it began")


async def _end(writer: asyncio.StreamWriter | None, ended: asyncio.Task[ProcessResult]) -> None:
    """Close its input, wait, and end what is left of it."""
    if writer is not None:
        writer.close()
        await asyncio.wait({ended}, timeout=CLOSE_S)
    ended.cancel()  # the launcher ends the whole tree before it lets itself be cancelled
    await asyncio.wait({ended})


async def open_reader(descriptor: int, limit: int = LINE_LIMIT) -> asyncio.StreamReader:
    """A pipe's end as a stream that reads messages of one line."""
    reader = asyncio.StreamReader(limit=limit)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    return reader


async def open_writer(descriptor: int) -> asyncio.StreamWriter:
    """A pipe's end as a stream that writes."""
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(descriptor, "wb", buffering=0))
    return asyncio.StreamWriter(transport, protocol, None, loop)


StandardStreams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def own_streams() -> AsyncIterator[StandardStreams]:
    """Standard input and output, from now on for nothing else.

    Raises:
        OSError: one of them is neither a pipe, a socket nor a terminal.
    """
    for number, name in ((0, "input"), (1, "output")):
        if stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(f"standard {name} is a file; it has to be a pipe to whoever calls")
    sys.stdout.flush()
    wire_in, wire_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    reader, writer = await open_reader(wire_in), await open_writer(wire_out)
    try:
        yield reader, writer
    finally:
        writer.close()


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
