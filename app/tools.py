"""`pilothouse tools`: the tools that agents of a workspace have, and how its MCP servers are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.headless import opened
from app.settings import Settings
from engine.domain.server_commands import DistrustServer, ForServers, TrustServer
from engine.engine import Engine
from engine.mcp import ServerState
from engine.mcp.starting import Entry

Answer = tuple[int, dict[str, Any], str]
"""Exit code, JSON answer, text."""


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
    async with opened(workspace, settings.engine_config(model=False)) as engine:
        said = await _leave(engine, settings.operator, trust, distrust)
        servers = engine.servers
        views = await servers.health() if servers is not None else ()
        problems = tuple(servers.problems) if servers is not None else ()
        troubles = servers.troubles if servers is not None else ()
        asked = {one.server: one for one in servers.asked} if servers is not None else {}
        given = [one for one in servers.entries if one.server in trust] if servers is not None else []
        states = {view.name: view for view in views}
        tools = [
            {
                "tool": tool.id,
                "description": tool.description,
                "commands": [name for name, spec in tool.commands.items() if not spec.operator_only],
            }
            for tool in engine.registry
        ]
    lines = [text for _, text in said]
    lines += [line for one in given for line in _question(one)]
    for one in tools:
        view = states.get(str(one["tool"]))
        gone = f"not there: {view.state}" if view is not None and not one["commands"] else ""
        lines.append(f"{one['tool']}: {one['description']}\n  {gone or ', '.join(one['commands'])}")
    for view in views:
        lines.append(f"MCP {view.line}")
        lines += _question(asked[view.name]) if view.name in asked else []
        lines += [f"  {line}" for line in view.log] if log else []
    rows = [{**view.as_json(), **({"log": list(view.log)} if log else {})} for view in views]
    for row in rows:
        if (entry := asked.get(str(row["name"]))) is not None:
            row["leave"] = {"entry": entry.entry, "refused": entry.refused, **dict(entry.facts)}
    refused = any(not ok for ok, _ in said)
    down = bool(problems) or any(view.state in (ServerState.DOWN, ServerState.DEGRADED) for view in views)
    code = 1 if down or refused else 3 if troubles else 0
    answer = {"ok": not code, "tools": tools, "servers": rows, "problems": list(problems)}
    if said:
        answer["said"] = [{"ok": ok, "message": text} for ok, text in said]
    return code, answer, "\n".join([*lines, *problems])


async def _leave(
    engine: Engine, operator: str, trust: Sequence[str], distrust: Sequence[str]
) -> list[tuple[bool, str]]:
    """Give and take leave; what came of each."""
    commands: list[ForServers] = [TrustServer(server=name) for name in trust]
    commands += [DistrustServer(server=name) for name in distrust]
    receipts = [await engine.submit(command, operator=operator) for command in commands]
    return [(one.ok, one.message) for one in receipts]


def _question(entry: Entry) -> list[str]:
    return [f"  {label}: {text}" for label, text in entry.facts]
