"""MCP: servers that are started, watched and started again, their tools as tools of the engine, and ours
served.

What may enter: a workspace's `mcp.json`, a sandbox policy, calls. What leaves: answers as values, health
lines, tools for the registry. Nothing here decides whether a call may run: that is the gate's. The SDK is
imported when a server is first connected, never before. Source: ontology spec §1.14.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import late

if TYPE_CHECKING:
    from engine.mcp.allowed import AllowedTools, LocalTool, read_allowed
    from engine.mcp.answers import CallAnswer, Outcome
    from engine.mcp.custom import CustomFunction, CustomFunctionError, CustomFunctions
    from engine.mcp.fleet import Met, Servers
    from engine.mcp.global_actions import BUILT_INS, GlobalAction, check_actions
    from engine.mcp.health import ServerState, ServerView
    from engine.mcp.names import resolve, tool_name
    from engine.mcp.process import Surroundings
    from engine.mcp.servers import Server
    from engine.mcp.settings import FILE, McpSettings, ServerSettings, SettingsFault, load, load_all, read
    from engine.mcp.starting import Entry, StartedServers, open_servers
    from engine.mcp.tool import McpTool
else:
    __getattr__ = late(
        __name__,
        {
            "allowed": ("AllowedTools", "LocalTool", "read_allowed"),
            "answers": ("CallAnswer", "Outcome"),
            "custom": ("CustomFunctionError", "CustomFunction", "CustomFunctions"),
            "fleet": ("Met", "Servers"),
            "global_actions": ("BUILT_INS", "GlobalAction", "check_actions"),
            "health": ("ServerState", "ServerView"),
            "names": ("resolve", "tool_name"),
            "process": ("Surroundings",),
            "servers": ("Server",),
            "settings": (
                "FILE",
                "McpSettings",
                "ServerSettings",
                "SettingsFault",
                "load",
                "load_all",
                "read",
            ),
            "starting": ("Entry", "StartedServers", "open_servers"),
            "tool": ("McpTool",),
        },
    )

__all__ = [
    "BUILT_INS",
    "FILE",
    "AllowedTools",
    "CallAnswer",
    "CustomFunction",
    "CustomFunctionError",
    "CustomFunctions",
    "Entry",
    "GlobalAction",
    "LocalTool",
    "McpSettings",
    "McpTool",
    "Met",
    "Outcome",
    "Server",
    "ServerSettings",
    "ServerState",
    "ServerView",
    "Servers",
    "SettingsFault",
    "StartedServers",
    "Surroundings",
    "check_actions",
    "load",
    "load_all",
    "open_servers",
    "read",
    "read_allowed",
    "resolve",
    "tool_name",
]
