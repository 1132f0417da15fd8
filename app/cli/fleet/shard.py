"""One shard: the lease under which alone its agents act, and the engine that runs while it is held.

The engine is `pilothouse serve` in a process of its own, so that it can be ended whatever it does. It writes
its journal by a connection that was made under the lease's token: whoever takes the lease next ends that
connection before it begins, and no action starts that is not in the journal. A shard that cannot renew its
lease ends its engine before the lease runs out.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from app.cli.fleet.budgets import SharedBudgets
from app.cli.fleet.database import (
    ENGINE,
    ShardRow,
    address_of,
    fleet_database,
    note_shard,
    schema_of,
    shard_url,
)
from app.cli.fleet.files import TABLE, SharedFiles
from app.cli.fleet.messages import Messages
from app.gateways.addresses import AddressError
from app.gateways.engine_client import EngineClient, EngineLostError
from app.gateways.protocol import ProtocolError
from engine.core.journal import JournalError
from engine.core.ports import SystemClock
from engine.core.store.leases import Lease, LeaseLost, acquire, release, renew
from engine.core.store.postgres import Link
from engine.core.store.postgres_schema import prepare
from engine.sandbox.snapshots.entry import SnapshotError

LEASE_S, RENEW_S = 5.0, 0.5
"""For how long a lease is usually taken, and how often it is renewed."""
MARGIN_S = 1.0
"""How long before its lease runs out an engine is ended that could not renew it."""
ANSWER_S, AWAY_S = 5.0, 15.0
"""How long the database may take to answer, and when a shard gives its machine up, which may be cut off."""
CLOSE_S, LOOK_S = 0.5, 0.1
NICE = 10
"""Of an engine at work; one that starts has 0, so it is there sooner where a machine is busy."""
FILES_S, BUDGET_S = 2.0, 0.5
"""How often files are looked at, and budgets."""
RUNNING = "fleet.running"
"""In the shard's `meta`: commands that set agents running again that ran when it was drained."""
_GONE = (AddressError, ProtocolError, EngineLostError)


class ShardPlan(NamedTuple):
    """What a shard needs to know."""

    url: str
    """The fleet's database."""
    number: int
    shards: int
    root: str
    """Where its directory is made, on whichever machine it runs."""
    words: tuple[str, ...] = ()
    """More words for `pilothouse serve`."""
    lease_s: float = LEASE_S
    """For how long its lease is taken."""


async def _ready(_connection: Any) -> None:
    """Nothing has to be done with a connection that only renews."""


