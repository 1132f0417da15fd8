"""`pilothouse serve`: the engine of a workspace without a screen, which other programs of its user use."""

from __future__ import annotations

import argparse
import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from app.cli.beside import UNUSABLE
from app.cli.options import Answer, accepted_tier, print_error, run_answer, workspace_of
from app.cli.ps import engine_row, row_lines
from app.commands.headless import open_engine
from app.commands.missions import AgentFaultError, wait_until
from app.commands.settings import Settings
from app.commands.settings_tables import NotifyTable
from app.commands.watchdog import ending_on
from app.gateways.addresses import AddressError, name_of, new_address, record_of
from app.gateways.engine_client import EngineClient
from app.gateways.notifying import Notifier
from app.gateways.protocol import RESTARTING
from app.gateways.socket_server import Companion, EngineServer
from app.gateways.web.process import WebOptions, WebProcess
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core.agents import RunState
from engine.core.journal import JournalError
from engine.core.reasons import Reason
from engine.core.state import AgentState
from engine.core.text import clean_line
from engine.value import replace

Ready = Callable[[Path, Iterable[str]], object]
UNIT = "PILOTHOUSE_UNIT"
"""Names the systemd unit to the program that it starts."""
END_S = 30.0
"""How long a stopped engine may take to end."""
LOG_BYTES = 1_048_576
REOPENED = Reason("run.reopened")
"""Why an agent is paused that ran when its engine ended."""


def run(options: argparse.Namespace) -> int:
    """Serve, or do something about the engine that serves."""
    workspace = workspace_of(options)
    match options.what:
        case "install":
            return run_answer(options, install(workspace, _web_words(options)))
        case "status":
            return run_answer(options, status(workspace))
        case "stop":
            return run_answer(options, stop(workspace))
    try:
        if options.what == "restart":
            return _restart(options, workspace)
        if (record := record_of(workspace)) is not None:
            who = f"a {record.kind} (process {record.pid})"
            return print_error(f"{who} has {workspace} open and serves it already: pilothouse ps shows all")
        if options.what == "background":
            return _in_background(partial(_serve, options, workspace), workspace)
        return _serve(options, workspace, _say)
    except (JournalError, OSError, *UNUSABLE) as error:
        return print_error(str(error))


def _serve(options: argparse.Namespace, workspace: Path, ready: Ready) -> int:
    settings = Settings.load(workspace, trust=options.trust)
    pages: WebProcess | None = None
    if options.web is not None:
        web = settings.web
        options.tls_cert, options.tls_key = options.tls_cert or web.tls_cert, options.tls_key or web.tls_key
        cert, key = (file.absolute() if file else None for file in (options.tls_cert, options.tls_key))
        pages = WebProcess(workspace, WebOptions(options.web or web.address, cert, key, web.hosts))
    config = settings.engine_config(accept=accepted_tier(options))
    config = replace(config, crew=replace(config.crew, remote=options.remote_handoffs))
    return asyncio.run(serve(workspace, config, ready, pages, settings.away, go_on=options.go_on))


def _say(workspace: Path, lines: Iterable[str]) -> None:
    """Say on the terminal that a workspace is served."""
    for line in (f"serving {workspace} (process {os.getpid()})", *lines):
        print(clean_line(line), flush=True)


def _web_words(options: argparse.Namespace) -> list[str]:
    """The words that ask for web pages as the options do."""
    if options.web is None:
        return []
    words = ["--web", options.web] if options.web else ["--web"]
    for name, file in (("--tls-cert", options.tls_cert), ("--tls-key", options.tls_key)):
        words += [name, str(file.absolute())] if file is not None else []
    return words


# ------------------------------------------------------------------ serving


class Ending:
    """When and how a serving engine ends."""

    def __init__(self) -> None:
        self.engine: Engine | None = None
        """None while it is opening."""
        self.reason = "the engine was told to end"
        self.code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """The exit code, once the end was asked for."""

    def by(self, number: int) -> None:
        """A signal asks for it."""
        if not self.code.done():
            self.code.set_result(0 if number == signal.SIGTERM else 128 + number)

    async def asked(self, hand_over: bool) -> dict[str, Any]:
        """A client asks for it; which agents were running, with how they are set running again."""
        running = await self._settled(self.engine) if hand_over and self.engine is not None else []
        self.reason = RESTARTING if hand_over else self.reason
        self.by(signal.SIGTERM)
        return {"pid": os.getpid(), "running": [each.model_dump(mode="json") for each in running]}

    async def _settled(self, engine: Engine) -> list[cmd.Run]:
        """Pause every agent and wait until its action has ended; cancelled, they go on."""
        running: list[cmd.Run] = []
        states = [await engine.view(agent) for agent in engine.agents if not engine.fault(agent)]
        try:
            for state in states:
                if state.run is RunState.RUNNING:
                    running.append(_run_again(state))
                    await engine.submit(cmd.Pause(agent=state.agent_id), operator="serve")
            await asyncio.gather(*(_rested(engine, state.agent_id) for state in states))
        except asyncio.CancelledError:
            for command in running:
                await asyncio.shield(engine.submit(command, operator="serve"))
            raise
        return running


