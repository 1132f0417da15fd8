"""One build of an agent at a time, in this process and in others."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.building.naming import slug
from engine.building.staging import Places

_AGAIN_S = 0.05


@asynccontextmanager
async def held(places: Places, agent_id: str) -> AsyncIterator[None]:
    """Wait until nobody else builds this agent; the lock goes with the process that has it."""
    places.builds.mkdir(parents=True, exist_ok=True)
    path = places.builds / f"{slug(agent_id) or 'agent'}.lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_AGAIN_S)
        yield
    finally:
        os.close(lock)
