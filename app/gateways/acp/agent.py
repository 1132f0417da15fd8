"""What an editor or a terminal may ask by the Agent Client Protocol, and the workspaces behind it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import unquote, urlsplit

from acp import PROTOCOL_VERSION, RequestError, schema
from acp.agent.connection import AgentSideConnection
from acp.interfaces import Client
from pydantic import ValidationError

from app.commands.command_runner import log_fault
from app.commands.missions import free_name
from app.commands.registry import built_in
from app.gateways.acp.session import OpenWorkspace, RefusedError, Session
from app.gateways.addresses import AddressError
from app.gateways.engine_client import EngineLostError
from app.gateways.protocol import ProtocolError
from engine import __version__
from engine.agent.acp.transport import NOT_A_MESSAGE, InvalidLineError, LineTransport
from engine.agent.steering.rules import ABOUT, PRESETS
from engine.core import commands as cmd
from engine.core.command import GOAL_LIMIT
from engine.core.journal import JournalError
from engine.core.store.port import DATA_DIRECTORY
from engine.core.text import clean_line, first_problem
from engine.sandbox.files import SANDBOX_DIRECTORY
from engine.tools.mcp.process import LINE_LIMIT, own_streams

P = ParamSpec("P")
T = TypeVar("T")
INVALID, FAILED, UNKNOWN = -32602, -32603, -32002
COMMANDS = (
    *("status", "inbox", "approvals", "allow", "break", "breaks", "unbreak", "budget", "undo", "rewind"),
    *("why", "guide", "note", "mission", "handoffs", "delegate", "debate", "select", "answer"),
)
"""Lines of the command bar that a client is offered behind a slash; others are taken, too."""

Opener = Callable[[Path], Awaitable[OpenWorkspace]]
"""Opens a workspace, or gives the one that is open."""


def _answering(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The same, with what went wrong as an error of the protocol whose message says it."""

    @wraps(method)
    async def answer(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(*args, **kwargs)
        except (RefusedError, ValidationError) as error:
            words = first_problem(error) if isinstance(error, ValidationError) else str(error)
            raise RequestError(INVALID, clean_line(words)) from None
        except (JournalError, AddressError, ProtocolError, EngineLostError) as error:
            raise RequestError(FAILED, clean_line(str(error))) from None
        except RequestError:
            raise
        except Exception as error:  # noqa: BLE001 - it is shown under the id that the fault's log has
            newest = getattr(args[0], "newest", None) or Path()
            raise RequestError(FAILED, log_fault(newest, error)) from None

    return answer


class AcpAgent:
    """The agent's side of a connection.

    Args:
        client: the other side.
        opener: opens workspaces.
        workspace: of all sessions; None where each has the one of its directory.
        operator: in whose name commands are sent.
    """

    def __init__(self, client: Client, opener: Opener, workspace: Path | None, operator: str) -> None:
        self._client, self._open, self._workspace, self._operator = client, opener, workspace, operator
        self.sessions: dict[str, Session] = {}
        self._name = ""
        self._offer: asyncio.Task[None] | None = None
        self.newest = workspace
        """The workspace that was opened last."""

    @_answering
    async def initialize(
        self, protocol_version: int, client_info: schema.Implementation | None = None, **_more: Any
    ) -> schema.InitializeResponse:
        """Agree on the version of the protocol and say what there is."""
        if protocol_version != PROTOCOL_VERSION:
            words = f"the client speaks version {protocol_version} of the protocol, and this program"
            sys.stderr.write(f"{words} {PROTOCOL_VERSION} alone\n")
        name = client_info.name.lower() if client_info is not None else ""
        name = "".join(char for char in name if char.isascii() and (char.isalnum() or char in "-_"))
        self._name = name[:24].lstrip("0123456789-_") or "editor"
        return schema.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(),
                session_capabilities=schema.SessionCapabilities(list=schema.SessionListCapabilities()),
            ),
            auth_methods=[],
            agent_info=schema.Implementation(name="pilothouse", title="Pilothouse", version=__version__),
        )

    @_answering
    async def new_session(
        self, cwd: str, mcp_servers: object = None, **_more: Any
    ) -> schema.NewSessionResponse:
        """Create an agent."""
        workspace = await self._opened(cwd, mcp_servers)
        agent = free_name(self._name, await _agents(workspace))
        made = await workspace.engine.submit(cmd.CreateAgent(agent=agent), operator=self._operator)
        if not made.ok:
            raise RefusedError(made.message)
        session = await self._begun(workspace, agent, quiet=True)
        return schema.NewSessionResponse(session_id=session.ident, modes=_modes(session))

    @_answering
    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: object = None, **_more: Any
    ) -> schema.LoadSessionResponse:
        """Open an agent that there is, and tell its story."""
        workspace = await self._opened(cwd, mcp_servers)
        agent = session_id.partition("@")[0]
        if _ident(workspace, agent) != session_id or agent not in await _agents(workspace):
            raise _unknown(session_id)
        if (before := self.sessions.get(session_id)) is not None:
            await before.close()
        return schema.LoadSessionResponse(modes=_modes(await self._begun(workspace, agent, quiet=False)))

    @_answering
    async def list_sessions(self, cwd: str | None = None, **_more: Any) -> schema.ListSessionsResponse:
        """The agents of a workspace, or of the one that was opened last."""
        path = self.newest if cwd is None else self._path(cwd)
        if path is None:
            return schema.ListSessionsResponse(sessions=[])
        workspace, sessions = await self._open(path), []
        for agent in await _agents(workspace):
            state = await workspace.engine.view(agent)
            title = clean_line(next((goal.text for goal in reversed(state.goals.values())), agent), limit=100)
            more = {"cwd": cwd or str(path), "title": title, "updated_at": state.at}
            sessions.append(schema.SessionInfo(session_id=_ident(workspace, agent), **more))
        return schema.ListSessionsResponse(sessions=sessions)

    @_answering
    async def set_session_mode(self, session_id: str, mode_id: str, **_more: Any) -> None:
        """Say what the agent asks about."""
        session = await self._session(session_id)
        receipt = await session.do(cmd.SetApprovals(agent=session.agent, policy=mode_id))
        if not receipt.ok:
            raise RefusedError(receipt.message)

    @_answering
    async def prompt(self, session_id: str, prompt: Sequence[object], **_more: Any) -> schema.PromptResponse:
        """Give the agent a goal, and return when it has ended."""
        session = await self._session(session_id)
        text = _text(session.workspace, prompt)
        return schema.PromptResponse(stop_reason=await session.prompt(text))

    @_answering
    async def cancel(self, session_id: str, **_more: Any) -> None:
        """Stop what a prompt began; a session that is not known has none."""
        if (session := self.sessions.get(session_id)) is not None and not session.lost:
            await session.cancel()

    # -------------------------------------------------------------- workspaces and sessions

    def _path(self, cwd: str) -> Path:
        """The workspace of a session's directory: it, or the one whose sandbox it is."""
        if not self._name:
            raise RequestError(NOT_A_MESSAGE, "initialize comes first")
        if self._workspace is not None:
            return self._workspace
        path = Path(cwd)
        if "\0" in cwd or not path.is_absolute() or not path.is_dir():
            raise RefusedError(f"cwd: '{clean_line(cwd, limit=200)}' is no absolute path of a directory")
        path = path.resolve()
        inside = path.name == SANDBOX_DIRECTORY and (path.parent / DATA_DIRECTORY).is_dir()
        return path.parent if inside else path

    async def _opened(self, cwd: str, mcp_servers: object) -> OpenWorkspace:
        if mcp_servers:
            sys.stderr.write("MCP servers of the client are not used: name them in mcp.json\n")
        path = self._path(cwd)
        workspace = await self._open(path)
        self.newest = path
        return workspace

    async def _begun(self, workspace: OpenWorkspace, agent: str, *, quiet: bool) -> Session:
        session = Session(_ident(workspace, agent), agent, self._client, self._operator)
        await session.follow(workspace, quiet=quiet)
        self.sessions[session.ident] = session
        self._offer = asyncio.create_task(self._offer_commands(session.ident))  # behind the answer
        return session

    async def _offer_commands(self, ident: str) -> None:
        hint = {"hint": "as in the command bar"}
        offers = [
            {"name": command.name, "description": command.help, "input": hint}
            for command in filter(None, map(built_in, COMMANDS))
        ]
        update = {"sessionUpdate": "available_commands_update", "availableCommands": offers}
        await self._client.session_update(ident, schema.AvailableCommandsUpdate.model_validate(update))

    async def _session(self, ident: str) -> Session:
        """A session of this connection, whose engine is there."""
        if (session := self.sessions.get(ident)) is None:
            raise _unknown(ident)
        if session.lost:
            await session.follow(await self._open(session.workspace.path), quiet=False)
        return session


