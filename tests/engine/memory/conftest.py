"""Workspaces whose memory is closed however the test ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.engine.memory.memory_desk import MemoryDesk


@pytest.fixture
async def open_desk(tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[MemoryDesk]]]:
    opened: list[MemoryDesk] = []

    async def open_() -> MemoryDesk:
        opened.append(await MemoryDesk(tmp_path).open())
        return opened[-1]

    yield open_
    for one in opened:
        await one.close()


@pytest.fixture
async def desk(open_desk: Callable[..., Awaitable[MemoryDesk]]) -> MemoryDesk:
    return await open_desk()
