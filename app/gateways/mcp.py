"""`pilothouse mcp`: a workspace served to other agents over MCP: memory, sandbox, the crew's work and plans.

Each call goes through an agent of the workspace made for that, in the jail, on record under the client's
name, and passes the gate as an agent's action does: rules forbid and allow it, and what would be asked is
refused. A client answers only what work asks that it began itself. Standard output carries the protocol and
nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shlex
import sys
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from pydantic import ValidationError

from app.commands.command_runner import run_line
from app.commands.crew import answer_to
from app.commands.crew_runner import run_crew_command
from app.gateways.engine_client import PIECE_BYTES
from app.projection.event_lines import line_of, step_text
from engine.agent.steering.envelopes import make_call
from engine.agent.steering.rules import narrowest_rule, rule_text
from engine.api.workspace_engine import WorkspaceEngine
from engine.core import commands as cmd
from engine.core import crew_commands as cc
from engine.core import events as ev
from engine.core.actions import ErrorCode, ResultStatus
from engine.core.journal import JournalError
from engine.core.reasons import WORDS
from engine.core.text import clean, clean_line, first_problem
from engine.crew.ontology.kinds import RequestKind
from engine.planning.library.missions import MissionError, find_mission, mission_names
from engine.planning.thinkers.procedural import ProceduralThinker
from engine.tools.mcp.process import own_streams
from engine.tools.mcp.tool_server import (
    CallReply,
    Page,
    ServedCommand,
    build_server,
    loopback_socket,
    serve_http,
    serve_streams,
)
from engine.value import dataclass

CREW = "crew"
"""The tool under which these commands are served."""
LINES = 200
"""Events of an agent that its story has, the newest."""
_SERVED = {
    "delegate agent task": "hand a task to an agent of the crew (status lists them) and wait for its result",
    "debate motion pro? con? judge?": "have a motion argued by agents of the crew and judged",
    "answer request answer": "answer what work asks that was begun here: the number of an option, or a text",
    "select task": "which agent of the crew fits a task, and why",
    "status": "the agents, and what is handed over",
}
"""Each command with the names of its texts, of which those with `?` may be left out; and what it does."""
CHANGES = frozenset({"delegate", "debate", "answer"})


def crew_commands(*, read_only: bool) -> list[ServedCommand]:
    """The commands that are served of the crew."""
    commands = []
    for line, about in _SERVED.items():
        name, *texts = line.split()
        schema = {
            "type": "object",
            "properties": {text.rstrip("?"): {"type": "string", "minLength": 1} for text in texts},
            "required": [text for text in texts if not text.endswith("?")],
            "additionalProperties": False,
        }
        if not (read_only and name in CHANGES):
            commands.append(ServedCommand(name, CREW, name, about, schema, name in CHANGES))
    return commands


class CrewCaller:
    """Carries out what clients ask of the crew.

    Args:
        engine: the open engine.
    """

    def __init__(self, engine: WorkspaceEngine) -> None:
        self._engine = engine
        self._begun: set[str] = set()
        """Handoffs and groups that were begun here."""

    async def call(self, offer: ServedCommand, given: Mapping[str, Any], client: str) -> CallReply:
        """Carry out a call; what is wrong with it is in the answer's `message`."""
        wrong = best_match(Draft202012Validator(offer.schema).iter_errors(dict(given)))
        if wrong is not None:
            return CallReply(False, {"message": clean_line(wrong.message, limit=300)})
        command = offer.command
        if command in ("status", "select"):
            task = " ".join(given.get("task", "").split())
            lines = [f"select {task}"] if command == "select" else ["agents", "handoffs"]
            answers = [await run_line(self._engine, line, agent="", dry=False, quiet=True) for line in lines]
            text = "\n".join(text for _, _, text in answers)
            return CallReply(not any(code for code, _, _ in answers), {"message": clean(text)})
        try:
            asked = await self._command(command, given)
        except (ValidationError, ValueError) as error:
            words = first_problem(error) if isinstance(error, ValidationError) else str(error)
            return CallReply(False, {"message": words})
        code, answer, text = await run_crew_command(self._engine, asked, f"mcp-{client}"[:32])
        if (name := str(answer.get("handoff") or answer.get("group") or "")) and command != "answer":
            groups = (await self._engine.crew()).state.groups
            self._begun |= set(groups[name].handoffs) if name in groups else {name}
        return CallReply(code in (0, 3), {"message": text, "requests": answer.get("requests", [])})

    async def _command(self, command: str, given: Mapping[str, str]) -> cc.ForCrew:
        if command == "delegate":
            return cc.Delegate(to=given["agent"], task=given["task"])
        if command == "debate":
            return cc.Debate.model_validate(dict(given))
        state = (await self._engine.crew()).state
        request = state.requests.get(given["request"])
        asks = request.handoff_id if request is not None else None
        work = {asks, *(each.id for each in state.ancestors(asks))} if asks else set()
        if request is None or not work & self._begun or request.kind is RequestKind.PERMISSION:
            raise ValueError("it is no question of work that was begun here, so the operator answers it")
        number = int(given["answer"]) if given["answer"].isdecimal() and len(given["answer"]) < 4 else 0
        chosen = number if number <= len(request.options) else 0
        return answer_to(request, chosen, "" if chosen else given["answer"])


