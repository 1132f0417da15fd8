"""What was acknowledged outlives `kill -9` at any moment."""

from __future__ import annotations

import asyncio
import random
import signal
import sys

import pytest

from engine.core.store.verify import verify
from tests.rounds import rounds

APPENDER = """
import asyncio, sys
from pathlib import Path
from engine.core.ports import SystemClock
from engine.core.journal import Event, chain_hash
from engine.core.store.sqlite import SqliteJournal

async def appender(store, stream, size):
    version, previous = await store.head(stream)
    while True:
        events = []
        for _ in range(size):
            version += 1
            causes = (f"{stream}:{version - 1}",) if version > 1 else ()
            place = (stream, version, "2026-01-01T00:00:00.000000Z", 1, "agent", causes, "noted", '"body"')
            previous = chain_hash(previous, *place)
            events.append(Event(*place, previous))
        for event in await store.commit(events):
            sys.stdout.write(f"{event.seq} {event.ref} {event.hash}\\n")
        sys.stdout.flush()

async def main():
    store = await SqliteJournal.open(Path(sys.argv[1]), clock=SystemClock())
    async with asyncio.TaskGroup() as group:
        for number, size in enumerate((1, 3, 40, 400)):
            group.create_task(appender(store, f"agent-{number}", size))

asyncio.run(main())
"""


@pytest.mark.only_in_a_file
@pytest.mark.slow
async def test_every_acknowledged_event_outlives_kill_9_at_random_moments(tmp_path, open_store):
    dice = random.Random(20261122)
    acknowledged: dict[int, tuple[str, str]] = {}
    for _ in range(rounds(4, full=20)):
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", APPENDER, tmp_path, stdout=asyncio.subprocess.PIPE
        )
        lines = [await child.stdout.readline() for _ in range(dice.randint(1, 800))]
        child.send_signal(signal.SIGKILL)
        # what it said before it died counts as acknowledged, save a line cut in the middle
        lines += (await child.stdout.read()).splitlines(keepends=True)
        assert await child.wait() == -signal.SIGKILL
        for line in lines:
            if line.endswith(b"\n"):
                seq, ref, digest = line.decode().split()
                acknowledged[int(seq)] = (ref, digest)

        store = await open_store(tmp_path)
        kept = {event.seq: (event.ref, event.hash) async for event in store.events()}
        verdict = await verify(store)
        await store.close()

        assert verdict.ok, verdict.reason
        assert acknowledged.items() <= kept.items()
    assert len(acknowledged) > 1_000
