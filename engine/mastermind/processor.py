"""How busy the machine's processor is, so that work nobody waits for can be put off (mindX spec §6.3)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from engine.domain.ports import Clock

LOOK_S = 0.5
"""How long is looked."""
_STAT = Path("/proc/stat")


async def busy_percent(clock: Clock) -> float:
    """How much of all processors was taken while it was looked, by anybody, in percent.

    Where the kernel does not count it, the load of the last minute stands for it.
    """
    first = await asyncio.to_thread(_ticks)
    if first is None:
        return min(100.0, 100.0 * os.getloadavg()[0] / (os.cpu_count() or 1))
    await clock.sleep(LOOK_S)
    last = await asyncio.to_thread(_ticks) or first
    idle, total = last[0] - first[0], last[1] - first[1]
    return 100.0 * (total - idle) / total if total > 0 else 0.0


def _ticks() -> tuple[int, int] | None:
    """Idle and all ticks since the machine was started; None where the kernel does not tell."""
    try:
        found = [int(word) for word in _STAT.read_text().splitlines()[0].split()[1:9]]
    except (OSError, ValueError, IndexError):
        return None
    return found[3] + found[4], sum(found)