async def _agents(workspace: OpenWorkspace) -> list[str]:
    return [row["id"] for row in (await workspace.line("agent_list", ""))[1].get("agents", ())]


def _text(workspace: OpenWorkspace, prompt: Sequence[object]) -> str:
    """A prompt as a line or a goal: its texts, with what it links to as paths.

    Raises:
        RefusedError: it is none; the message says why.
    """
    parts = []
    for block in prompt:
        if isinstance(block, schema.TextContentBlock):
            parts.append(block.text)
        elif isinstance(block, schema.ResourceContentBlock):
            parts.append(_link(block.uri, workspace.path / SANDBOX_DIRECTORY))
        else:
            kind = getattr(block, "type", "such a block")
            raise RefusedError(f"prompt: {kind} is not understood here: send text and links to files")
    text = "".join(parts).strip()
    if not text or len(text) > GOAL_LIMIT:
        how = f"it has {len(text):,} characters, and takes 1 to {GOAL_LIMIT:,}"
        raise RefusedError(f"prompt: {how}; what is longer goes into a file of the sandbox, and is named")
    return text


def _link(uri: str, root: Path) -> str:
    """A link as an agent understands it: a file of the sandbox by its path there."""
    path = Path(unquote(urlsplit(uri).path))
    return str(path.relative_to(root)) if uri.startswith("file:") and path.is_relative_to(root) else uri


