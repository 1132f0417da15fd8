"""A server's program: started, spoken to over its standard streams, and ended with all that it started.

It is run by the sandbox's launcher, so that a supervisor of its own ends its whole tree, also when the
cockpit is killed. Usually it is the operator's own program: it is held by no jail and no limits, has no
privileges, and its environment is made anew of a few names and what `mcp.json` says. With `"jail": true` it
is held as an agent's command is, under the workspace's policy. The launcher gives no program anything to
read, so the streams are two named pipes, which a shell opens before it becomes the program; then their
names are removed. Source: ontology spec §1.14; data-stack §6.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from engine.mcp.settings import ServerSettings, expanded
from engine.sandbox.confinement import Confinement, Launch, Unconfined
from engine.sandbox.environment import child_environment
from engine.sandbox.policy import GIB, SandboxPolicy, Tier
from engine.sandbox.process import Launcher, ProcessResult
from engine.sandbox.tier import JailRefusal, best_jail

CLOSE_S = 2.0
"""Seconds between closing the program's input and SIGTERM."""
TERMINATE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""
LINE_LIMIT = 16 * 1024 * 1024
"""Bytes of one message."""
_LIFE_S = 10 * 366 * 86_400.0
_READY = b"pilothouse: streams are open\n"
_SHELL = "/bin/sh"
_BECOME = (
    'cd -- "$3" || exit 126; umask 022; unset OLDPWD; exec <"$1" >"$2" || exit 126; '
    f"printf '%s' '{_READY.decode()}'; shift 3; exec \"$@\""
)
_KEPT = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")
"""What an operator's own program gets of the cockpit's environment."""
_BOUNDLESS = 1 << 50
_TO, _FROM = "to", "from"
_ENDS = ((_TO, os.O_RDWR), (_FROM, os.O_RDONLY), (_TO, os.O_WRONLY))


class StartError(Exception):
    """The program could not be started; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where servers' programs run."""

    workspace: Path
    root: Path
    """The sandbox root, for those in the jail."""
    policy: SandboxPolicy
    environ: Mapping[str, str]
    """The cockpit's own environment."""


def own_policy() -> SandboxPolicy:
    """Limits of a program that is the operator's own: none that it would meet."""
    return SandboxPolicy(
        grace_s=TERMINATE_S,
        cpu_s=_BOUNDLESS,
        memory_bytes=_BOUNDLESS,
        address_bytes=_BOUNDLESS,
        memory_floor_bytes=1,
        file_bytes=_BOUNDLESS,
        open_files=4096,
        processes=100_000,
        disk_bytes=_BOUNDLESS,
        disk_floor_bytes=1,
        output_bytes=_BOUNDLESS,
        streamed_bytes=GIB,
        nice=1,
        accept_paths=True,
    )


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


@dataclass(frozen=True, slots=True)
class _Plan:
    words: tuple[str, ...]
    env: dict[str, str]
    cwd: Path
    jail: Confinement
    launcher: Launcher
    pipes: Path
    """Directory that the named pipes are made in."""


@asynccontextmanager
async def running(
    settings: ServerSettings, around: Surroundings, heard: Callable[[str], None]
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
    place = await asyncio.to_thread(_place, settings, around)
    try:
        plan = await asyncio.to_thread(_plan, settings, around, place)
        async with _started(plan, heard) as streams:
            yield streams
    finally:
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, place, ignore_errors=True))


def _place(settings: ServerSettings, around: Surroundings) -> Path:
    inside = around.root / around.policy.tmp if settings.jail else None
    try:
        if inside is not None:
            inside.mkdir(mode=0o700, exist_ok=True)
            if inside.is_symlink():
                raise StartError(f"{around.policy.tmp} at the sandbox root is a link: remove it")
        return Path(tempfile.mkdtemp(prefix="mcp-", dir=inside))
    except OSError as error:
        raise StartError(f"there is no place for its pipes: {error}") from error


def _plan(settings: ServerSettings, around: Surroundings, place: Path) -> _Plan:
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
        policy, jail, root = own_policy(), Unconfined(), place
        env = own_environment(around.environ) | given
        cwd = Path(settings.base or around.workspace) / settings.cwd
    if not cwd.is_dir():
        raise StartError(f"its cwd {settings.cwd} is no directory")
    words = (_found(settings.command, cwd, env), *settings.args)
    return _Plan(words, env, cwd, jail, Launcher(root, policy), place)


