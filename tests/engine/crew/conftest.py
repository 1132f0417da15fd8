from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.engine.crew.flight import Flight


@pytest.fixture
async def flight(tmp_path: Path) -> AsyncIterator[Flight]:
    """A crew, open; nothing of it runs afterwards."""
    made = Flight(tmp_path)
    await made.open()
    yield made
    await made.close()
    for one in made.crew.state.open():
        # What waits or rests is there in the next session; the engine would close its agent.
        if one.run in made.worker.tasks:
            await made.worker.stop(one.run, "")
    assert all(task.done() for task in made.worker.tasks.values())
