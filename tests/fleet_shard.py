"""A shard as a process of its own, as Ray's actor has it; it writes down under which token its engine runs.

Run as `python -m tests.fleet_shard WITNESS PLAN`, the plan as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from app.cli.fleet.shard import Shard, ShardPlan

EVERY_S = 0.02


async def _witness(shard: Shard, file: Path) -> None:
    """Say again and again which token this shard has."""
    with file.open("a", buffering=1) as out:
        while True:
            if shard.token:
                out.write(f"{shard.plan.number} {shard.token} {time.monotonic_ns()}\n")
            await asyncio.sleep(EVERY_S)


async def _main(file: Path, plan: ShardPlan) -> None:
    shard = Shard(plan)
    task = asyncio.create_task(_witness(shard, file))
    try:
        await shard.run()
    finally:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), ShardPlan(*json.loads(sys.argv[2]))))
