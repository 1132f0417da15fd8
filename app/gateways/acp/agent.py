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

from acp import PROTOCOL_VERSION, RequestError
from acp.agent.connection import AgentSideConnection
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    AvailableCommand,
    AvailableCommandInput,
    AvailableCommandsUpdate,
    ClientCapabilities,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResourceContentBlock,
    SessionCapabilities,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SetSessionConfigOptionResponse,
    TextContentBlock,
    UnstructuredCommandInput,
)
from pydantic import ValidationError

from app.commands.command_runner import log_fault
from app.commands.missions import free_name
from app.commands.registry import built_in
from app.gateways.acp.session import RUN, STEP, OpenWorkspace, RefusedError, Session
from app.gateways.acp.transport import LineTransport
from app.gateways.addresses import AddressError
from app.gateways.engine_client import EngineLostError
from app.gateways.protocol import ProtocolError
from engine import __version__
from engine.agent.steering.rules import ABOUT, PRESETS
from engine.api.workspace_engine import SANDBOX_DIRECTORY
from engine.core import commands as cmd
from engine.core.approvals import Source
from engine.core.command import GOAL_LIMIT
from engine.core.journal import JournalError
from engine.core.store.port import DATA_DIRECTORY
from engine.core.text import clean_line, first_problem
from engine.tools.mcp.process import LINE_LIMIT, own_streams