def _run_again(state: AgentState) -> cmd.Run:
    """The command that lets an agent go on as it ran."""
    left = None if state.max_loops is None else max(1, state.max_loops - state.loops)
    return cmd.Run(agent=state.agent_id, max_loops=left, until=state.until, ask=state.config.ask)


async def _go_on_after_crash(engine: Engine) -> None:
    """Set the agents running again that ran when the engine before this one was killed."""
    states = [await engine.view(agent) for agent in engine.agents if not engine.fault(agent)]
    for state in states:
        if state.run is RunState.PAUSED and state.run_reason == REOPENED:
            await engine.submit(_run_again(state), operator="serve")


async def _rested(engine: Engine, agent: str) -> None:
    """Wait until no action of an agent is under way."""
    with suppress(AgentFaultError):  # it does nothing any more
        await wait_until(engine, agent, lambda state: not state.busy)


async def serve(
    workspace: Path,
    config: EngineConfig,
    ready: Ready,
    pages: WebProcess | None = None,
    away: NotifyTable | None = None,
    *,
    go_on: bool = False,
) -> int:
    """Serve a workspace until a signal or a client asks for the end; the exit code.

    Args:
        workspace: its directory.
        config: how it is opened.
        ready: called once other programs can use the engine, with the workspace and what is to be said.
        pages: serves web pages beside it.
        away: where the operator is told of what waits.
        go_on: let agents run again that ran when the last engine was killed.

    Raises:
        JournalError: the workspace cannot be opened, or no client could reach the engine.
        AddressError: no client could connect.
    """
    ending = Ending()
    with ending_on((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), ending.by):
        async with open_engine(workspace, config) as engine:
            ending.engine = engine
            notifier = Notifier(engine, away or NotifyTable(), pages.url if pages is not None else "")
            beside: list[Companion] = [notifier, *([pages] if pages is not None else [])]
            unit = os.environ.get(UNIT, "")
            server = EngineServer(engine, "serve", stop=ending.asked, unit=unit, companions=beside)
            await server.begin()
            if server.trouble:
                raise JournalError(server.trouble)
            try:
                if go_on:
                    await _go_on_after_crash(engine)
                ready(workspace, pages.lines() if pages is not None else ())
                return await ending.code
            finally:
                await server.close(ending.reason)


def _in_background(work: Callable[[Ready], int], workspace: Path) -> int:
    """Do it in a process of its own without a terminal, and return once it serves or has failed.

    Raises:
        AddressError: there is no place for its log.
    """
    log = new_address(workspace).file("log")
    hear, tell = os.pipe()
    if (child := os.fork()) == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(hear)
            os._exit(_detached(work, log, tell))
        os._exit(0)
    os.close(tell)
    os.waitpid(child, 0)
    with os.fdopen(hear, encoding="utf-8", errors="replace") as pipe:
        heard, *lines = pipe.read().strip().split("\n")
    if not heard.isdigit():
        return print_error(heard or f"it ended before it served: see {log}")
    for line in (f"serving {workspace} (process {heard}), log: {log}", *lines):
        print(clean_line(line))
    return 0