def _lives(pid: int) -> bool:
    """Whether there is such a process on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _stand_back(pid: int) -> None:
    """Have an engine at work leave the processor to one that starts, and to the leases of all."""
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, int(thread.name), NICE)


def node_name() -> str:
    """The name of this machine among those of the fleet."""
    return os.environ.get("PILOTHOUSE_NODE") or os.uname().nodename


class Shard:
    """Keeps the engine of a shard running for as long as it may."""

    def __init__(self, plan: ShardPlan) -> None:
        self.plan, self.node = plan, node_name()
        self.workspace = Path(plan.root) / self.node / f"shard-{plan.number}"
        self._address, self._schema = address_of(plan.url, plan.number), schema_of(plan.url)
        self._link: Link
        self._renewing: Link
        self._reached = time.monotonic()
        """When the database answered last."""
        self._files = SharedFiles(self.workspace)
        self._budgets = SharedBudgets(self._schema, plan.number, plan.shards)
        self._messages = Messages(self._schema, plan.number, plan.shards)
        self._drain = asyncio.Event()
        self.token = 0
        """Of the lease under which its engine runs; 0 while none does."""

    async def run(self) -> None:
        """Serve until the shard is drained.

        Raises:
            JournalError: the database cannot be reached from this machine.
        """
        self.workspace.mkdir(parents=True, exist_ok=True)
        while not self._drain.is_set():
            try:
                async with self._linked(), self._loaded() as engine:
                    if (lease := await self._acquired()) is not None:
                        await self._hold(lease, engine)
            except (JournalError, SnapshotError, TimeoutError, *_GONE) as error:
                why = str(error) or "the database does not answer"
                sys.stderr.write(f"shard-{self.plan.number}: {why}\n")
                await self._tell(why)
                if time.monotonic() - self._reached > AWAY_S:
                    raise
                await asyncio.sleep(RENEW_S)

    async def _tell(self, why: str) -> None:
        """Say why there is no engine, where the fleet's database can still be reached."""
        sql = "update shards set state = $2 where number = $1 and state <> 'up'"
        with suppress(JournalError, TimeoutError):
            async with asyncio.timeout(ANSWER_S), fleet_database(self.plan.url) as connection:
                await connection.execute(sql, self.plan.number, f"not up: {why}")

    @asynccontextmanager
    async def _loaded(self) -> AsyncIterator[Process]:
        """A process that loads the program while the lease is waited for; killed at the end."""
        words = (sys.executable, "-P", "-m", "app.cli.fleet.engine_process", str(os.getpid()))
        with (self.workspace / "engine.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(*words, stdin=PIPE, stdout=log, stderr=log)
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    @asynccontextmanager
    async def _linked(self) -> AsyncIterator[None]:
        """Connections of their own for each engine: those of a network that was cut may never end."""
        self._link = Link(self._address, SystemClock(), self._prepare)
        self._renewing = Link(self._address, SystemClock(), _ready)
        try:
            await self._link.open()
            yield
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await asyncio.gather(self._link.close(), self._renewing.close())

    def drain(self) -> None:
        """Let each agent come to the end of its action, then let the shard go."""
        self._drain.set()

    async def _prepare(self, connection: Any) -> None:
        await prepare(connection, self._address, SystemClock().now(), create=True)
        await connection.execute(TABLE)

    async def _acquired(self) -> Lease | None:
        """The lease, once nobody else has it; None where the shard is drained before."""
        holder = f"{self.node} {os.getpid()} {uuid4().hex[:8]}"  # each engine has a token of its own
        while not self._drain.is_set():
            async with asyncio.timeout(ANSWER_S):
                lease = await self._link.use(partial(self._taken, holder))
            self._reached = time.monotonic()
            if lease is not None:
                return lease
            await asyncio.sleep(LOOK_S)
        return None

    async def _taken(self, holder: str, connection: Any) -> Lease | None:
        """The lease, where nobody has it, or a dead process of this machine, with which its engine died."""
        if (lease := await acquire(connection, ENGINE, holder, self.plan.lease_s)) is None:
            there = await connection.fetchrow("select holder, token from leases where name = $1", ENGINE)
            node, pid, _ = there["holder"].split()
            if node == self.node and not _lives(int(pid)):
                await release(connection, Lease(ENGINE, there["holder"], there["token"]))
        return lease

    async def _hold(self, lease: Lease, engine: Process) -> None:
        """Run the engine while the lease is held, the shard is not drained, and the engine lives."""
        tasks = [asyncio.create_task(self._held(lease)), asyncio.create_task(self._serve(lease, engine))]
        try:
            await asyncio.wait(tasks, return_when="FIRST_COMPLETED")
            lost = tasks[0].done()
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        if lost:
            raise LeaseLost("its lease could not be renewed in time, so its engine was ended")
        async with asyncio.timeout(ANSWER_S):
            await self._note(lease, "down" if self._drain.is_set() else "starting")
            await self._link.use(lambda connection: release(connection, lease))
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def _held(self, lease: Lease) -> None:
        """Renew the lease, and return in time before it runs out where that cannot be done."""
        seconds = self.plan.lease_s
        until = time.monotonic() + seconds
        while (began := time.monotonic()) < until - MARGIN_S:
            with suppress(TimeoutError, JournalError):
                async with asyncio.timeout(until - MARGIN_S - began):
                    if not await self._renewing.use(lambda connection: renew(connection, lease, seconds)):
                        return
                    until, self._reached = began + seconds, began
            await asyncio.sleep(RENEW_S)

    async def _serve(self, lease: Lease, process: Process) -> None:
        """Run the engine to its end."""
        await self._link.use(lambda connection: self._files.bring(connection, lease))
        await self._note(lease, "starting")
        self._begin(process, lease)
        self.token = lease.token
        try:
            client = await self._client(process)
            try:
                await self._link.use(lambda connection: self._go_on(client, connection))
                await self._note(lease, "up", process.pid)
                _stand_back(process.pid)
                await self._care(client, lease, process)
                if self._drain.is_set():
                    await self._note(lease, "draining", process.pid)
                    await self._drained(client, process)
                    await self._link.use(lambda connection: self._files.save(connection, lease))
            finally:
                await client.close()
        finally:
            with suppress(ProcessLookupError):
                process.kill()  # before the lease is given back
            await process.wait()
            self.token = 0

    def _begin(self, process: Process, lease: Lease) -> None:
        """Let the loaded engine run."""
        words = ["serve", "--workspace", str(self.workspace), "--go-on", "--remote-handoffs"]
        order = {
            "journal": shard_url(self.plan.url, self.plan.number, lease),
            "words": [*words, *self.plan.words],
        }
        assert process.stdin is not None
        process.stdin.write(f"{json.dumps(order)}\n".encode())
        process.stdin.close()

    async def _client(self, process: Process) -> EngineClient:
        """A client of the engine, once it answers.

        Raises:
            JournalError: it ended before.
        """
        while process.returncode is None:
            with suppress(*_GONE):
                client = await EngineClient.open(self.workspace, "fleet")
                if client is not None and client.hello.get("pid") == process.pid:
                    return client
            await asyncio.sleep(LOOK_S)
        log = self.workspace / "engine.log"
        last = (await asyncio.to_thread(log.read_text, errors="replace")).strip().rpartition("\n")[2]
        raise JournalError(f"its engine ended at once: {last} ({log})")

    async def _care(self, client: EngineClient, lease: Lease, process: Process) -> None:
        """Keep its files, budgets and messages until the engine ends or is to be drained."""
        loop = asyncio.get_running_loop()
        ends = [asyncio.create_task(process.wait()), asyncio.create_task(self._drain.wait())]
        files_at = loop.time() + FILES_S
        try:
            while not (await asyncio.wait(ends, timeout=BUDGET_S, return_when="FIRST_COMPLETED"))[0]:
                with suppress(*_GONE):
                    await self._link.use(lambda connection: self._budgets.adjust(connection, client))
                    await self._link.use(lambda connection: self._messages.send(connection, lease))
                    await self._link.use(lambda connection: self._messages.receive(connection, client))
                if loop.time() > files_at:
                    await self._link.use(lambda connection: self._files.save(connection, lease))
                    files_at = loop.time() + FILES_S
        finally:
            for task in ends:
                task.cancel()

    async def _drained(self, client: EngineClient, process: Process) -> None:
        """End the engine behind the actions that run, and note which agents are to go on elsewhere."""
        sql = "insert into meta values($1, $2) on conflict(key) do update set value = $2"
        with suppress(EngineLostError):
            running = json.dumps((await client.ask("stop", hand_over=True))["running"])
            await self._link.use(lambda connection: connection.execute(sql, RUNNING, running))
        await process.wait()

    async def _go_on(self, client: EngineClient, connection: Any) -> None:
        """Set the budgets, and agents running again that ran when the shard was drained."""
        await self._budgets.adjust(connection, client)
        running = await connection.fetchval("select value from meta where key = $1", RUNNING)
        for command in json.loads(running or "[]"):
            await client.ask("submit", command=command)
        await connection.execute("delete from meta where key = $1", RUNNING)

    async def _note(self, lease: Lease, state: str, pid: int = 0) -> None:
        place = str(self.workspace)
        row = ShardRow(self.plan.number, self.node, place, pid, lease.token, state, "")
        await self._link.use(lambda connection: note_shard(connection, self._schema, row))
