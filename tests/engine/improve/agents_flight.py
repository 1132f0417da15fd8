"""An engine in flight with its desk for agents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from engine.agent.shared import EngineConfig
from engine.improve.agent_creation import AgentService
from tests.engine.agent.engine_flight import Flight, QuickClock, journal_holds_together


@asynccontextmanager
async def desk_flight(
    workspace: Path, config: EngineConfig | None = None
) -> AsyncIterator[tuple[Flight, AgentService]]:
    """A workspace without agents, and the desk; in the end the journal is verified and replayed."""
    flight = Flight(workspace, QuickClock(), config)
    await flight.open()
    try:
        yield flight, await desk_of(flight)
    finally:
        await flight.engine.close()
    await journal_holds_together(workspace)


async def desk_of(flight: Flight) -> AgentService:
    """The desk of an engine that is open."""
    return await flight.engine.agent_service()
