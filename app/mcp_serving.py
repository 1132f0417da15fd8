"""`pilothouse mcp`: memory and the sandbox of a workspace, served to other agents over MCP.

Each call goes through an agent of the workspace made for that, in the jail, on record under the client's
name, and passes the gate as an agent's action does: rules forbid and allow it, and what would be asked waits
for the operator where one sits at the terminal that serves, else it is refused. Standard output carries the
protocol and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shlex
import signal
import sys
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.headless import opened
from app.settings import Settings
from engine.domain import commands as cmd
from engine.domain.action import ErrorCode, ResultStatus
from engine.domain.text import clean_line
from engine.engine import Engine
from engine.journal import events as ev
from engine.journal.errors import JournalError
from engine.mcp.serving import Offer, Said, loopback_socket, serve_http, serve_streams, served
from engine.sandbox.policy import Tier
from engine.steering.approvals import NOBODY, UNANSWERED
from engine.steering.calls import make_call
from engine.steering.rules import offered, rule_text
from engine.thinkers.procedural import ProceduralThinker

AGENT = "mcp"
"""The agent through whose pipeline and session calls go."""
TOOLS = ("simple_coder", "memory")
_NO_MODEL = {"thinker": ProceduralThinker.name}
TOKEN = "PILOTHOUSE_MCP_TOKEN"
WAIT_S = 120.0
HOW = (
    "the operator of this workspace can allow it, while this server does not run, with: "
    f"pilothouse do --agent {AGENT} {{line}}; or by a rule below [approvals] in pilothouse.toml"
)
"""What a client is told that cannot be answered."""
_UNSERVED = frozenset({("simple_coder", "policy"), ("simple_coder", "help")})
"""What is of use to a person only."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What to serve and how."""

    workspace: Path
    port: int | None = None
    """For HTTP on this machine; None for standard streams, 0 for any port that is free."""
    read_only: bool = False
    """Serve only what changes nothing."""
    accept: Tier | None = None
    wait_s: float = WAIT_S
    """Seconds that the operator has to answer; over standard streams nobody is there."""


async def serve(options: ServeOptions) -> int:
    """Serve until the client leaves or a signal comes; the exit code.

    Raises:
        JournalError: the workspace cannot be opened, or the port cannot be had.
    """
    settings = Settings.load(options.workspace)
    config = settings.engine_config(accept=options.accept)
    # Over standard streams these are the client's, and no person can be asked.
    attended = options.port is not None and options.wait_s > 0 and sys.stdin.isatty()
    async with opened(options.workspace, config) as engine:
        if AGENT not in engine.agents:
            made = await engine.submit(cmd.CreateAgent(agent=AGENT, config=_NO_MODEL), operator="mcp")
            if not made.ok:
                raise JournalError(f"no agent can be made to serve for: {made.message}")
        caller = _EngineCaller(engine, options.wait_s if attended else 0.0)
        server = served(offers(engine, read_only=options.read_only), caller)
        work = serve_streams(server) if options.port is None else _over_http(server, options.port)
        asking = asyncio.create_task(_asking(engine, settings.operator)) if attended else None
        try:
            return await _until_signal(work)
        finally:
            if asking is not None:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)


async def _asking(engine: Engine, operator: str) -> None:
    from app.mcp_asking import TerminalAnswers

    await TerminalAnswers(engine, AGENT, operator, sys.stderr).run()


def offers(engine: Engine, *, read_only: bool = False) -> list[Offer]:
    """The commands that are served: those that agents may call, of the sandbox and of memory."""
    found = []
    for entry in engine.registry.schemas():
        tool, command = entry["tool"], entry["command"]
        spec = engine.registry.get(tool).commands[command]
        changes = spec.mutates or spec.writes
        if tool in TOOLS and (tool, command) not in _UNSERVED and not (read_only and changes):
            found.append(
                Offer(entry["name"], tool, command, spec.description, entry["input_schema"], changes)
            )
    return found


async def _over_http(server: Any, port: int) -> None:
    try:
        listening = loopback_socket(port)
    except OSError as error:
        raise JournalError(f"port {port} of this machine cannot be had: {error.strerror}") from error
    token = os.environ.get(TOKEN) or secrets.token_urlsafe(32)
    host, number = listening.getsockname()

    def ready() -> None:
        said = "" if os.environ.get(TOKEN) else f"\nAuthorization: Bearer {token}"
        sys.stderr.write(f"serving at http://{host}:{number}/mcp{said}\n")
        sys.stderr.flush()

    await serve_http(server, listening, token, ready)


async def _until_signal(work: Any) -> int:
    """Await the work; 0 at its end, 130 or 143 where a signal came before."""
    loop = asyncio.get_running_loop()
    came: list[int] = []
    task = asyncio.ensure_future(work)

    def end(number: int) -> None:
        came.append(number)
        task.cancel()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, end, number)
    try:
        await task
    except asyncio.CancelledError:
        if not came:
            raise
    except OSError as error:
        raise JournalError(f"it cannot be served: {error}") from error
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
    return 128 + came[0] if came else 0


@dataclass(slots=True)
class _Asked:
    """A call on its way: the events and the action that it has come to."""

    command: str
    client: str
    offer: Offer
    args: Mapping[str, Any]
    queued: str = ""
    action: str = ""