def _detached(work: Callable[[Ready], int], log: Path, tell: int) -> int:
    """Serve with the log as standard output and error; says on a pipe that it serves, or what is wrong."""

    def ready(_workspace: Path, lines: Iterable[str]) -> None:
        os.write(tell, "\n".join((str(os.getpid()), *lines)).encode())
        os.close(tell)

    _print_to(log)
    try:
        return work(ready)
    except (JournalError, OSError, *UNUSABLE) as error:
        sys.stderr.write(f"{error}\n")
        os.write(tell, f" {error}".encode())
        return 2
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _print_to(log: Path) -> None:
    """Have a log in the place of standard output and error, and nothing to read."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    end, null = os.open(log, flags, 0o600), os.open(os.devnull, os.O_RDONLY)
    if os.fstat(end).st_size > LOG_BYTES:
        os.ftruncate(end, 0)
    with suppress(OSError):  # a terminal that is gone
        sys.stdout.flush()
    for number, target in ((null, 0), (end, 1), (end, 2)):
        os.dup2(number, target)
    os.close(end)
    os.close(null)


def log_instead_of_terminal(workspace: Path) -> None:
    """Let go of the terminal's descriptors; what is printed goes to the engine's log where there is one."""
    try:
        _print_to(new_address(workspace).file("log"))
    except (AddressError, OSError):
        _print_to(Path(os.devnull))


# ------------------------------------------------------------------ the one that serves


async def status(workspace: Path) -> Answer:
    """How the engine of a workspace is; exit code 1 where there is none."""
    if (record := await asyncio.to_thread(record_of, workspace)) is None:
        return 1, {"workspace": str(workspace), "pid": None}, f"no engine has {workspace} open"
    row = await engine_row(record)
    return int(bool(row["trouble"])), row, "\n".join(row_lines(row))


async def stop(workspace: Path) -> Answer:
    """End the engine that serves a workspace, and wait until its program has ended."""
    try:
        ended = await _ended(workspace, hand_over=False)
    except UNUSABLE as error:
        return 1, {"ok": False, "message": str(error)}, str(error)
    if ended is None:
        return 0, {"ok": True, "pid": None}, f"no engine has {workspace} open"
    return 0, {"ok": True, "pid": ended["pid"]}, f"process {ended['pid']} has ended"


async def _ended(workspace: Path, *, hand_over: bool) -> dict[str, Any] | None:
    """What the engine of a workspace said before it ended; None where there was none.

    Raises:
        AddressError, ProtocolError, EngineLostError: it cannot be ended; the message says why.
    """
    client = await EngineClient.open(workspace)
    if client is None:
        return None
    process = os.pidfd_open(int(client.hello["pid"]))
    try:
        answer: dict[str, Any] = await client.ask("stop", hand_over=hand_over)
        await client.close()
        if not (await asyncio.to_thread(select.select, [process], [], [], END_S))[0]:
            raise AddressError(f"process {answer['pid']} was told to end and still runs after {END_S:g} s")
    finally:
        os.close(process)
        await client.close()
    return answer


def _restart(options: argparse.Namespace, workspace: Path) -> int:
    """End the engine that serves behind the actions under way, and start this program's in its place."""
    record = record_of(workspace)
    if options.web is None and (kept := asyncio.run(_web_of(workspace))) is not None:
        options.web, *files = kept
        options.tls_cert, options.tls_key = (Path(file) if file else None for file in files)
    print("waiting for the end of actions under way; ctrl+c lets the agents go on as they are", flush=True)
    ended = asyncio.run(_ended(workspace, hand_over=True))
    if record is not None and record.unit:
        code = subprocess.run(["systemctl", "--user", "restart", record.unit], check=False).returncode
    else:
        code = _in_background(partial(_serve, options, workspace), workspace)
    return code or asyncio.run(_go_on(workspace, ended["running"] if ended is not None else []))


async def _web_of(workspace: Path) -> tuple[str, str, str] | None:
    """How the engine of a workspace serves web pages: the address, certificate and key."""
    if (client := await EngineClient.open(workspace, watch=True)) is None:
        return None
    try:
        web = (await client.ask("health")).get("web")
        return (web["address"], *web["tls"]) if web else None
    finally:
        await client.close()


async def _go_on(workspace: Path, running: list[dict[str, Any]]) -> int:
    """Set the agents running again that were, whoever holds their controls."""
    client = await EngineClient.open(workspace, "serve")
    if client is None:
        return print_error(f"the engine of {workspace} has ended at once; its log says why")
    try:
        for command in running:
            receipt = await client.ask("submit", command=command)
            if receipt["ok"]:  # its goal may have ended with its last action
                print(f"{command['agent']}: {receipt['message']}")
    finally:
        await client.close()
    return 0


# ------------------------------------------------------------------ systemd


async def install(workspace: Path, more: Sequence[str] = ()) -> Answer:
    """Write a user unit that serves a workspace, and say how it is enabled; `more`: words for `serve`."""
    return await asyncio.to_thread(_installed, workspace, more)


def _installed(workspace: Path, more: Sequence[str]) -> Answer:
    """Write the unit; blocking."""
    text = str(workspace.resolve())
    if not text.isprintable():
        return 2, {}, "the path of this workspace has characters that a unit cannot have; rename it"
    name = f"pilothouse-{name_of(workspace)[:12]}.service"
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    file = Path(config) / "systemd/user" / name
    line = [sys.executable, "-P", "-m", "app.cli", "serve", "--workspace", text, *more]
    kept = {each: os.environ[each] for each in ("PILOTHOUSE_HOME",) if os.environ.get(each)}
    content = (
        Path(__file__)
        .with_suffix(".service")
        .read_text("utf-8")
        .format(
            workspace=text.replace("%", "%%"),
            program=" ".join(map(_quoted, line)),
            unit=_quoted(f"{UNIT}={name}"),
            environment="".join(f"Environment={_quoted(f'{key}={value}')}\n" for key, value in kept.items()),
        )
    )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    except OSError as error:
        return 1, {"ok": False, "message": str(error)}, f"{file} cannot be written: {error.strerror}"
    there = Path("/run/systemd/system").is_dir()
    how = ["systemctl --user daemon-reload", f"systemctl --user enable --now {name}"]
    how.append("loginctl enable-linger")
    answer = {"ok": there, "file": str(file), "unit": name, "commands": how}
    if not there:
        return 1, answer, f"{file} is written, but no systemd runs on this machine: use serve --background"
    return 0, answer, "\n".join([f"{file} is written; enable it:", *(f"  {each}" for each in how)])


def _quoted(text: str) -> str:
    """A word of a unit file."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