def _unknown(ident: str) -> RequestError:
    known = "session/new begins one, and session/list has those of a workspace"
    return RequestError(UNKNOWN, f"there is no session '{clean_line(ident, limit=80)}' here: {known}")


def _ident(workspace: OpenWorkspace, agent: str) -> str:
    """The id of an agent's session: the agent's, and what tells workspaces apart."""
    return f"{agent}@{hashlib.sha256(str(workspace.path).encode()).hexdigest()[:12]}"


def _modes(session: Session) -> schema.SessionModeState:
    """What is asked about, beside what the workspace's rules say, as modes."""
    names = {"allow": "Run", "ask": "Step"}
    modes = [
        schema.SessionMode(
            id=preset, name=names.get(preset, preset.replace("-", " ")), description=ABOUT[preset]
        )
        for preset in PRESETS
    ]
    return schema.SessionModeState(current_mode_id=session.mode, available_modes=modes)


async def serve(opener: Opener, workspace: Path | None, operator: str) -> None:
    """Serve whoever started this program until they close its input; only the protocol reaches the output.

    Raises:
        OSError: standard input or output is neither a pipe, a socket nor a terminal.
    """
    logging.getLogger().addHandler(logging.NullHandler())  # the library would write tracebacks
    agents: list[AcpAgent] = []

    def agent_of(client: Client) -> Any:
        agents.append(AcpAgent(client, opener, workspace, operator))
        return agents[0]

    async def refuse(line: InvalidLineError) -> bool:
        error = {"code": line.code, "message": str(line)}
        await transport.send({"jsonrpc": "2.0", "id": None, "error": error})
        return True

    async with own_streams() as streams:
        transport = LineTransport(*streams, LINE_LIMIT, refuse)
        connection = AgentSideConnection(agent_of, transport, listening=False)
        try:
            await connection.listen()
        finally:
            for session in agents[0].sessions.values():
                await session.close()
            await connection.close()
