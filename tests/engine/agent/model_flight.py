"""An engine whose agents think by the scripted model, over real sockets; replayed without it in the end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.core.budgets import SpendingLimits
from engine.core.state import AgentState
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.engine.agent.engine_flight import Flight, QuickClock, journal_holds_together
from tests.messages_server import MessagesServer, Reply, Seen

MODEL = "claude-opus-4-6"
Answer = Reply | Callable[[Seen], Reply]


@asynccontextmanager
async def model_flight(
    workspace: Path,
    *script: Answer,
    repeat: bool = False,
    budget: SpendingLimits | None = None,
    retries: Retries | None = None,
) -> AsyncIterator[tuple[Flight, MessagesServer]]:
    """An engine with a scripted model and no agent yet.

    In the end the journal is verified and every agent replayed, which asks the model nothing more.
    """
    async with MessagesServer(list(script), repeat=repeat) as server:
        once = retries or Retries(attempts=1)
        choice = ModelChoice(Endpoint(server.url), MODEL, budget=budget or SpendingLimits(), retries=once)
        flight = Flight(workspace, QuickClock(), EngineConfig(model=choice))
        await flight.open()
        try:
            yield flight, server
        finally:
            await flight.engine.close()
        asked = len(server.requests)
        await journal_holds_together(workspace)
        assert len(server.requests) == asked


def planned(command: str, /, tool: str = "simple_coder", **args: Any) -> dict[str, Any]:
    """One action of a plan as a model gives it."""
    params = {"tool_id": tool, "command": command, "args": args}
    return {"type": "EXECUTE_TOOL", "description": command, "params": params}


def told(seen: Seen) -> str:
    """The newest turn of a request as plain text: what the model has been told last."""
    content = seen.body["messages"][-1]["content"]
    blocks = [content] if isinstance(content, str) else content
    return "\n".join(_text(block) for block in blocks)


def _text(block: Any) -> str:
    if isinstance(block, str):
        return block
    given = block.get("text") or block.get("content") or ""
    return given if isinstance(given, str) else "\n".join(map(_text, given))


def valid_calls(state: AgentState) -> set[tuple[str, str, str]]:
    """Tool, command and arguments of every step that was ever adopted, arguments as JSON."""
    return {
        (step.tool, step.command, json.dumps(step.args, sort_keys=True))
        for plan in state.plans.values()
        for step in plan.steps
    }


async def created(flight: Flight, agent: str = "", **config: Any) -> None:
    """Bring an agent to be that thinks by the model."""
    await flight.do(cmd.CreateAgent, agent=agent or flight.agent, config=config)
