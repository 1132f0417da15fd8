"""AgentSpeak(L) agents in flight, each checked in the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from engine.core import commands as cmd
from tests.engine.agent.engine_flight import journal_holds_together, live_state_is_the_fold
from tests.engine.agent.reasoner.reasoner_flight import Oracle, ReasonerFlight, same_mind_from_the_journal

Fly = Callable[..., Awaitable[ReasonerFlight]]


@pytest.fixture
async def fly(tmp_path: Path) -> AsyncIterator[Fly]:
    """Opens flights with an agent of a program; in the end journal, mind and replay are checked."""
    flights: list[ReasonerFlight] = []

    async def open_(program: str = "", *, oracle: Oracle | None = None, **config: Any) -> ReasonerFlight:
        flight = ReasonerFlight(tmp_path / f"w{len(flights)}", oracle)
        flight.workspace.mkdir()
        await flight.open()
        flights.append(flight)
        if program:
            receipt = await flight.create(program, **config)
            assert receipt.ok, receipt.message
        return flight

    yield open_
    for flight in flights:
        await checked(flight)


async def checked(flight: ReasonerFlight) -> None:
    agents = flight.engine.agents
    for agent in agents:
        await flight.submit(cmd.Pause, agent=agent)
        await live_state_is_the_fold(flight, agent)
        await same_mind_from_the_journal(flight, agent)
    await flight.engine.close()
    for replay in await journal_holds_together(flight.workspace):
        assert not replay.model_calls
