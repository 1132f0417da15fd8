"""A board of 10,000 agents in a terminal: its first screen, and from a key to the cursor's new row.

It is drawn from what engines answered, recorded once and given to other names. The first screen is timed from
the start of the process. Run it with `python -m tests.benchmarks.board`.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
from itertools import cycle
from pathlib import Path
from typing import Any

from app.cockpit.shard_board import ShardBoardApp
from app.projection.shard_views import ShardView
from tests.benchmarks.cockpit import CURSOR, Screen

BOARD, KEYS = 10_000, 200


def _recorded(agents: int, shards: int) -> list[list[str]]:
    """What engines answered, for as many agents as are wanted; of each tenth something is new each time."""
    row = {"fault": "", "mode": "RUNNING", "goal": "write the report of the day", "actions": 12}
    rows: list[dict[str, Any]] = [
        {**row, "agent": f"agent-{number}", "run": "running" if number % 3 else "paused", "cost_usd": 0.0}
        for number in range(agents)
    ]
    answers = []
    for look in range(20):  # behind which all is as it was
        for number in range(look % 10, agents, 10):
            rows[number] = {**rows[number], "cost_usd": 0.01 - rows[number]["cost_usd"]}
        answers.append([json.dumps(rows[shard::shards]) for shard in range(shards)])
    return answers


class Shards:
    """Answers as `_recorded` makes them, one after another."""

    def __init__(self, file: str) -> None:
        self._answers = cycle(Path(file).read_text().splitlines())

    async def views(self) -> list[ShardView]:
        need = {"agent": "agent-7", "kind": "approval", "what": "may it write?"}
        views = []
        for number, text in enumerate(json.loads(next(self._answers)), 1):
            views.append(
                ShardView(number, f"shard-{number}", json.loads(text), [need] if number == 2 else [])
            )
            await asyncio.sleep(0)
        return views

    async def stop_all(self) -> tuple[bool, list[str]]:
        return True, []

    async def give(self, key: str, goal: str) -> str:
        return f"{key}: {goal}"


def row() -> dict[str, Any]:
    """The board in a terminal of its own."""
    times = []
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "answers.json"
        file.write_text("\n".join(map(json.dumps, _recorded(BOARD, 3))))
        words = [sys.executable, "-m", "tests.benchmarks.board", str(file)]
        with Screen(words, columns=160, lines=48) as screen:
            first = screen.wait_for(f"{BOARD:,} agents".encode()) - screen.began
            for number in range(KEYS):
                screen.drain(0.03 + number % 7 / 100)  # so that keys fall on a look at all agents, too
                pressed = screen.press(b"\x1b[B" if number % 4 else b"\x1b[6~")
                times.append((screen.wait_for(CURSOR) - pressed) * 1_000)
    return {
        "name": f"board of {BOARD:,} agents",
        "first_screen_s": round(first, 2),
        "key_p50_ms": round(statistics.median(times), 1),
        "key_p99_ms": round(sorted(times)[int(KEYS * 0.99) - 1], 1),
    }


if __name__ == "__main__":
    if sys.argv[1:]:
        ShardBoardApp(Shards(sys.argv[1])).run()
    else:
        print(json.dumps(row()))
