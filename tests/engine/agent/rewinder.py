"""Rewinds an agent of a workspace back and forth until it is killed: `python rewinder.py WORKSPACE A B`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from engine.api.engine import Engine
from engine.core import commands as cmd


async def main(workspace: Path, places: list[int]) -> None:
    """Go back and forth, and say so before each."""
    engine = await Engine.open(workspace)
    while True:
        for place in places:
            print(f"to {place}", flush=True)
            receipt = await engine.submit(cmd.Rewind(agent="pilot", to=place))
            assert receipt.ok, receipt.message


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), [int(one) for one in sys.argv[2:]]))
