"""What events cost in a fleet: processor seconds of engines for 1,000 events; first the board, see `board`.

Goals are given to agents of one engine with its journal in a file, of the same with cockpits that follow
its events, of three such engines side by side, and of one, two and three shards on one PostgreSQL, as many
for each engine. Counted is the processor time of the engines' processes behind their first goals. Each is
done `ROUNDS` times in turn, and the median counts, as the same work takes a machine that others share now
more, now less. Three engines side by side show what it takes that two cores work at once.
Run it with `python -m tests.benchmarks.shards`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from app.cli.fleet.client import FleetClient
from app.cli.fleet.database import shard_of
from app.gateways.engine_client import EngineClient
from tests.benchmarks import board
from tests.fleet_flight import FleetFlight
from tests.postgres_server import PostgresServer

AGENTS, GOALS, ROUNDS = 8, 6, 3
SETTLED_S = 10
_TICK = os.sysconf("SC_CLK_TCK")


def _cpu_s(pid: int) -> float:
    """Processor seconds of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICK


async def _worked(ask: Any, agents: list[str]) -> None:
    """Give all goals, and wait until they have ended."""
    for agent in agents:
        await ask(agent, {"do": "create_agent", "config": {"thinker": "procedural"}})
        for number in range(GOALS):
            await ask(agent, {"do": "adopt_goal", "text": f"append 'line {number}' to {agent}.txt"})
        await ask(agent, {"do": "run"})


async def _ended(rows: Any, head: Any) -> int:
    """Wait until no goal is left and memory has followed; the number of events by then."""
    while any(row.get("goal") for row in await rows()):
        await asyncio.sleep(1)
    before, events = -1, 0
    while before != (events := await head()):
        before = events
        await asyncio.sleep(SETTLED_S)
    return events


async def _followed(client: EngineClient) -> None:
    async for _ in client.events():
        pass


async def _side_by_side(room: Path, engines: int) -> dict[str, Any]:
    rows = await asyncio.gather(*[_embedded(room / str(number)) for number in range(engines)])
    cost = statistics.mean(row["cpu_s"] for row in rows)
    events = sum(row["events"] for row in rows)
    return {"name": f"{engines} embedded engines side by side", "cpu_s": cost, "events": events}


async def _embedded(room: Path, cockpits: int = 0) -> dict[str, Any]:
    """One engine with its journal in a file, and so many that follow its events as cockpits do."""
    workspace = room / "embedded"
    workspace.mkdir(parents=True)
    words = ["-m", "app.cli", "serve", "--workspace", str(workspace), "--accept-tier", "paths"]
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
    while (client := await EngineClient.open(workspace)) is None:
        await asyncio.sleep(0.1)

    async def ask(agent: str, command: dict[str, Any]) -> None:
        await client.ask("submit", command={**command, "agent": agent})

    async def head() -> int:
        return int((await client.ask("head"))["seq"])

    await _worked(ask, ["first"])
    first = await _ended(lambda: client.ask("agents"), head)
    before = _cpu_s(process.pid)
    clients = [each for _ in range(cockpits) if (each := await EngineClient.open(workspace))]
    following = [asyncio.create_task(_followed(each)) for each in clients]
    await _worked(ask, [f"agent-{number}" for number in range(AGENTS)])
    events = await _ended(lambda: client.ask("agents"), head) - first
    cost = (_cpu_s(process.pid) - before) / events * 1_000
    for task in following:
        task.cancel()
    for each in (client, *clients):
        await each.close()
    process.send_signal(signal.SIGTERM)
    process.wait()
    name = f"one embedded engine, {cockpits} cockpits" if cockpits else "one embedded engine"
    return {"name": name, "cpu_s": cost, "events": events}


async def _fleet(room: Path, shards: int) -> dict[str, Any]:
    server = PostgresServer("max_connections=200", "fsync=off")
    flight = FleetFlight(room, server.start(), shards, AGENTS * shards)
    try:
        await flight.start()
        client: FleetClient = flight.client

        async def ask(agent: str, command: dict[str, Any]) -> None:
            await client.ask(client.shard_of(agent), "submit", command={**command, "agent": agent})

        async def rows() -> list[dict[str, Any]]:
            return [row for answer in await client.ask_all("agents") for row in answer]

        async def head() -> int:
            return sum(each["seq"] for each in await client.ask_all("head"))

        firsts = {shard_of(f"first-{number}", shards): f"first-{number}" for number in range(100)}
        await _worked(ask, list(firsts.values()))
        first = await _ended(rows, head)
        before = sum(_cpu_s(shard.pid) for shard in client.shards)
        await _worked(ask, flight.agents)
        events = await _ended(rows, head) - first
        cost = (sum(_cpu_s(shard.pid) for shard in client.shards) - before) / events * 1_000
        return {"name": f"{shards} shards", "cpu_s": cost, "events": events}
    finally:
        await flight.stop()
        server.remove()


async def _main() -> None:
    print(json.dumps(board.row()), flush=True)
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        room = Path(name)
        os.environ |= {"PILOTHOUSE_HOME": str(room / "home"), "XDG_RUNTIME_DIR": str(room / "nowhere")}
        works: list[Callable[[Path], Coroutine[Any, Any, dict[str, Any]]]] = [
            *(partial(_embedded, cockpits=cockpits) for cockpits in (0, 5, 20)),
            partial(_side_by_side, engines=3),
            *(partial(_fleet, shards=shards) for shards in (1, 2, 3)),
        ]
        rows: dict[str, list[dict[str, Any]]] = {}
        for turn in range(ROUNDS):
            for number, work in enumerate(works):
                place = room / f"{turn}-{number}"
                place.mkdir()
                row = await work(place)
                rows.setdefault(row["name"], []).append(row)
        bases = [row["cpu_s"] for row in rows["one embedded engine"]]
        for name, of in rows.items():
            costs = [row["cpu_s"] for row in of]
            ratio = statistics.median(cost / base for cost, base in zip(costs, bases, strict=True))
            row = {"name": name, "cpu_s": round(statistics.median(costs), 3), "ratio": round(ratio, 2)}
            print(json.dumps({**row, "events": of[0]["events"]}), flush=True)


if __name__ == "__main__":
    asyncio.run(_main())
