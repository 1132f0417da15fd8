"""Plugging the worker into the crew that is being opened."""

from __future__ import annotations

from typing import Any


async def register(crew: Any) -> None:
    """Have the engine that a crew stands on make its runs."""

    async def desk() -> Any:
        return crew.desk

    worker = crew.ground.staff(desk, permits=crew.permits, colleagues=crew.desk, present=crew.attended)
    await worker.open(crew.desk)
    crew.plug(worker=worker)
