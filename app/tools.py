"""`pilothouse tools`: the tools that agents of a workspace have, and how its MCP servers are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.headless import opened
from app.settings import Settings

Answer = tuple[int, dict[str, Any], str]
"""Exit code, JSON answer, text."""


async def list_tools(workspace: Path, *, log: bool = False) -> Answer:
    """Every tool with its commands, then a line for each MCP server; exit code 1 where a server is down.

    Args:
        workspace: where.
        log: tell the last lines of servers' standard error as well.

    Raises:
        JournalError: the workspace cannot be opened.
    """
    async with opened(workspace, Settings.load(workspace).engine_config(model=False)) as engine:
        servers = engine.servers
        views = await servers.health() if servers is not None else ()
        problems = tuple(servers.problems) if servers is not None else ()
        troubles = servers.troubles if servers is not None else ()
        tools = [
            {
                "tool": tool.id,
                "description": tool.description,
                "commands": [name for name, spec in tool.commands.items() if not spec.operator_only],
            }
            for tool in engine.registry
        ]
    lines = [f"{one['tool']}: {one['description']}\n  {', '.join(one['commands'])}" for one in tools]
    for view in views:
        lines.append(f"MCP {view.line}")
        lines += [f"  {line}" for line in view.log] if log else []
    rows = [{**view.as_json(), **({"log": list(view.log)} if log else {})} for view in views]
    answer = {"ok": not troubles, "tools": tools, "servers": rows, "problems": list(problems)}
    return (1 if troubles else 0), answer, "\n".join([*lines, *problems])
