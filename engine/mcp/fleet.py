"""All MCP servers of a workspace, and their tools in the registry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.domain.ports import Clock
from engine.mcp.answers import CallAnswer, Outcome
from engine.mcp.health import ServerState, ServerView, shown
from engine.mcp.names import resolve
from engine.mcp.process import Surroundings
from engine.mcp.servers import Server
from engine.mcp.settings import McpSettings, ServerSettings
from engine.mcp.tool import McpTool
from engine.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Met:
    """Whether what an agent needs of a server is there (ontology spec §2.5, line 52 of its checklist)."""

    server: str
    ok: bool
    """Whether it is up and has every tool that is needed."""
    message: str = ""
    """What is missing; empty where nothing is."""
    tools: tuple[str, ...] = ()
    """The tools that are needed and there; all of the server's for `*`."""


class Servers:
    """The servers by name; `begin` them, and always `close` them.

    Args:
        settings: the workspace's `mcp.json`.
        around: where programs run.
        clock: the time.
        told: called with each change of a server.
        withheld: why a server may not start, in words; empty for one that may.
    """

    def __init__(
        self,
        settings: McpSettings,
        around: Surroundings,
        clock: Clock,
        told: Callable[[ServerView], None] = lambda _view: None,
        withheld: Callable[[ServerSettings], str] = lambda _settings: "",
    ) -> None:
        self.settings = settings
        self._told: list[Callable[[ServerView], None]] = [told]
        self._servers = {
            one.name: Server(one, around, clock, self._tell, withheld(one)) for one in settings.servers
        }
        self._problems: list[str] = [str(fault) for fault in settings.faults]

    def follow(self, told: Callable[[ServerView], None]) -> None:
        """Have somebody else told of each change as well."""
        self._told.append(told)

    def _tell(self, view: ServerView) -> None:
        for told in self._told:
            told(view)

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

    async def health(self, *, fresh: bool = False) -> tuple[ServerView, ...]:
        """How each is, asked where that was not done in the last minute."""
        return tuple(await asyncio.gather(*(one.health(fresh=fresh) for one in self._servers.values())))

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
        """What is wrong with the settings, and the line of each server that is down, degraded or waits."""
        bad = (ServerState.DOWN, ServerState.DEGRADED, ServerState.WAITING)
        return (*self._problems, *(view.line for view in self.views if view.state in bad))

    @property
    def servers(self) -> tuple[Server, ...]:
        """All of them."""
        return tuple(self._servers.values())

    def get(self, name: str) -> Server | None:
        """The server of that name, whatever the case."""
        return next((one for one in self._servers.values() if one.name.lower() == name.lower()), None)

    def resolve(self, text: str) -> tuple[Server, str] | None:
        """Which server's tool a text names, in any of the spellings."""
        found = resolve(text, {name: tuple(one.tools) for name, one in self._servers.items()})
        return (self._servers[found[0]], found[1]) if found is not None else None

    async def call(self, text: str, args: Mapping[str, Any]) -> CallAnswer:
        """Call a tool by one of its spellings, past the gate: for checks of the builder only.

        Raises:
            asyncio.CancelledError: see `Server.call`.
        """
        await self.settled()
        found = self.resolve(text)
        if found is None:
            return CallAnswer(Outcome.UNKNOWN_TOOL, f"there is no tool {shown(text, 80)!r}")
        server, tool = found
        return await server.call(tool, args)

    async def meets(self, server: str, tools: Sequence[str] = ("*",)) -> Met:
        """Whether a server is up and lists these tools; the caller knows whether it has to.

        Args:
            server: its name, whatever the case.
            tools: names of its tools, or `*` for whatever it has.
        """
        one = self.get(server)
        if one is None:
            return Met(server, False, f"mcp.json names no server {shown(server, 40)}")
        view = await one.settled()
        if view.state is ServerState.WAITING:
            return Met(one.name, False, f"{one.name} waits for the operator's leave: {view.error}")
        if view.state not in (ServerState.OK, ServerState.DEGRADED):
            return Met(one.name, False, f"{one.name} is {view.state}: {view.error}")
        known = {
            name: (resolve(f"{one.name}.{name}", {one.name: view.tools}) or ("", ""))[1] for name in tools
        }
        missing = [shown(name, 60) for name, found in known.items() if not found and name != "*"]
        there = view.tools if "*" in tools else tuple(found for found in known.values() if found)
        said = f"{one.name} has no tool {', '.join(missing)}" if missing else ""
        return Met(one.name, not missing, said, there)

    async def close(self) -> None:
        """Shut all of them down."""
        await asyncio.gather(*(server.close() for server in self._servers.values()))
