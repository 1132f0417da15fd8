"""Applies the campaign that waits and rolls it back, and kills itself on the way.

`python applier.py WORKSPACE N before|after`: at the N-th file that takes its place.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from words import plug

from engine.api.engine import Engine
from engine.core.campaigns import ApplyCandidate, RollBack

REAL = os.replace


async def main(workspace: Path, number: int, when: str) -> None:
    """Apply, roll back; nothing of this returns."""
    engine = await Engine.open(workspace)
    mastermind = await engine.mastermind()
    plug(mastermind)
    placed = 0

    def replace(*args: Any, **kwargs: Any) -> None:
        nonlocal placed
        placed += "src_dir_fd" in kwargs
        if placed == number and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        REAL(*args, **kwargs)
        if placed == number and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = replace
    receipt = await engine.submit(ApplyCandidate(campaign=list(mastermind.state.campaigns)[-1]))
    await mastermind.wait(receipt.data["job"])
    await engine.submit(RollBack())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
