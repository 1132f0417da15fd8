"""An engine in flight whose agent thinks by the scripted model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from engine_flight import Flight, QuickClock, journal_holds_together

from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.core.budgets import SpendingLimits
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.messages_server import MessagesServer, Reply

SECRET = "sk-not-for-the-journal-123"
MODEL = "claude-opus-4-6"
NO_WAIT = Retries(attempts=1)


def action(name: str, command: str, **args: Any) -> dict[str, Any]:
    """One action as a model gives it."""
    params = {"tool_id": "simple_coder", "command": command, "args": args}
    return {"type": "EXECUTE_TOOL", "id": name, "description": name, "params": params}


@asynccontextmanager
async def helm(
    tmp_path: Path,
    *script: Reply,
    budget: SpendingLimits | None = None,
    config: dict[str, Any] | None = None,
    model: str = MODEL,
    holds_together: bool = True,
) -> AsyncIterator[tuple[Flight, MessagesServer]]:
    """An engine whose agent thinks by the scripted model; its journal is sound and replays without it."""
    async with MessagesServer(list(script)) as server:
        choice = ModelChoice(
            Endpoint(server.url, SECRET), model, budget=budget or SpendingLimits(), retries=NO_WAIT
        )
        flight = Flight(tmp_path / "ws", QuickClock(), EngineConfig(model=choice))
        await flight.open()
        await flight.do(cmd.CreateAgent, config=config or {})
        try:
            yield flight, server
        finally:
            await flight.engine.close()
        asked = len(server.requests)
        if holds_together:
            await journal_holds_together(tmp_path / "ws")
        assert len(server.requests) == asked


def told(server: MessagesServer, request: int) -> str:
    """Everything that one request said to the model, system and tools left out."""
    return json.dumps(server.requests[request].body["messages"], ensure_ascii=False)
