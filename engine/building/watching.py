"""Watch mode: a skill is built again half a second after its last change, once (ontology spec §2.9)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from engine.building.findings import BuildResult
from engine.building.resources import LEFT_OUT

QUIET_MS = 500
_LONGEST_MS = 60_000


async def watch(
    folder: Path,
    build: Callable[[], Awaitable[BuildResult]],
    told: Callable[[BuildResult], None],
    stop: asyncio.Event,
    began: Callable[[], None] = lambda: None,
) -> None:
    """Build now, then after each burst of changes below a folder, until `stop` is set.

    Args:
        folder: the skill's.
        build: builds it.
        told: called with each result.
        stop: ends the watch.
        began: called once the folder is watched.
    """
    # Imported here: what never watches should not pay for it.
    from watchfiles import awatch

    told(await build())
    changes = awatch(
        folder,
        watch_filter=lambda _change, path: not LEFT_OUT & set(Path(path).parts[len(folder.parts) :]),
        step=QUIET_MS,
        debounce=_LONGEST_MS,
        rust_timeout=200,
        yield_on_timeout=True,
        stop_event=stop,
    )
    first = True
    async for burst in changes:
        if first:
            first = False
            began()
        if burst:
            told(await build())
