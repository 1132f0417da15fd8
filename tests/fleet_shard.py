"""A shard as a process of its own, as Ray's actor has it; it writes down under which token its engine runs.

Run as `python -m tests.fleet_shard WITNESS PLAN`, the plan as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from pathlib import Path

from app.cli.fleet.shard import Shard, ShardPlan

EVERY_S = 0.02


def witness(shard: Shard, file: Path) -> None:
    """Say again and again which token this shard has, for as long as its process lives."""

    def say() -> None:
        with file.open("a", buffering=1) as out:
            while True:
                if shard.token:
                    out.write(f"{shard.plan.number} {shard.token} {time.monotonic_ns()}\n")
                time.sleep(EVERY_S)

    threading.Thread(target=say, name="witness", daemon=True).start()


if __name__ == "__main__":
    shard = Shard(ShardPlan(*json.loads(sys.argv[2])))
    witness(shard, Path(sys.argv[1]))
    asyncio.run(shard.run())
