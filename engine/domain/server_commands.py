"""Commands about the MCP servers of a workspace: leave for one to start, given and taken back."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.domain.command import Command

_Server = Annotated[str, Field(min_length=1, max_length=64)]


class ForServers(Command):
    """What concerns the servers that `mcp.json` names, and no agent."""


class TrustServer(ForServers):
    """Let a server of the workspace's `mcp.json` start, now and in later sessions, as long as its entry is
    the same.
    """

    do: Literal["mcp_trust"] = "mcp_trust"
    server: _Server
    entry: Annotated[str, Field(max_length=64)] = ""
    """The hash of the entry as it was read, or its beginning, so that nobody gives leave to something else;
    empty for the entry as it is."""


class DistrustServer(ForServers):
    """Let a server not start, and end it where it runs."""

    do: Literal["mcp_distrust"] = "mcp_distrust"
    server: _Server


ServerCommand = TrustServer | DistrustServer
