"""A cockpit's engine answers other programs of its user while it is open, and shows what they do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from flight import cockpit

from app.gateways.addresses import record_of
from app.gateways.engine_client import EngineClient, EngineLostError
from app.gateways.protocol import ProtocolError
from engine.core import commands as cmd


async def test_other_programs_use_a_cockpits_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    workspace = tmp_path / "ws"
    async with cockpit(workspace) as flight:
        await flight.until(lambda: record_of(workspace) is not None, "an engine that answers")
        client = await EngineClient.open(workspace, "ann")
        assert client is not None
        assert client.hello["kind"] == "cockpit"
        goal = cmd.AdoptGoal(agent="pilot-1", text="list the files")
        assert (await client.submit(goal)).ok
        await flight.until(lambda: bool(flight.state.open_goals), "the goal on the screen")
        assert (await client.ask("line", line="status"))["answer"]["agent"] == "pilot-1"
        with pytest.raises(ProtocolError, match="cockpit"):
            await client.ask("stop")
        waiting = asyncio.create_task(client.ask("faulted", agent="pilot-1"))
        await flight.press("ctrl+q")
        with pytest.raises(EngineLostError, match="left the cockpit"):
            await waiting
        await client.close()
    assert record_of(workspace) is None