def _found(command: str, cwd: Path, env: Mapping[str, str]) -> str:
    """The program's path."""
    if "/" in command:
        path = cwd / Path(command).expanduser()
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    elif found := shutil.which(command, path=env.get("PATH", os.defpath)):
        return found
    raise StartError(f"there is no program {command!r}: install it, or write its whole path")


@asynccontextmanager
async def _started(plan: _Plan, heard: Callable[[str], None]) -> AsyncIterator[Streams]:
    descriptors: list[int] = []
    try:
        pipes = os.open(plan.pipes, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        descriptors.append(pipes)
        for name in (_TO, _FROM):
            os.mkfifo(name, 0o600, dir_fd=pipes)
        # Whoever opens a named pipe waits for the other end: it is there before the program is.
        holder, out, into = (_pipe_end(pipes, name, way, descriptors) for name, way in _ENDS)
        cwd = os.open(plan.launcher.root, os.O_RDONLY | os.O_DIRECTORY)
        descriptors.append(cwd)
    except OSError as error:
        _close(descriptors)
        raise StartError(f"its pipes cannot be made: {error}") from error
    to, fro = plan.pipes / _TO, plan.pipes / _FROM
    argv = ("sh", "-c", _BECOME, "sh", str(to), str(fro), str(plan.cwd), *plan.words)
    run = plan.launcher.run(
        Launch(_SHELL, argv, plan.env),
        cwd,
        jail=plan.jail,
        limit_s=_LIFE_S,
        output=lambda _stream, text: heard(text),
    )
    ended = asyncio.create_task(run, name=f"mcp {plan.words[0]}")
    writer: asyncio.StreamWriter | None = None
    try:
        descriptors.remove(out)
        reader = await _reader(out)
        await _ready(reader, ended)
        _close([holder])
        descriptors.remove(holder)
        for name in (_TO, _FROM):
            os.unlink(name, dir_fd=pipes)
        with suppress(OSError):
            plan.pipes.rmdir()  # a cockpit that is killed leaves nothing behind
        descriptors.remove(into)
        writer = await _writer(into)
        yield Streams(reader, writer, ended, plan.jail.tier)
    finally:
        await _end(writer, ended)
        _close(descriptors)


def _pipe_end(pipes: int, name: str, way: int, descriptors: list[int]) -> int:
    """An end of a named pipe; what somebody in the jail may have put in its place is refused.

    Raises:
        OSError: it is not there, or no named pipe.
    """
    end = os.open(name, way | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=pipes)
    descriptors.append(end)
    if not stat.S_ISFIFO(os.fstat(end).st_mode):
        raise OSError(errno.ENXIO, "it was replaced", name)
    return end


async def _ready(reader: asyncio.StreamReader, ended: asyncio.Task[ProcessResult]) -> None:
    """Wait until the shell has opened both pipes."""
    hearing = asyncio.ensure_future(reader.readexactly(len(_READY)))
    try:
        await asyncio.wait({hearing, ended}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            await hearing
    except asyncio.IncompleteReadError:
        await asyncio.wait({ended})
    finally:
        hearing.cancel()
        await asyncio.gather(hearing, return_exceptions=True)
    if ended.done():
        result = ended.result()
        raise StartError(result.problem or result.stderr[-300:] or "it ended before it began")


async def _end(writer: asyncio.StreamWriter | None, ended: asyncio.Task[ProcessResult]) -> None:
    """Close its input, wait, and end what is left of it; carried out to the end (ontology spec §1.14)."""
    if writer is not None:
        writer.close()
    interrupted = False
    patience = CLOSE_S if writer is not None else 0.0
    while not ended.done():
        try:
            await asyncio.wait({ended}, timeout=patience)
        except asyncio.CancelledError:
            interrupted = True
        patience = TERMINATE_S
        if not ended.done():
            ended.cancel()  # the launcher ends the whole tree before it lets itself be cancelled
            await _gone(ended)
    if interrupted:
        raise asyncio.CancelledError


async def _gone(ended: asyncio.Task[ProcessResult]) -> None:
    with suppress(asyncio.CancelledError):
        await asyncio.wait({ended})


async def _reader(descriptor: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=LINE_LIMIT)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    return reader


async def _writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(descriptor, "wb", buffering=0))
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
