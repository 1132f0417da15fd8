"""The tools of a workspace as a build asks for them: the engine's, those of mcp.json, custom functions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.building.assembly import Allowed, FunctionError
from engine.mcp.allowed import read_allowed
from engine.sandbox import SandboxPolicy

if TYPE_CHECKING:
    from engine.mcp.fleet import Servers

_CREW = frozenset({"ask", "delegate"})


class WorkspaceTools:
    """What a workspace has.

    Args:
        workspace: the directory with mcp.json.
        root: the sandbox root, beneath which custom functions lie.
        policy: of the sandbox.
        servers: servers that run already.
        starts: whether a server that nobody runs may be started to be looked at; an open workspace has
            those that the operator let start, and nobody else may start one unasked.
    """

    def __init__(
        self,
        workspace: Path,
        root: Path,
        policy: SandboxPolicy,
        servers: Servers | None = None,
        *,
        starts: bool = False,
    ) -> None:
        self._workspace, self._root, self._policy, self._servers = workspace, root, policy, servers
        self._starts = starts

    def allowed(self, tokens: Sequence[str]) -> Allowed:
        """See `ToolsAt.allowed`."""
        read = read_allowed(tokens)
        commands = (
            f"{one.tool}.{one.command}" + (f" {one.program}" if one.program else "") for one in read.tools
        )
        return Allowed(tuple(dict.fromkeys(commands)), read.unresolved)

    def has(self, command: str) -> bool:
        """See `ToolsAt.has`."""
        from engine.memory.commands import COMMANDS as MEMORY
        from engine.tools.simple_coder_commands import COMMANDS as CODER

        tool, _, name = command.partition(".")
        return name in {"simple_coder": CODER, "memory": MEMORY, "crew": _CREW}.get(tool, ())

    async def lacks(self, server: str, tools: Sequence[str]) -> str:
        """See `ToolsAt.lacks`."""
        if self._servers is not None:
            return (await self._servers.meets(server, tools)).message
        from engine.domain.ports import SystemClock
        from engine.mcp import McpSettings, Servers, Surroundings, load

        settings = await asyncio.to_thread(load, self._workspace)
        one = tuple(each for each in settings.servers if each.name.lower() == server.lower())
        wrong = "; ".join(str(fault) for fault in settings.faults)
        if one and not self._starts:
            return f"{one[0].name} does not run: open the workspace and let it start"
        around = Surroundings(self._workspace, self._root, self._policy, os.environ)
        servers = Servers(McpSettings(one), around, SystemClock())
        try:
            servers.begin()
            return (await servers.meets(server, tools)).message + (f"; {wrong}" if wrong and not one else "")
        finally:
            await servers.close()

    async def introspect(self, name: str, function: str, parameters: Mapping[str, Any] | None) -> None:
        """See `ToolsAt.introspect`."""
        from engine.mcp.custom import CustomFunctionError, CustomFunctions

        if not await asyncio.to_thread(self._root.is_dir):
            raise FunctionError(f"{function} cannot be looked at: this workspace has no sandbox yet")
        try:
            await CustomFunctions(self._root, self._policy).look(name, function, parameters)
        except CustomFunctionError as error:
            raise FunctionError(str(error)) from error
