"""The MCP servers of an open workspace: started as far as the operator permits, and permitted by commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from engine.core.agents import DistrustServer, ForServers, ServerDistrusted, TrustServer
from engine.core.command import Receipt
from engine.core.ports import Clock
from engine.core.streams import StreamLog
from engine.core.text import clean_line
from engine.tools.mcp.health import ServerState, ServerView, health_line
from engine.tools.mcp.names import resolve
from engine.tools.mcp.permissions import (
    ENTRY_SHOWN,
    PermissionState,
    ServerPermissions,
    command_line,
    entry_of,
    permission_hint,
    permission_question,
)
from engine.tools.mcp.process import ProgramEnvironment
from engine.tools.mcp.server import Server
from engine.tools.mcp.settings import McpSettings
from engine.tools.mcp.tool import McpTool
from engine.tools.registry import ToolRegistry
from engine.value import dataclass

_ENTRY_LEAST = 8
"""Characters of a hash by which an entry may be named."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A server of `mcp.json` as an operator has to see it before they permit it; safe to show."""

    server: str
    entry: str
    """The hash that `TrustServer` may name."""
    line: str
    """Its whole command line, or its address."""
    facts: tuple[tuple[str, str], ...]
    """All that is to be known before, as labels and texts."""
    since: str = ""
    waits: bool = True
    """Whether nothing of it runs because permission is missing."""
    refused: bool = False
    """Whether it was refused already."""

    @property
    def how(self) -> str:
        """How permission is given, on a line."""
        return permission_hint(self.server)


