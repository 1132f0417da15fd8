"""`pilothouse tools`: the tools that agents of a workspace have, and how its MCP servers are."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.cli.options import Answer, run_answer, workspace_of
from app.commands.headless import open_engine
from app.commands.settings import Settings
from engine.api.engine import Engine
from engine.core.agents import DistrustServer, ForServers, TrustServer
from engine.core.ports import Tool
from engine.tools.mcp.health import ServerState, ServerView
from engine.tools.mcp.workspace_servers import Entry, StartedServers


async def list_tools(
    workspace: Path, *, log: bool = False, trust: Sequence[str] = (), distrust: Sequence[str] = ()
) -> Answer:
    """Every tool with its commands, then a line for each MCP server.

    Exit code 1 where a server is down or leave could not be given, 3 where one waits for leave.

    Args:
        workspace: where.
        log: tell the last lines of servers' standard error as well.
        trust: servers of `mcp.json` that may start from now on.
        distrust: servers that may not.

    Raises:
        JournalError: the workspace cannot be opened.
    """
    settings = Settings.load(workspace)
    async with open_engine(workspace, settings.engine_config(model=False)) as engine:
        decisions = await _decide(engine, settings.operator, trust, distrust)
        servers = engine.servers
        views = await servers.settled() if servers is not None else ()
        asked, trusted, problems = _entries(servers, trust)
        waiting = servers is not None and bool(servers.troubles)
        tools = [_tool_row(tool) for tool in engine.registry]
    states = {view.name: view.state for view in views}
    lines = [text for _, text in decisions]
    lines += [line for entry in trusted for line in _question(entry)]
    lines += [_tool_text(tool, states.get(str(tool["tool"]))) for tool in tools]
    lines += [line for view in views for line in _server_lines(view, asked.get(view.name), log=log)]
    rows = [_server_row(view, asked.get(view.name), log=log) for view in views]
    down = ServerState.DOWN in states.values()
    failed = down or bool(problems) or not all(ok for ok, _ in decisions)
    code = 1 if failed else 3 if waiting else 0
    answer = {"ok": not code, "tools": tools, "servers": rows, "problems": problems}
    replies = [{"ok": ok, "message": text} for ok, text in decisions]
    return code, answer | ({"said": replies} if replies else {}), "\n".join([*lines, *problems])


def _entries(
    servers: StartedServers | None, trust: Sequence[str]
) -> tuple[dict[str, Entry], list[Entry], list[str]]:
    """The servers that wait for leave, those that this call lets start, and what is wrong with others."""
    if servers is None:
        return {}, [], []
    asked = {entry.server: entry for entry in servers.asked}
    return asked, [entry for entry in servers.entries if entry.server in trust], list(servers.problems)


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


async def _decide(
    engine: Engine, operator: str, trust: Sequence[str], distrust: Sequence[str]
) -> list[tuple[bool, str]]:
    """Let servers start, or not any more; whether each was accepted, and the message."""
    commands: list[ForServers] = [TrustServer(server=name) for name in trust]
    commands += [DistrustServer(server=name) for name in distrust]
    receipts = [await engine.submit(command, operator=operator) for command in commands]
    return [(receipt.ok, receipt.message) for receipt in receipts]


def _question(entry: Entry) -> list[str]:
    return [f"  {label}: {text}" for label, text in entry.facts]


# ------------------------------------------------------------------ the subcommand


def _server(text: str) -> str:
    if not 0 < len(text) <= 64:
        raise argparse.ArgumentTypeError("a server's name has 1 to 64 characters")
    return text


def add_arguments(tools: argparse.ArgumentParser) -> None:
    """Declare what it takes."""
    tools.add_argument(
        "--trust",
        action="append",
        default=[],
        type=_server,
        metavar="SERVER",
        help="let this server of the workspace's mcp.json start, now and later; repeatable",
    )
    tools.add_argument(
        "--distrust",
        action="append",
        default=[],
        type=_server,
        metavar="SERVER",
        help="let it not start any more; repeatable",
    )
    tools.add_argument("--log", action="store_true", help="the last lines of servers' standard error, too")


def run(options: argparse.Namespace) -> int:
    """List tools and servers, and trust servers."""
    work = list_tools(workspace_of(options), log=options.log, trust=options.trust, distrust=options.distrust)
    return run_answer(options, work)
