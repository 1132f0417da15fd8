"""Waiting for work to end even when the waiter is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def run_to_completion(work: Coroutine[Any, Any, T], on_cancel: Callable[[], object] | None = None) -> T:
    """The work's result; a cancellation is raised only once the work has ended.

    Args:
        work: runs as a task of its own and is never cancelled.
        on_cancel: tells the work to end early; called at each cancellation.
    """
    task = asyncio.ensure_future(work)
    interrupted: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            interrupted = error
            if on_cancel is not None:
                on_cancel()
    if interrupted is not None:
        if not task.cancelled():
            task.exception()  # marks it as seen: the cancellation is what the caller must hear of
        raise interrupted
    return task.result()
