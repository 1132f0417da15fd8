"""What was acknowledged is remembered after `kill -9`, and the tables are those of the journal."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from pathlib import Path

import pytest

from engine.core.store.verify import verify
from tests.engine.memory.memory_desk import MemoryDesk
from tests.engine.memory.test_memory_projection import every_row

WRITER = """
import asyncio, sys
from pathlib import Path
from engine.core.ports import SystemClock
from engine.core.store.opening import open_journal
from engine.memory.memory import Memory
from engine.memory.requests import named

async def main():
    clock = SystemClock()
    store = await open_journal(Path(sys.argv[1]), clock=clock)
    memory = Memory(Path(sys.argv[1]), store, clock=clock)
    await memory.ready()

    async def writer(number):
        turn = 0
        while True:
            turn += 1
            told = {"workflow_id": sys.argv[2], "content": f"{number} turn {turn}", "memory_type": "fact"}
            stored = await memory.do(named("store_memory", told))
            print(stored.id, stored.content, flush=True)
            await memory.do(named("update_memory", {"memory_id": stored.id, "importance": 9.0}))

    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(writer(number))

asyncio.run(main())
"""


@pytest.mark.slow
async def test_every_acknowledged_memory_outlives_kill_9(tmp_path: Path) -> None:
    dice = random.Random(20261122)
    desk = await MemoryDesk(tmp_path).open()
    await desk.close()
    acknowledged: dict[str, str] = {}
    for _ in range(5):
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, tmp_path, desk.workflow, stdout=asyncio.subprocess.PIPE
        )
        lines = [await child.stdout.readline() for _ in range(dice.randint(1, 300))]
        child.send_signal(signal.SIGKILL)
        # What it said before it died counts, save a line cut in the middle.
        lines += (await child.stdout.read()).splitlines(keepends=True)
        assert await child.wait() == -signal.SIGKILL
        for line in lines:
            if line.endswith(b"\n"):
                ident, _, content = line.decode().strip().partition(" ")
                acknowledged[ident] = content

        await desk.open()
        kept = {row[3]: row[5] for row in desk.read(every_row)["memories"] if row[2] is None}
        verdict = await verify(desk.store)
        tables = desk.read(every_row)
        await desk.close()
        desk.lose()
        await desk.open()
        rebuilt = desk.read(every_row)
        await desk.close()

        assert verdict.ok, verdict.reason
        assert acknowledged.items() <= kept.items()
        assert rebuilt == tables
    assert len(acknowledged) > 20
