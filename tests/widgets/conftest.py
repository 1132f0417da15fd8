from __future__ import annotations

import asyncio

import pytest


async def _take_messages(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Let the event loop take some turns."""
    for _ in range(60):
        await asyncio.sleep(0)


async def _draw(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Wait until what was asked for stands on the screen: for a little longer than one update takes."""
    await _take_messages()
    await asyncio.sleep(0.05)
    await _take_messages()


@pytest.fixture(autouse=True)
def _no_waiting_for_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual's pilot waits for an idle process, twice after each key; widgets alone need only be drawn."""
    monkeypatch.setattr("textual.app.wait_for_idle", _take_messages)
    monkeypatch.setattr("textual.pilot.wait_for_idle", _draw)
