"""How long Textual's pilot waits after each key and in each pause."""

from __future__ import annotations

import asyncio
import time

from textual._context import active_app

from tests.patience import PATIENCE_S

BREATH_S = 0.005
"""What a thread or a program brings meanwhile is handled too."""
AT_MOST_S = 0.25


async def settled(_min_s: float = 0.0, _max_s: float = 0.0) -> None:
    """Wait until the event loop has nothing left to do.

    Textual waits until the process uses hardly any processor time: 20 ms twice for each key, and two seconds
    while an agent works. Nobody may rely on that: what a key leads to is waited for with `until`.
    """
    loop = asyncio.get_running_loop()
    end = time.monotonic() + AT_MOST_S
    await asyncio.sleep(BREATH_S)
    calm = 0
    while calm < 3 and time.monotonic() < end:
        await asyncio.sleep(0)
        calm = 0 if loop._ready else calm + 1  # type: ignore[attr-defined]
    keys = getattr(active_app.get(None), "key_queue", None)
    end = time.monotonic() + PATIENCE_S
    while keys is not None and not keys.idle and time.monotonic() < end:
        await asyncio.sleep(BREATH_S)