class WorkspacePages:
    """Plans and stories of agents as resources, and missions as prompts, of an open engine."""

    def __init__(self, engine: WorkspaceEngine) -> None:
        self._engine = engine

    def resources(self) -> list[Page]:
        """Those that there are."""
        about = {"plan": "what it wants, and its steps", "session": "what happened, a line an event"}
        return [
            Page(f"pilothouse://{kind}/{agent}", f"{kind} of {agent}", words)
            for agent in self._engine.agents
            for kind, words in about.items()
        ]

    async def resource(self, uri: str) -> str:
        """The text of one.

        Raises:
            KeyError: there is none.
        """
        kind, _, agent = uri.removeprefix("pilothouse://").partition("/")
        if uri not in {page.name for page in self.resources()}:
            raise KeyError(uri)
        if kind == "session":
            _, events = await self._engine.story(agent, LINES)
            return "\n".join(line.plain() for event in events if (line := line_of(event)) is not None)
        state = await self._engine.view(agent)
        lines = []
        for goal in state.goals.values():
            lines.append(f"{goal.id} {goal.status}: {goal.text}")
            steps = plan.steps if (plan := state.plans.get(goal.id)) is not None else ()
            lines += [f"  {step.id} {step.status}: {step_text(step)}" for step in steps]
        return clean("\n".join(lines)) or "no goal yet"

    async def prompts(self) -> list[Page]:
        """The missions."""
        names = await asyncio.to_thread(mission_names, self._engine.workspace)
        found = [(name, await self._mission(name)) for name in names]
        return [Page(name, mission.title, mission.summary) for name, mission in found if mission is not None]

    async def prompt(self, name: str) -> str:
        """A mission as a request.

        Raises:
            KeyError: there is none.
        """
        if (mission := await self._mission(name)) is None:
            raise KeyError(name)
        files = [f"The file {path}:\n```\n{content}\n```" for path, content in mission.files.items()]
        return "\n\n".join([mission.goal, *files])

    async def _mission(self, name: str) -> Any:
        try:
            return await asyncio.to_thread(find_mission, self._engine.workspace, name, self._engine.trust)
        except MissionError:
            return None


AGENT = "mcp"
"""The agent through whose pipeline and session calls go."""
UNASKED = tuple(
    f"not allowed: {WORDS[code].partition('{')[0]}" for code in ("gate.no-operator", "gate.unanswered")
)
"""How the answer to a call begins that nobody allowed."""
TOOLS = ("simple_coder", "memory")
_NO_MODEL = {"thinker": ProceduralThinker.name}
TOKEN = "PILOTHOUSE_MCP_TOKEN"
HOW = (
    "the operator of this workspace can allow it with: "
    f"pilothouse do --agent {AGENT} {{line}}; or by a rule below [approvals] in pilothouse.toml"
)
"""The answer to a client whose call nobody can allow now."""
_UNSERVED = frozenset({("simple_coder", "policy"), ("simple_coder", "help")})
"""What is of use to a person only."""


