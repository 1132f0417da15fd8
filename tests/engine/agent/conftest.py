"""Engines in flight, each checked in the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight, QuickClock, journal_holds_together, live_state_is_the_fold

from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.core.ports import SystemClock


@pytest.fixture
async def open_flight() -> AsyncIterator[Callable[..., Any]]:
    """Opens flights with their agent, and checks every journal in the end."""
    flights: list[Flight] = []

    async def open_(
        workspace: Path, clock: SystemClock | None = None, config: EngineConfig | None = None
    ) -> Flight:
        flight = Flight(workspace, clock or QuickClock(), config)
        await flight.open()
        flights.append(flight)
        await flight.do(cmd.CreateAgent)
        return flight

    yield open_
    for flight in flights:
        for agent in flight.engine.agents:
            await live_state_is_the_fold(flight, agent)
        await flight.engine.close()
        await journal_holds_together(flight.workspace)


@pytest.fixture
async def flight(tmp_path: Path, open_flight: Callable[..., Any]) -> Flight:
    made: Flight = await open_flight(tmp_path)
    return made
