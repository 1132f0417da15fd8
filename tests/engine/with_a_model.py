"""Engines of one workspace that a scripted model thinks for, and its actions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.models.choice import ModelChoice
from tests.messages_server import MessagesServer

Opened = Callable[..., Awaitable[Engine]]
"""Opens the workspace, with the model of a server or without one."""


def act(command: str, number: int = 1, **args: Any) -> dict[str, Any]:
    """One action of a plan."""
    call = {"tool_id": "simple_coder", "command": command, "args": args}
    return {"type": "EXECUTE_TOOL", "id": str(number), "description": command, "params": call}


@asynccontextmanager
async def opening(workspace: Path) -> AsyncIterator[Opened]:
    """What opens the workspace; all of it is closed in the end."""
    engines: list[Engine] = []

    async def open_(server: MessagesServer | None = None) -> Engine:
        model = None
        if server is not None:
            environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
            model = ModelChoice.from_environment(environ, name="claude-sonnet-5-5")
        engines.append(await Engine.open(workspace, config=EngineConfig(model=model)))
        return engines[-1]

    yield open_
    for engine in engines:
        await engine.close()
