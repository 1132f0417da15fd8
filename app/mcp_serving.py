"""`pilothouse mcp`: memory and the sandbox of a workspace, served to other agents over MCP.

Each call is a call of the operator's who started it, by an agent of the workspace made for that: through
the one gate and pipeline, in the jail, on record under the client's name. Standard output carries the
protocol and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.headless import opened
from app.settings import Settings
from engine.domain import commands as cmd
from engine.domain.action import ResultStatus
from engine.domain.stopping import StopGrade
from engine.domain.text import clean_line
from engine.engine import Engine
from engine.journal import events as ev
from engine.journal.errors import JournalError
from engine.mcp.serving import Offer, Said, loopback_socket, serve_http, serve_streams, served
from engine.sandbox.policy import Tier
from engine.thinkers.procedural import ProceduralThinker

AGENT = "mcp"
"""The agent through whose pipeline and session calls go."""
TOOLS = ("simple_coder", "memory")
_NO_MODEL = {"thinker": ProceduralThinker.name}
TOKEN = "PILOTHOUSE_MCP_TOKEN"
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


async def serve(options: ServeOptions) -> int:
    """Serve until the client leaves or a signal comes; the exit code.

    Raises:
        JournalError: the workspace cannot be opened, or the port cannot be had.
    """
    config = Settings.load(options.workspace).engine_config(accept=options.accept)
    async with opened(options.workspace, config) as engine:
        if AGENT not in engine.agents:
            made = await engine.submit(cmd.CreateAgent(agent=AGENT, config=_NO_MODEL), operator="mcp")
            if not made.ok:
                raise JournalError(f"no agent can be made to serve for: {made.message}")
        server = served(offers(engine, read_only=options.read_only), _EngineCaller(engine))
        work = serve_streams(server) if options.port is None else _over_http(server, options.port)
        return await _until_signal(work)


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
    queued: str = ""
    action: str = ""


class _EngineCaller:
    """Takes calls through the engine's door."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._aside: set[asyncio.Task[None]] = set()

    async def call(self, offer: Offer, args: Mapping[str, Any], client: str) -> Said:
        """See `engine.mcp.serving.Caller`; a call whose client no longer wants it is cut off."""
        engine = self._engine
        since = await engine.head()
        command = cmd.CallTool(agent=AGENT, tool=offer.tool, command=offer.command, args=dict(args))
        receipt = await engine.submit(command, operator=f"mcp:{client or 'client'}")
        if not receipt.ok:
            return Said(False, {"message": clean_line(receipt.message, limit=1_000)})
        asked = _Asked(receipt.event)
        fault = asyncio.ensure_future(engine.faulted(AGENT))
        answer = asyncio.ensure_future(self._answer(asked, since))
        try:
            await asyncio.wait({fault, answer}, return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else _no_answer(fault.result() or "its agent is gone")
        except JournalError as error:
            return _no_answer(str(error))
        except asyncio.CancelledError:
            cutting = asyncio.create_task(self._cut(asked))
            self._aside.add(cutting)
            cutting.add_done_callback(self._aside.discard)
            raise
        finally:
            for task in (fault, answer):
                task.cancel()

    async def _cut(self, asked: _Asked) -> None:
        """End the call's action where it is the one that runs; one that waits for its turn is left to run."""
        state = await self._engine.view(AGENT)
        if state.acting and state.action is not None and state.action.id == asked.action:
            await self._engine.submit(cmd.Stop(agent=AGENT, grade=StopGrade.CANCEL), operator="mcp")

    async def _answer(self, asked: _Asked, since: int) -> Said:
        """What came of the call that a command asked for, from the journal."""
        async for event in self._engine.events(since, stream=AGENT):
            said = ev.payload_of(event)
            if isinstance(said, ev.OperatorActionQueued) and asked.command in event.causes:
                asked.queued = event.ref
            elif isinstance(said, ev.ActionRequested) and asked.queued and asked.queued in event.causes:
                asked.action = said.action
            elif isinstance(said, ev.ActionFinished) and said.action == asked.action:
                return await self._finished(said)
            elif isinstance(said, ev.ActionCancelled | ev.ActionWithdrawn) and said.action == asked.action:
                return Said(False, {"message": clean_line(f"it was cut off: {said.reason}", limit=300)})
        raise JournalError("the journal has ended")

    async def _finished(self, said: ev.ActionFinished) -> Said:
        data: dict[str, Any] = dict(said.result)
        if said.blob is not None and (whole := await self._engine.blob(said.blob)) is not None:
            with suppress(ValueError):
                data = json.loads(whole)
        if said.status is ResultStatus.SUCCESS:
            return Said(True, data)
        told = {"reason": said.code.value if said.code else "", **data}
        plain = data.get("message") if set(data) == {"message"} else None
        return Said(False, {"message": plain or json.dumps(told, ensure_ascii=False)})


def _no_answer(why: str) -> Said:
    return Said(False, {"message": f"the workspace cannot answer: {clean_line(why, limit=300)}"})
