"""Kills of a busy engine at random moments: acknowledged events that are lost, and actions that are repeated.

Each kill is checked (`tests/engine/agent/kill_flight.py`): all that was acknowledged is in the journal, its
chain verifies, at most one action was under way, and reopening says so and starts nothing. The baseline is
what was acknowledged. Source: spec steering §4 T6. All: `python -m tests.benchmarks.killing --times 1000`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.engine.agent.kill_flight import Tally, kill_often

TIMES = 30


def rows(times: int = TIMES, seed: int = 20261122) -> list[dict[str, Any]]:
    """One row: events lost over so many kills. A kill that breaks anything ends the run with its reason."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        tally = asyncio.run(kill_often(Path(place), times, seed))
    return [_row(tally, seed, time.monotonic() - begin)]


def _row(tally: Tally, seed: int, seconds: float) -> dict[str, Any]:
    return {
        "name": f"kill -9 at {tally.kills} random moments, acknowledged events lost vs acknowledged",
        "ours": 0,
        "baseline": tally.acknowledged,
        "ratio": 0.0,
        "unit": "events",
        "n": tally.kills,
        "outcome_unknown": tally.unknowns,
        "repeated": 0,
        "seed": seed,
        "seconds": round(seconds, 1),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}",
    }


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Kill a busy engine at random moments.")
    asked.add_argument("--times", type=int, default=TIMES, help="how often")
    asked.add_argument("--seed", type=int, default=20261122, help="of the moments")
    wanted = asked.parse_args()
    for found in rows(wanted.times, wanted.seed):
        print(json.dumps(found))