async def server_of(engine: WorkspaceEngine, *, read_only: bool) -> Any:
    """The server of an engine's commands, with the agent that it serves for.

    Raises:
        JournalError: there is no such agent, and none can be made.
    """
    if AGENT not in engine.agents:
        made = await engine.submit(cmd.CreateAgent(agent=AGENT, config=_NO_MODEL), operator="mcp")
        if not made.ok:
            raise JournalError(f"no agent can be made to serve for: {made.message}")
    offers = [*served_commands(engine, read_only=read_only), *crew_commands(read_only=read_only)]
    return build_server(offers, _EngineCaller(engine), WorkspacePages(engine))


async def serve_connection(
    engine: WorkspaceEngine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, read_only: bool
) -> None:
    """Serve a client of the engine over its connection, until it leaves."""
    await serve_streams(await server_of(engine, read_only=read_only), (reader, writer))


async def carried(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Bytes between standard streams and a connection in both directions, until the connection ends."""
    async with own_streams() as (source, target):
        forth = asyncio.create_task(_copy(source, writer))
        try:
            await _copy(reader, target)
        finally:
            forth.cancel()
            await asyncio.gather(forth, return_exceptions=True)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await source.read(PIECE_BYTES):
            target.write(piece)
            await target.drain()
        target.write_eof()


def served_commands(engine: WorkspaceEngine, *, read_only: bool = False) -> list[ServedCommand]:
    """The commands that are served: those that agents may call, of the sandbox and of memory."""
    served = []
    for entry in engine.registry.schemas():
        tool, command = entry["tool"], entry["command"]
        spec = engine.registry.get(tool).commands[command]
        changes = spec.mutates or spec.writes
        if tool in TOOLS and (tool, command) not in _UNSERVED and not (read_only and changes):
            served.append(
                ServedCommand(entry["name"], tool, command, spec.description, entry["input_schema"], changes)
            )
    return served


async def serve_over_http(server: Any, port: int) -> None:
    """Serve over HTTP on this machine until cancelled.

    Raises:
        JournalError: the port cannot be had.
    """
    try:
        listening = loopback_socket(port)
    except OSError as error:
        raise JournalError(f"port {port} of this machine cannot be had: {error.strerror}") from error
    token = os.environ.get(TOKEN) or secrets.token_urlsafe(32)
    host, number = listening.getsockname()

    def ready() -> None:
        header = "" if os.environ.get(TOKEN) else f"\nAuthorization: Bearer {token}"
        sys.stderr.write(f"serving at http://{host}:{number}/mcp{header}\n")
        sys.stderr.flush()

    await serve_http(server, listening, token, ready)


@dataclass(slots=True)
class _PendingCall:
    """A call on its way: the events and the action that it has come to."""

    command: str
    client: str
    offer: ServedCommand
    args: Mapping[str, Any]
    queued: str = ""
    action: str = ""


class _EngineCaller:
    """Takes calls through the engine."""

    def __init__(self, engine: WorkspaceEngine) -> None:
        self._engine = engine
        self._aside: set[asyncio.Task[None]] = set()
        self._crew = CrewCaller(engine)

    async def call(self, offer: ServedCommand, args: Mapping[str, Any], client: str) -> CallReply:
        """See `engine.tools.mcp.tool_server.Caller`; a call whose client no longer wants it is cut off."""
        if offer.tool == CREW:
            return await self._crew.call(offer, args, client)
        engine = self._engine
        since = await engine.head()
        command = cmd.CallTool(
            agent=AGENT, tool=offer.tool, command=offer.command, args=dict(args), client=client or "client"
        )
        # It is this agent's work, and no other operator's command to it.
        handing = asyncio.ensure_future(engine.submit(command, operator="mcp", own=True))
        try:
            receipt = await asyncio.shield(handing)
        except asyncio.CancelledError:
            self._later(self._taken_back(handing, client or "client", offer, args))
            raise
        if not receipt.ok:
            return CallReply(False, {"message": clean_line(receipt.message, limit=1_000)})
        asked = _PendingCall(receipt.event, client or "client", offer, args)
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
        self, handing: asyncio.Future[cmd.Receipt], client: str, offer: ServedCommand, args: Mapping[str, Any]
    ) -> None:
        receipt = await handing
        if receipt.ok:
            await self._cut(_PendingCall(receipt.event, client, offer, args))

    async def _cut(self, asked: _PendingCall) -> None:
        """Take a call back that waits for its turn or for the operator; end it where it runs."""
        if not asked.queued:
            asked.queued = await self._queued(asked.command)
        if asked.queued:
            drop = cmd.DropCall(agent=AGENT, call=asked.queued, client=asked.client)
            await self._engine.submit(drop, operator="mcp")

    async def _gone(self, asked: _PendingCall) -> bool:
        """Whether a call neither waits nor is on its way any more."""
        if not asked.queued or asked.action:
            return False
        state = await self._engine.view(AGENT)
        there = state.action is not None and state.action.queued == asked.queued
        return not there and all(request.event != asked.queued for request in state.requests)

    async def _queued(self, command: str) -> str:
        """The event by which a command's call was queued."""
        state = await self._engine.view(AGENT)
        refs = [request.event for request in state.requests] + ([state.action.queued] if state.action else [])
        for ref in filter(None, refs):
            event = await self._engine.store.get(ref)
            if event is not None and command in event.causes:
                return ref
        return ""

    async def _answer(self, asked: _PendingCall, since: int) -> CallReply:
        """The result of the call that a command asked for, from the journal."""
        async for event in self._engine.events(since, stream=AGENT):
            payload = ev.payload_of(event)
            if isinstance(payload, ev.OperatorActionQueued) and asked.command in event.causes:
                asked.queued = event.ref
            elif isinstance(payload, ev.ActionRequested) and asked.queued and asked.queued in event.causes:
                asked.action = payload.action
            elif isinstance(payload, ev.ActionFinished) and payload.action == asked.action:
                return await self._finished(payload, asked)
            elif (
                isinstance(payload, ev.ActionCancelled | ev.ActionWithdrawn)
                and payload.action == asked.action
            ):
                return CallReply(
                    False, {"message": clean_line(f"it was cut off: {payload.reason}", limit=300)}
                )
            elif isinstance(payload, ev.AgentStopped | ev.AgentHeld) and await self._gone(asked):
                return CallReply(False, {"message": "it was dropped: the operator stopped what runs here"})
        raise JournalError("the journal has ended")

    async def _finished(self, payload: ev.ActionFinished, asked: _PendingCall) -> CallReply:
        data: dict[str, Any] = dict(payload.result)
        if payload.blob is not None and (whole := await self._engine.blob(payload.blob)) is not None:
            with suppress(ValueError):
                data = json.loads(whole)
        if payload.status is ResultStatus.SUCCESS:
            return CallReply(True, data)
        if payload.code is ErrorCode.NOT_ALLOWED and (
            how := await self._how(asked, str(data.get("message")))
        ):
            data["message"] = f"{data['message']}; {how}"
        details = {"reason": payload.code.value if payload.code else "", **data}
        plain = data.get("message") if set(data) == {"message"} else None
        return CallReply(False, {"message": plain or json.dumps(details, ensure_ascii=False)})

    async def _how(self, asked: _PendingCall, message: str) -> str:
        """How the operator can allow what nobody answered; empty where a rule or a person forbade it."""
        spec = self._engine.registry.spec(asked.offer.tool, asked.offer.command)
        if spec is None or not message.startswith(UNASKED):
            return ""
        cwd = (await self._engine.view(AGENT)).sandbox.cwd
        rule = rule_text(narrowest_rule(make_call(spec, asked.offer.tool, asked.args, cwd=cwd)))
        line = f"allow always {rule}"
        plain = not set(line) & set('"$`\\!')
        return HOW.format(line=f'"{line}"' if plain else shlex.quote(line))


def _no_answer(why: str) -> CallReply:
    return CallReply(False, {"message": f"the workspace cannot answer: {clean_line(why, limit=300)}"})