class _EngineCaller:
    """Takes calls through the engine's door.

    Args:
        engine: the workspace.
        wait_s: seconds that the operator has to answer; 0 where nobody is there.
    """

    def __init__(self, engine: Engine, wait_s: float = 0.0) -> None:
        self._engine, self._wait_s = engine, wait_s
        self._aside: set[asyncio.Task[None]] = set()

    async def call(self, offer: Offer, args: Mapping[str, Any], client: str) -> Said:
        """See `engine.mcp.serving.Caller`; a call whose client no longer wants it is cut off."""
        engine = self._engine
        since = await engine.head()
        command = cmd.CallTool(
            agent=AGENT,
            tool=offer.tool,
            command=offer.command,
            args=dict(args),
            client=client or "client",
            wait_s=self._wait_s,
        )
        handing = asyncio.ensure_future(engine.submit(command, operator="mcp"))
        try:
            receipt = await asyncio.shield(handing)
        except asyncio.CancelledError:
            self._later(self._taken_back(handing, client or "client", offer, args))
            raise
        if not receipt.ok:
            return Said(False, {"message": clean_line(receipt.message, limit=1_000)})
        asked = _Asked(receipt.event, client or "client", offer, args)
        fault = asyncio.ensure_future(engine.faulted(AGENT))
        answer = asyncio.ensure_future(self._answer(asked, since))
        try:
            await asyncio.wait({fault, answer}, return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else _no_answer(fault.result() or "its agent is gone")
        except JournalError as error:
            return _no_answer(str(error))
        except asyncio.CancelledError:
            self._later(self._cut(asked))
            raise
        finally:
            for task in (fault, answer):
                task.cancel()

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def _taken_back(
        self, handing: asyncio.Future[cmd.Receipt], client: str, offer: Offer, args: Mapping[str, Any]
    ) -> None:
        receipt = await handing
        if receipt.ok:
            await self._cut(_Asked(receipt.event, client, offer, args))

    async def _cut(self, asked: _Asked) -> None:
        """Take a call back that waits for its turn or for the operator; end it where it runs."""
        if not asked.queued:
            asked.queued = await self._queued(asked.command)
        if asked.queued:
            drop = cmd.DropCall(agent=AGENT, call=asked.queued, client=asked.client)
            await self._engine.submit(drop, operator="mcp")

    async def _gone(self, asked: _Asked) -> bool:
        """Whether a call neither waits nor is on its way any more."""
        if not asked.queued or asked.action:
            return False
        state = await self._engine.view(AGENT)
        there = state.action is not None and state.action.queued == asked.queued
        return not there and all(one.event != asked.queued for one in state.requests)

    async def _queued(self, command: str) -> str:
        """The event by which a command's call was queued."""
        state = await self._engine.view(AGENT)
        refs = [one.event for one in state.requests] + ([state.action.queued] if state.action else [])
        for ref in filter(None, refs):
            event = await self._engine.store.get(ref)
            if event is not None and command in event.causes:
                return ref
        return ""

    async def _answer(self, asked: _Asked, since: int) -> Said:
        """What came of the call that a command asked for, from the journal."""
        async for event in self._engine.events(since, stream=AGENT):
            said = ev.payload_of(event)
            if isinstance(said, ev.OperatorActionQueued) and asked.command in event.causes:
                asked.queued = event.ref
            elif isinstance(said, ev.ActionRequested) and asked.queued and asked.queued in event.causes:
                asked.action = said.action
            elif isinstance(said, ev.ActionFinished) and said.action == asked.action:
                return await self._finished(said, asked)
            elif isinstance(said, ev.ActionCancelled | ev.ActionWithdrawn) and said.action == asked.action:
                return Said(False, {"message": clean_line(f"it was cut off: {said.reason}", limit=300)})
            elif isinstance(said, ev.AgentStopped | ev.AgentHeld) and await self._gone(asked):
                return Said(False, {"message": "it was dropped: the operator stopped what runs here"})
        raise JournalError("the journal has ended")

    async def _finished(self, said: ev.ActionFinished, asked: _Asked) -> Said:
        data: dict[str, Any] = dict(said.result)
        if said.blob is not None and (whole := await self._engine.blob(said.blob)) is not None:
            with suppress(ValueError):
                data = json.loads(whole)
        if said.status is ResultStatus.SUCCESS:
            return Said(True, data)
        if said.code is ErrorCode.NOT_ALLOWED and (how := await self._how(asked, str(data.get("message")))):
            data["message"] = f"{data['message']}; {how}"
        told = {"reason": said.code.value if said.code else "", **data}
        plain = data.get("message") if set(data) == {"message"} else None
        return Said(False, {"message": plain or json.dumps(told, ensure_ascii=False)})

    async def _how(self, asked: _Asked, message: str) -> str:
        """How the operator can allow what nobody answered; empty where a rule or a person forbade it."""
        spec = self._engine.describe_command(asked.offer.command, asked.offer.tool)
        if spec is None or not message.startswith(
            tuple(f"not allowed: {why}" for why in (NOBODY, UNANSWERED))
        ):
            return ""
        cwd = (await self._engine.view(AGENT)).sandbox.cwd
        rule = rule_text(offered(make_call(spec, asked.offer.tool, asked.args, cwd=cwd)))
        line = f"allow always {rule}"
        plain = not set(line) & set('"$`\\!')
        return HOW.format(line=f'"{line}"' if plain else shlex.quote(line))


def _no_answer(why: str) -> Said:
    return Said(False, {"message": f"the workspace cannot answer: {clean_line(why, limit=300)}"})
