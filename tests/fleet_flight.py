"""A fleet of shards on a server of its own, with connections that can be cut and processes that die."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from app.cli.fleet.client import UNUSABLE, FleetClient
from app.cli.fleet.database import ENGINE, fleet_database, plan_shards, schema_of, shard_url
from app.cli.fleet.shard import LEASE_S
from engine.core import events as ev
from engine.core.journal import JournalError
from engine.core.ports import SystemClock
from engine.core.store.postgres import open_postgres
from engine.core.store.postgres_schema import read_address
from engine.core.store.verify import verify
from tests.patience import PATIENCE_S
from tests.postgres_server import PostgresServer
from tests.rounds import FULL

REPOSITORY = Path(__file__).parents[1]
HELD_S = LEASE_S / 2
"""What is left of a lease that is renewed."""
GOALS = (
    "append 'line {line}' to {agent}.txt",
    "write 'line {line}' to {agent}-{line}.txt",
    "create the directories {agent}-{line}, {agent}-{line}-too",
    "remember that line {line} was asked for",
)
"""No two actions of an agent have the same arguments, so one that was done twice is seen."""
SKEWED = """import os, time
real, skew_ns = time.time_ns, int(float(os.environ["CLOCK_SKEW_S"]) * 1e9)
time.time, time.time_ns = lambda: (real() + skew_ns) / 1e9, lambda: real() + skew_ns
"""


class Proxy:
    """A port that leads to the server's socket, and can be cut."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._ways: set[asyncio.Task[None]] = set()
        self._cut = False
        self.port = 0

    async def start(self) -> None:
        self._listening = await asyncio.start_server(self._taken, "127.0.0.1", 0)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def _taken(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            there = await asyncio.open_unix_connection(f"{self._server.room}/.s.PGSQL.5432")
            self._ways |= {
                asyncio.create_task(self._carry(reader, there[1])),
                asyncio.create_task(self._carry(there[0], writer)),
            }
            return
        writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(65_536):
                if self._cut:  # nothing arrives, and nobody hears of that
                    await asyncio.Event().wait()
                writer.write(piece)
                await writer.drain()
        writer.close()

    def cut(self) -> None:
        """From now on nothing that is sent arrives."""
        self._cut = True

    def mend(self) -> None:
        """Connections can be made again; those that were cut stay so, as those of a network often do."""
        self._cut = False
        for way in self._ways:
            way.cancel()
        self._ways.clear()

    async def stop(self) -> None:
        self._listening.close()
        self.mend()


class FleetFlight:
    """Shards on machines of their own names, with what was acknowledged to whoever gave goals."""

    def __init__(self, room: Path, server: PostgresServer, shards: int, agents: int) -> None:
        self.room, self.server, self.count = room, server, shards
        self.url = server.url
        self.agents = [f"agent-{number}" for number in range(agents)]
        self.client = FleetClient(self.url)
        self.witness = room / "witness"
        self.proxies = {number: Proxy(server) for number in range(1, shards + 1)}
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.acknowledged: list[str] = []
        self.actions = self.unknown = 0
        """What `check` counted."""
        self._lines = 0

    async def start(self, skew_s: float = 0.0) -> None:
        async with fleet_database(self.url, create=True) as connection:
            await plan_shards(connection, self.count)
        for number, proxy in self.proxies.items():
            await proxy.start()
            self.begin(number, skew_s=skew_s)
        await self.back({})

    def begin(self, number: int, node: str = "", skew_s: float = 0.0) -> None:
        """Have a shard run, on a machine of this name whose clock is so many seconds ahead."""
        (self.room / "sitecustomize.py").write_text(SKEWED)
        url = self.url.partition("?")[0]  # the host is that of the environment
        lease_s = LEASE_S if FULL else 30.0  # a crowded machine is only slow
        root = str(self.room / "root")
        plan = [url, number, self.count, root, ["--accept-tier", "paths"], lease_s]
        environment = {
            **os.environ,
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.proxies[number].port),
            "PILOTHOUSE_NODE": node or os.uname().nodename,
            "PYTHONPATH": os.pathsep.join([str(self.room), *sys.path]),
            "CLOCK_SKEW_S": str(skew_s),
        }
        with (self.room / f"shard-{number}.log").open("ab") as log:
            self.processes[number] = subprocess.Popen(
                [sys.executable, "-m", "tests.fleet_shard", str(self.witness), json.dumps(plan)],
                cwd=REPOSITORY,
                env=environment,
                stdout=log,
                stderr=log,
            )

    async def tokens(self) -> dict[int, int]:
        return {shard.number: shard.token for shard in await self.client.look()}

    async def back(self, older: dict[int, int]) -> float:
        """Wait until every shard holds its lease for a while and answers; the seconds it took.

        Args:
            older: of these shards, the tokens that they had before.
        """
        began = time.monotonic()
        while time.monotonic() - began < 4 * PATIENCE_S:
            for number, process in list(self.processes.items()):
                if process.poll() is not None:  # it gave its machine up
                    self.begin(number)  # which is what Ray does
            with suppress(JournalError):
                rows = await self.client.look()
                newer = all(row.token > older.get(row.number, 0) for row in rows)
                if newer and all(row.state == "up" for row in rows) and await self._held():
                    answers = await self.client.ask_all("ping")
                    if answers == ["pong"] * self.count:
                        return time.monotonic() - began
            await asyncio.sleep(0.05)
        logs = "".join(path.read_text()[-1_500:] for path in self.room.glob("shard-*.log"))
        raise AssertionError(f"not back: {self.client.shards}\n{logs}")

    async def _held(self) -> bool:
        """Whether no shard's lease is about to run out, as after a while without the database."""
        each = "select until from {}_{}.leases where name = '{}'"
        numbers = range(1, self.count + 1)
        leases = " union all ".join(each.format(schema_of(self.url), number, ENGINE) for number in numbers)
        sql = f"select count(*) from ({leases}) held where until > clock_timestamp() + interval '{HELD_S} s'"
        async with fleet_database(self.url) as connection:
            return await connection.fetchval(sql) == self.count

    def alive(self, number: int) -> bool:
        """Whether the engine of a shard runs."""
        return Path(f"/proc/{self.client.shards[number - 1].pid}").exists()

    async def create(self) -> None:
        for agent in self.agents:
            await self.sent(agent, {"do": "create_agent", "config": {"thinker": "procedural"}})

    async def work(self, agents: Sequence[str] = ()) -> None:
        """Give these agents, or all, a goal of some kind and of its own; no answer is no promise."""
        for agent in agents or self.agents:
            self._lines += 1
            goal = GOALS[self._lines % len(GOALS)].format(agent=agent, line=self._lines)
            if await self.sent(agent, {"do": "adopt_goal", "text": goal}):
                await self.sent(agent, {"do": "run"})

    async def sent(self, agent: str, command: dict[str, object]) -> bool:
        """Give a command; whether its shard took it."""
        with suppress(*UNUSABLE, JournalError):
            shard = self.client.shard_of(agent)
            receipt = await self.client.ask(shard, "submit", command={**command, "agent": agent})
            if receipt["ok"] and receipt["event"]:
                self.acknowledged.append(receipt["event"])
            return bool(receipt["ok"])
        return False

    async def check(self) -> None:
        """Nothing acknowledged is lost, nothing was done twice unseen, and nobody had a shard twice."""
        lost, twice = set(self.acknowledged), []
        for number in range(1, self.count + 1):
            address = read_address(shard_url(self.url, number), None)
            store = await open_postgres(address, SystemClock(), read_only=True)
            try:
                assert (await verify(store)).ok
                requested: dict[tuple[str, str], str] = {}
                starts: Counter[tuple[str, str]] = Counter()
                unknown: Counter[tuple[str, str]] = Counter()
                async for event in store.events():
                    lost.discard(event.ref)
                    body = json.loads(event.body)
                    action = (event.stream, str(body.get("action")))
                    if event.kind == ev.ActionRequested.kind:
                        requested[action] = str(body["args"])
                    elif event.kind == ev.ActionStarted.kind:
                        starts[event.stream, requested[action]] += 1
                    elif event.kind == ev.ActionOutcomeUnknown.kind:
                        unknown[event.stream, requested[action]] += 1
                twice += [done for done, times in starts.items() if times > 1 + unknown[done]]
                self.actions += starts.total()
                self.unknown += unknown.total()
            finally:
                await store.close()
        assert not lost
        assert not twice
        held: dict[str, int] = {}
        rows = [line.split() for line in self.witness.read_text().splitlines() if line.count(" ") == 2]
        for shard, token, _ in sorted(rows, key=lambda row: int(row[2])):
            assert int(token) >= held.get(shard, 0), f"shard {shard} was held twice"
            held[shard] = int(token)
        assert len(held) == self.count  # the witness saw them all

    async def stop(self) -> None:
        await self.client.close()
        for process in self.processes.values():
            process.send_signal(signal.SIGKILL)
            process.wait()
        for proxy in self.proxies.values():
            await proxy.stop()