P = ParamSpec("P")
T = TypeVar("T")
INVALID, FAILED, UNKNOWN = -32602, -32603, -32002
LISTED = 100
"""Agents of a workspace that are listed as sessions, the newest."""
MODES = {RUN: ("Run", "it acts, and asks as rules say"), STEP: ("Step", "it asks before each action")}
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
        except RefusedError as error:
            raise RequestError(INVALID, clean_line(str(error))) from None
        except ValidationError as error:
            raise RequestError(INVALID, first_problem(error)) from None
        except (JournalError, AddressError, ProtocolError, EngineLostError) as error:
            raise RequestError(FAILED, clean_line(str(error))) from None
        except (RequestError, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 - it is shown under the id that the fault's log has
            agent = args[0]
            workspace = agent.newest if isinstance(agent, AcpAgent) else Path()
            raise RequestError(FAILED, log_fault(workspace, error)) from None

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
        self._sessions: dict[str, Session] = {}
        self._paths: dict[str, Path] = {}
        self._name = ""
        self._aside: set[asyncio.Task[None]] = set()
        self.newest = workspace or Path()
        """The workspace that was opened last."""

    async def close(self) -> None:
        """End all turns and follow no more."""
        for session in self._sessions.values():
            if not session.lost:
                await session.cancel()
            await session.close()

    @_answering
    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_meta: Any,
    ) -> InitializeResponse:
        """Agree on the version of the protocol and say what there is."""
        if protocol_version != PROTOCOL_VERSION:
            sys.stderr.write(
                f"the client speaks version {protocol_version} of the protocol and is answered with "
                f"{PROTOCOL_VERSION}, the only one here\n"
            )
        name = client_info.name.lower() if client_info is not None else ""
        self._name = "".join(char for char in name if char.isascii() and (char.isalnum() or char in "-_"))
        self._name = self._name[:24].lstrip("0123456789-_") or "editor"
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(),
                session_capabilities=SessionCapabilities(list=SessionListCapabilities()),
            ),
            auth_methods=[],
            agent_info=Implementation(name="pilothouse", title="Pilothouse", version=__version__),
        )

    @_answering
    async def new_session(
        self, cwd: str, mcp_servers: Sequence[object] | None = None, **_more: Any
    ) -> NewSessionResponse:
        """Create an agent."""
        workspace = await self._opened(cwd, mcp_servers)
        agent = free_name(self._name, await workspace.agents())
        made = await workspace.engine.submit(cmd.CreateAgent(agent=agent), operator=self._operator)
        if not made.ok:
            raise RefusedError(made.message)
        session = await self._begun(workspace, agent, quiet=True)
        return NewSessionResponse(
            session_id=session.ident, modes=_modes(session), config_options=_options(session)
        )

    @_answering
    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[object] | None = None, **_more: Any
    ) -> LoadSessionResponse:
        """Open an agent that there is, and tell its story."""
        workspace = await self._opened(cwd, mcp_servers)
        agent = session_id.partition("@")[0]
        if _ident(workspace.path, agent) != session_id or agent not in await workspace.agents():
            raise _unknown(session_id)
        if (before := self._sessions.get(session_id)) is not None:
            await before.cancel()
            await before.close()
        session = await self._begun(workspace, agent, quiet=False)
        return LoadSessionResponse(modes=_modes(session), config_options=_options(session))

    @_answering
    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_more: Any
    ) -> ListSessionsResponse:
        """The agents of a workspace, or of all that are open here."""
        paths = [self._path(cwd)] if cwd is not None else list(dict.fromkeys(self._paths.values()))
        sessions = []
        for path in paths:
            workspace = await self._open(path)
            for agent in (await workspace.agents())[-LISTED:]:
                state = await workspace.engine.view(agent)
                goals = list(state.goals.values())
                title = clean_line(goals[-1].text, limit=100) if goals else agent
                ident = _ident(workspace.path, agent)
                where = cwd or str(workspace.path)
                sessions.append(
                    SessionInfo(session_id=ident, cwd=where, title=title, updated_at=state.at or None)
                )
        return ListSessionsResponse(sessions=sessions)

    @_answering
    async def set_session_mode(self, session_id: str, mode_id: str, **_more: Any) -> None:
        """Ask before each action, or only as rules say."""
        session = await self._session(session_id)
        if mode_id not in MODES:
            raise RefusedError(f"there is no mode '{mode_id[:40]}'; modes: {', '.join(MODES)}")
        await session.set_mode(mode_id)

    @_answering
    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_more: Any
    ) -> SetSessionConfigOptionResponse:
        """Say what the agent asks about."""
        session = await self._session(session_id)
        if config_id != "approvals" or value not in PRESETS:
            raise RefusedError(f"there is one option, approvals, with one of: {', '.join(PRESETS)}")
        await session.set_approvals(str(value))
        return SetSessionConfigOptionResponse(config_options=_options(session, str(value)))

    @_answering
    async def prompt(self, session_id: str, prompt: Sequence[object], **_more: Any) -> PromptResponse:
        """Give the agent a goal, and return when it has ended."""
        session = await self._session(session_id)
        text = self._text(session_id, prompt)
        return PromptResponse(stop_reason=await session.prompt(text))

    @_answering
    async def cancel(self, session_id: str, **_more: Any) -> None:
        """Stop what a prompt began; a session that is not known has none."""
        if (session := self._sessions.get(session_id)) is not None and not session.lost:
            await session.cancel()

    # -------------------------------------------------------------- workspaces and sessions

    def _path(self, cwd: str) -> Path:
        """The workspace of a session's directory: it, or the one whose sandbox it is."""
        if not self._name:
            raise RequestError(-32600, "initialize comes first")
        if self._workspace is not None:
            return self._workspace
        path = Path(cwd)
        if "\0" in cwd or not path.is_absolute() or not path.is_dir():
            raise RefusedError(f"cwd: '{clean_line(cwd, limit=200)}' is no absolute path of a directory")
        path = path.resolve()
        if path.name == SANDBOX_DIRECTORY and (path.parent / DATA_DIRECTORY).is_dir():
            return path.parent
        return path

    async def _opened(self, cwd: str, mcp_servers: Sequence[object] | None) -> OpenWorkspace:
        if mcp_servers:
            sys.stderr.write(
                "MCP servers of the client are not used: name them in the workspace's mcp.json\n"
            )
        path = self._path(cwd)
        workspace = await self._open(path)
        self.newest = path
        return workspace

    async def _begun(self, workspace: OpenWorkspace, agent: str, *, quiet: bool) -> Session:
        session = Session(_ident(workspace.path, agent), agent, self._client, self._operator)
        await session.follow(workspace, quiet=quiet)
        self._sessions[session.ident], self._paths[session.ident] = session, workspace.path
        offer = asyncio.create_task(self._offer_commands(session.ident))  # behind the answer
        self._aside.add(offer)
        offer.add_done_callback(self._aside.discard)
        return session

    async def _offer_commands(self, ident: str) -> None:
        commands = [command for name in COMMANDS if (command := built_in(name)) is not None]
        offers = [
            AvailableCommand(
                name=command.name,
                description=command.help,
                input=AvailableCommandInput(root=UnstructuredCommandInput(hint="as in the command bar")),
            )
            for command in commands
        ]
        update = AvailableCommandsUpdate(
            session_update="available_commands_update", available_commands=offers
        )
        await self._client.session_update(ident, update)

    async def _session(self, ident: str) -> Session:
        """A session of this connection, whose engine is there."""
        if (session := self._sessions.get(ident)) is None:
            raise _unknown(ident)
        if session.lost:
            await session.follow(await self._open(self._paths[ident]), quiet=False)
        return session

    def _text(self, session_id: str, prompt: Sequence[object]) -> str:
        """A prompt as a line or a goal: its texts, with what it links to as paths."""
        parts = []
        for block in prompt:
            if isinstance(block, TextContentBlock):
                parts.append(block.text)
            elif isinstance(block, ResourceContentBlock):
                parts.append(_link(block.uri, self._paths[session_id]))
            else:
                kind = getattr(block, "type", "such a block")
                raise RefusedError(f"prompt: {kind} is not understood here: send text and links to files")
        text = "".join(parts).strip()
        if not text:
            raise RefusedError("prompt: it is empty: say what is to be done")
        if len(text) > GOAL_LIMIT:
            raise RefusedError(
                f"prompt: it has {len(text):,} characters, and a goal at most {GOAL_LIMIT:,}: "
                "put the rest into a file of the sandbox, and name that"
            )
        return text


