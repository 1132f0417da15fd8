"""Many clients of one engine: followers in programs of their own, one of which stands still (SIGSTOP).

`python -m tests.app.gateways.many_clients WORKSPACE COUNT LAST` follows the events of a workspace with so
many connections until each has seen the event LAST, and prints for each whether it saw all in order.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from app.gateways.engine_client import EngineClient
from app.gateways.socket_server import EngineServer
from engine.api.engine import Engine
from engine.core import commands as cmd
from tests.patience import PATIENCE_S

TICK_S = 0.01


async def follow(workspace: Path, count: int, last: int) -> None:
    """Follow until the end, and say how it was."""
    client = await EngineClient.open(workspace, watch=True)
    assert client is not None
    print("ready", flush=True)
    for whole in await asyncio.gather(*(_whole(client, last) for _ in range(count))):
        print("whole" if whole else "a gap", flush=True)
    await client.close()


async def _whole(client: EngineClient, last: int) -> bool:
    expected = 1
    async for event in client.events(0):
        if event.seq != expected:
            return False
        expected += 1
        if event.seq == last:
            return True
    return False


def followers(workspace: Path, count: int, last: int) -> subprocess.Popen[str]:
    """A program with so many followers."""
    command = [sys.executable, "-m", "tests.app.gateways.many_clients", str(workspace), str(count), str(last)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])


async def crowd(
    workspace: Path,
    engine: Engine,
    server: EngineServer,
    *,
    programs: int,
    each: int,
    events: int,
    rate: float,
) -> dict[str, Any]:
    """Followers in programs, the last of which stands still meanwhile, beside cockpits that ask for views.

    Args:
        workspace: whose engine it is.
        engine: the engine, in this program.
        server: its server.
        programs: how many, beside the one that stands still.
        each: followers of each of them.
        events: how many come.
        rate: events a second at most.
    """
    last = await engine.head() + events
    running = [followers(workspace, each, last) for _ in range(programs)]
    stopped = followers(workspace, 1, last)
    for process in (*running, stopped):
        assert process.stdout is not None
        assert (await asyncio.to_thread(process.stdout.readline)).strip() == "ready"
    while len(server._connections) < programs * (each + 1) + 2:
        await asyncio.sleep(0.01)
    os.kill(stopped.pid, signal.SIGSTOP)
    cockpits = asyncio.create_task(_cockpits(workspace, 5))
    ticks = asyncio.create_task(late_ticks())
    began = time.perf_counter()
    for number in range(events // 2):
        await engine.submit(cmd.AddNote(agent="pilot-1", text=f"{number:0100}"))
        early = began + (number + 1) * 2 / rate - time.perf_counter()
        if early > 0:
            await asyncio.sleep(early)
    took = time.perf_counter() - began
    ticks.cancel()
    cockpits.cancel()
    lates = sorted(await ticks)
    os.kill(stopped.pid, signal.SIGCONT)
    async with asyncio.timeout(PATIENCE_S * 3):
        outputs = [(await asyncio.to_thread(each.communicate))[0].split("\n") for each in (*running, stopped)]
    await asyncio.gather(cockpits, return_exceptions=True)
    return {
        "whole": sum(lines.count("whole") for lines in outputs),
        "rate": events / took,
        "late_p99_ms": lates[int(len(lates) * 0.99)] * 1000,
        "late_median_ms": statistics.median(lates) * 1000,
    }


async def late_ticks() -> list[float]:
    """How late the loop came to each tick, as it would to a key, in seconds; until it is cancelled."""
    lates: list[float] = []
    loop = asyncio.get_running_loop()
    try:
        while True:
            due = loop.time() + TICK_S
            await asyncio.sleep(TICK_S)
            lates.append(max(0.0, loop.time() - due))
    except asyncio.CancelledError:
        return lates


async def _cockpits(workspace: Path, count: int) -> None:
    """Clients that look at the agent as cockpits do."""
    clients = [await EngineClient.open(workspace) for _ in range(count)]
    try:
        while True:
            await asyncio.gather(*(each.ask("agents") for each in clients if each is not None))
            await asyncio.sleep(0.2)
    finally:
        for each in clients:
            if each is not None:
                await each.close()


if __name__ == "__main__":
    asyncio.run(follow(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
