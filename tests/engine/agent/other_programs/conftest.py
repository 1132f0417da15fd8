"""Engines with an agent that another program is; each journal is verified and replayed in the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.engine.agent.engine_flight import (
    Flight,
    QuickClock,
    journal_holds_together,
    live_state_is_the_fold,
)


@pytest.fixture
async def flight(tmp_path: Path) -> AsyncIterator[Flight]:
    """A flight over a workspace with a file; the replay in the end has no program."""
    made = Flight(tmp_path / "workspace", QuickClock())
    await made.open()
    (made.sandbox / "notes.txt").write_text("remember\n")
    yield made
    await live_state_is_the_fold(made, "dev")
    await made.engine.close()
    await journal_holds_together(made.workspace)
