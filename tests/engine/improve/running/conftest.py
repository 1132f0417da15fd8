"""An engine with Mastermind open; what it journaled is checked in the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from running_craft import Craft
from words import lay

from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core.improvement import MastermindSettings


@pytest.fixture
async def reopen(tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[Craft]]]:
    """Opens the workspace, closing the one before; the live state is the fold, and the journal is sound."""
    crafts: list[Craft] = []

    async def close() -> None:
        for craft in crafts:
            await craft.close()
        crafts.clear()

    async def open_(settings: MastermindSettings | None = None) -> Craft:
        await close()
        config = EngineConfig(mastermind=settings or MastermindSettings(interval_s=0.0, busy_percent=100.0))
        engine = await Engine.open(tmp_path, config=config)
        crafts.append(Craft(engine, await engine.mastermind()))
        return crafts[0]

    yield open_
    await close()


@pytest.fixture
async def craft(tmp_path: Path, reopen: Callable[..., Awaitable[Craft]]) -> Craft:
    lay(tmp_path)
    return await reopen()
