"""The MCP servers of an engine that another process has, as it says them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.gateways.remote_parts import made
from engine.core.ports import Ports
from engine.sandbox.policy import SandboxPolicy
from engine.tools.mcp.health import ServerView
from engine.tools.mcp.process import ProgramEnvironment
from engine.tools.mcp.settings import McpSettings
from engine.tools.mcp.workspace_servers import Entry, Servers


class RemoteServers(Servers):
    """The servers of an engine's workspace as it says them; permission is given by commands.

    Args:
        said: the engine's answer to `tools`.
        workspace: its directory.
        root: of its sandbox.
    """

    def __init__(self, said: Mapping[str, Any], workspace: Path, root: Path) -> None:
        around = ProgramEnvironment(workspace, root, SandboxPolicy(), os.environ)
        super().__init__(McpSettings(), around, Ports().clock)
        self._problems = list(said["problems"])
        self._views = tuple(made(ServerView, row) for row in said["views"])
        self._entries = tuple(made(Entry, row) for row in said["entries"])

    @property
    def views(self) -> tuple[ServerView, ...]:
        """See `Servers.views`."""
        return self._views

    @property
    def entries(self) -> tuple[Entry, ...]:
        """See `Servers.entries`."""
        return self._entries