class Servers:
    """The servers of a workspace by name; `begin` them, and always `close` them.

    Args:
        settings: the workspace's `mcp.json`, and the user's.
        around: where programs run.
        clock: the time.
        on_change: called with each change of a server.
        permissions: what the operator decided; without them every server may start.
        log: the workspace's stream, where decisions are recorded.
    """

    def __init__(
        self,
        settings: McpSettings,
        around: ProgramEnvironment,
        clock: Clock,
        on_change: Callable[[ServerView], None] = lambda _view: None,
        permissions: ServerPermissions | None = None,
        log: StreamLog | None = None,
    ) -> None:
        self.settings = settings
        self._permissions, self._log, self._workspace = permissions, log, around.workspace
        self._listeners: list[Callable[[ServerView], None]] = [on_change]
        self._servers: dict[str, Server] = {}
        for entry in settings.servers:
            withheld = permissions.hint(entry) if permissions else ""
            self._servers[entry.name] = Server(entry, around, clock, self._tell, withheld)
        self._problems: list[str] = [str(fault) for fault in settings.faults]
        self._shown: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {}
        """Entry, line and facts by name, as these are asked for with each key in the command bar."""

    def follow(self, on_change: Callable[[ServerView], None]) -> None:
        """Add a listener for each change."""
        self._listeners.append(on_change)

    def _tell(self, view: ServerView) -> None:
        for listener in self._listeners:
            listener(view)

    def register(self, registry: ToolRegistry) -> None:
        """Offer each server as a tool; one with the name of another tool is left out, as a problem."""
        for server in tuple(self._servers.values()):
            try:
                registry.register(McpTool(server))
            except ValueError as error:
                del self._servers[server.name]
                where = "your mcp.json" if server.settings.own else "mcp.json"
                self._problems.append(f"{where}: {server.name}: {error}")

    def begin(self) -> None:
        """Connect all of them that may start, side by side."""
        for server in self._servers.values():
            server.begin()

    async def settled(self) -> tuple[ServerView, ...]:
        """Wait until each is up or known to be down; a matter of seconds."""
        return tuple(await asyncio.gather(*(server.settled() for server in self._servers.values())))

    @property
    def views(self) -> tuple[ServerView, ...]:
        """How each is, as far as it is known."""
        return tuple(server.view for server in self._servers.values())

    @property
    def problems(self) -> Sequence[str]:
        """What is wrong with the settings, in lines."""
        return tuple(self._problems)

    @property
    def troubles(self) -> tuple[str, ...]:
        """What is wrong with the settings, and the line of each server that is down or waits."""
        bad = (ServerState.DOWN, ServerState.WAITING)
        return (*self._problems, *(view.line for view in self.views if view.state in bad))

    @property
    def servers(self) -> tuple[Server, ...]:
        """All of them."""
        return tuple(self._servers.values())

    def get(self, name: str) -> Server | None:
        """The server of that name, whatever the case."""
        named = (server for server in self._servers.values() if server.name.lower() == name.lower())
        return next(named, None)

    async def lacks(self, server: str, tools: Sequence[str] = ("*",)) -> str:
        """What is missing of a server and its tools, in words; empty when it is up and lists them.

        Args:
            server: its name, whatever the case.
            tools: names of its tools, or `*` for whatever it has.
        """
        instance = self.get(server)
        if instance is None:
            return f"mcp.json names no server {health_line(server, 40)}"
        view = await instance.settled()
        if view.state is ServerState.WAITING:
            return f"{instance.name} waits for the operator's leave: {view.error}"
        if view.state is not ServerState.OK:
            return f"{instance.name} is {view.state}: {view.error}"
        missing = [
            health_line(name, 60)
            for name in tools
            if name != "*" and not resolve(f"{instance.name}.{name}", {instance.name: view.tools})
        ]
        return f"{instance.name} has no tool {', '.join(missing)}" if missing else ""

    async def close(self) -> None:
        """Shut all of them down."""
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    @property
    def asked(self) -> tuple[Entry, ...]:
        """The entries that wait for permission; refused ones last."""
        waiting = (entry for entry in self.entries if entry.waits)
        return tuple(sorted(waiting, key=lambda entry: entry.refused))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries of the workspace's own `mcp.json`, as they need permission."""
        return tuple(self._entry(server) for server in self.servers if not server.settings.own)

    def _entry(self, server: Server) -> Entry:
        settings, standing = server.settings, PermissionState.GIVEN
        if self._permissions is not None:
            standing = self._permissions.word(settings).standing
        if settings.name not in self._shown:
            facts = permission_question(settings, self._workspace)
            self._shown[settings.name] = entry_of(settings), command_line(settings), facts
        return Entry(
            settings.name,
            *self._shown[settings.name],
            server.view.since,
            standing is not PermissionState.GIVEN,
            standing is PermissionState.REFUSED,
        )

    async def carry_out(self, command: ForServers, actor: str) -> Receipt:
        """Give permission or take it back; it is recorded before anything starts.

        Raises:
            JournalError: it cannot be recorded; nothing was started.
        """
        permissions, log = self._permissions, self._log
        if permissions is None or log is None or not isinstance(command, TrustServer | DistrustServer):
            return Receipt(ok=False, message=f"{command.do} is not known here")
        server = self.get(command.server)
        if server is None:
            names = ", ".join(view.name for view in self.views) or "none"
            message = f"mcp.json names no server {clean_line(command.server, limit=40)!r}; servers: {names}"
            return Receipt(ok=False, message=message)
        if server.settings.own:
            return Receipt(ok=False, message=f"{server.name} is of your own settings and needs no leave")
        settings, entry = server.settings, entry_of(server.settings)
        if isinstance(command, DistrustServer):
            distrusted = ServerDistrusted(server=server.name, entry=entry)
            event = log.append(distrusted, actor=actor, causes=(), tick=0)
            permissions.take(event)
            await server.withhold(permissions.hint(settings))
            await log.commit()
            message = f"{server.name} has no leave; nothing of it runs"
            return Receipt(ok=True, message=message, event=event.ref, data={"server": server.name})
        if command.entry and not (len(command.entry) >= _ENTRY_LEAST and entry.startswith(command.entry)):
            what = f"the entry of {server.name} is another one than you were shown"
            return Receipt(ok=False, message=f"{what}: it is {entry[:ENTRY_SHOWN]}")
        if permissions.word(settings).standing is PermissionState.GIVEN:
            return Receipt(ok=True, message=f"{server.name} has your leave already")
        payload = await asyncio.to_thread(permissions.given, settings)
        event = log.append(payload, actor=actor, causes=(), tick=0)
        await log.commit()
        permissions.take(event)
        server.allow()
        how = "as long as its entry stays the same" if permissions.lasting else "until this session ends"
        message = f"{server.name} starts, now and later, {how}: {payload.what}"
        data = {"server": server.name, "entry": entry}
        return Receipt(ok=True, message=message, event=event.ref, data=data)