def _unknown(ident: str) -> RequestError:
    known = "session/new begins one, and session/list has those of a workspace"
    return RequestError(UNKNOWN, f"there is no session '{clean_line(ident, limit=80)}' here: {known}")


def _ident(workspace: Path, agent: str) -> str:
    """The id of an agent's session: the agent's, and what tells workspaces apart."""
    return f"{agent}@{hashlib.sha256(str(workspace).encode()).hexdigest()[:12]}"


def _link(uri: str, workspace: Path) -> str:
    """A link as an agent understands it: a file of the sandbox by its path there."""
    parts = urlsplit(uri)
    path = Path(unquote(parts.path))
    root = workspace / SANDBOX_DIRECTORY
    return str(path.relative_to(root)) if parts.scheme == "file" and path.is_relative_to(root) else uri


def _modes(session: Session) -> SessionModeState:
    modes = [SessionMode(id=ident, name=name, description=about) for ident, (name, about) in MODES.items()]
    return SessionModeState(current_mode_id=session.mode, available_modes=modes)


def _options(session: Session, chosen: str = "") -> list[Any]:
    """What is asked about, as an option to choose."""
    policy = session.state.approvals.policies.get(Source.OPERATOR)
    now = chosen or next((name for name, preset in PRESETS.items() if preset == policy), "allow")
    choices = [SessionConfigSelectOption(value=name, name=name, description=ABOUT[name]) for name in PRESETS]
    about = "what it asks before it acts, beside what the workspace's rules say"
    return [
        SessionConfigOptionSelect(
            type="select", id="approvals", name="Asks", description=about, current_value=now, options=choices
        )
    ]


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

    async with own_streams() as (reader, writer):
        connection = AgentSideConnection(agent_of, LineTransport(reader, writer, LINE_LIMIT), listening=False)
        try:
            await connection.listen()
        finally:
            await agents[0].close()
            await connection._conn.close()
