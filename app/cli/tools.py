"""`pilothouse tools`: the tools that agents of a workspace have, and how its MCP servers are."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from app.cli.beside import answer_in_engine
from app.cli.options import Answer, run_answer, workspace_of
from app.commands.headless import open_engine
from app.commands.settings import Settings
from app.gateways.engine_client import EngineClient
from app.gateways.remote_parts import remote_tools
from app.gateways.remote_servers import RemoteServers
from app.gateways.socket_server import served
from engine.core.ports import Tool
from engine.tools.mcp.health import ServerState, ServerView
from engine.tools.mcp.workspace_servers import Entry, Servers


async def _beside(options: argparse.Namespace, client: EngineClient) -> Answer:
    said, here = await client.ask("tools", settled=True), workspace_of(options)
    return tools_answer(remote_tools(said), RemoteServers(said, here, here), log=options.log)


async def _alone(options: argparse.Namespace) -> Answer:
    """Open the workspace for it.

    Raises:
        JournalError: it cannot be opened.
    """
    workspace = workspace_of(options)
    config = Settings.load(workspace).engine_config(model=False)
    async with open_engine(workspace, config, partial(served, kind="tools")) as engine:
        return tools_answer(engine.registry, engine.servers, log=options.log)


def tools_answer(registry: Iterable[Tool], servers: Servers | None, *, log: bool = False) -> Answer:
    """Every tool with its commands, then a line for each MCP server.

    Exit code 1 where a server is down, 3 where one waits for leave.

    Args:
        registry: the tools.
        servers: the servers of the workspace, each up or known to be down.
        log: tell the last lines of servers' standard error as well.
    """
    views = servers.views if servers is not None else ()
    asked = {entry.server: entry for entry in servers.asked} if servers is not None else {}
    problems = list(servers.problems) if servers is not None else []
    waiting = servers is not None and bool(servers.troubles)
    tools = [_tool_row(tool) for tool in registry]
    states = {view.name: view.state for view in views}
    lines = [_tool_text(tool, states.get(str(tool["tool"]))) for tool in tools]
    lines += [line for view in views for line in _server_lines(view, asked.get(view.name), log=log)]
    rows = [_server_row(view, asked.get(view.name), log=log) for view in views]
    down = ServerState.DOWN in states.values()
    code = 1 if down or problems else 3 if waiting else 0
    answer = {"ok": not code, "tools": tools, "servers": rows, "problems": problems}
    return code, answer, "\n".join([*lines, *problems])


def _tool_row(tool: Tool) -> dict[str, Any]:
    commands = [name for name, spec in tool.commands.items() if not spec.operator_only]
    return {"tool": tool.id, "description": tool.description, "commands": commands}


def _server_lines(view: ServerView, asked: Entry | None, *, log: bool) -> list[str]:
    more = [f"  {line}" for line in view.log] if log else []
    return [f"MCP {view.line}", *(_question(asked) if asked is not None else ()), *more]


def _server_row(view: ServerView, asked: Entry | None, *, log: bool) -> dict[str, Any]:
    row = {**view.as_json(), **({"log": list(view.log)} if log else {})}
    if asked is not None:
        row["leave"] = {"entry": asked.entry, "refused": asked.refused, **dict(asked.facts)}
    return row


def _tool_text(tool: Mapping[str, Any], state: ServerState | None) -> str:
    missing = f"not there: {state}" if state is not None and not tool["commands"] else ""
    return f"{tool['tool']}: {tool['description']}\n  {missing or ', '.join(tool['commands'])}"


def _question(entry: Entry) -> list[str]:
    return [f"  {label}: {text}" for label, text in entry.facts]


# ------------------------------------------------------------------ the subcommand


def run(options: argparse.Namespace) -> int:
    """List tools and servers."""
    beside, alone = partial(_beside, options), partial(_alone, options)
    return run_answer(options, answer_in_engine(workspace_of(options), beside, alone))
