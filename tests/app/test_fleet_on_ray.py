"""`pilothouse fleet` on Ray: machines of their own names on this one, and what can happen to them."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from engine.core.journal import JournalError
from tests import fleet_actor
from tests.fleet_flight import FleetFlight, Proxy
from tests.patience import PATIENCE_S
from tests.postgres_server import PostgresServer
from tests.rounds import FULL, rounds

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not find_spec("ray"), reason="Ray is not installed: make test-extras installs it"),
]
REPOSITORY = Path(__file__).parents[2]
BACK_S = 10.0
AT_WORK = rounds(9, full=200)
"""Agents that get a new goal at each trouble; more of them fill two cores by themselves."""
MACHINES = ("east", "west")
FLEET = """
[[agents]]
id = "writer"
count = 6
goal = "append 'hello' to {id}.txt"
thinker = "procedural"
"""


class Machines:
    """A cluster of Ray: a head that takes no shards, and machines that do.

    Each of them reaches the database by a proxy of its own.
    """

    def __init__(self, room: Path, environment: dict[str, str], server: PostgresServer) -> None:
        self._environment, self._log = environment, (room / "ray.log").open("ab")
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True).start()
        self._proxies = {name: Proxy(server) for name in MACHINES}
        for proxy in self._proxies.values():
            asyncio.run_coroutine_threadsafe(proxy.start(), self._loop).result()
        self.port = 20_000 + os.getpid() % 20_000
        self.address = f"127.0.0.1:{self.port}"
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        words = (
            "--head",
            f"--port={self.port}",
            "--include-dashboard=false",
            "--resources={}",
            "--num-cpus=0",
        )
        self._start("head", *words)

    def _start(self, name: str, *words: str) -> None:
        from app.cli.fleet.cluster import NOTICED_EARLY

        host = (
            {"PGHOST": "127.0.0.1", "PGPORT": str(self._proxies[name].port)} if name in self._proxies else {}
        )
        self._running[name] = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "ray.scripts.scripts",
                "start",
                *words,
                "--disable-usage-stats",
                "--block",
            ],
            env={**os.environ, **self._environment, **NOTICED_EARLY, **host, "PILOTHOUSE_NODE": name},
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def start(self, name: str) -> None:
        """Have another machine."""
        self._start(name, f"--address={self.address}", "--num-cpus=1")

    def joined(self, count: int) -> None:
        """Wait until so many machines offer processors; those that could not join try again."""
        script = f"""import ray, time
ray.init(address={self.address!r}, log_to_driver=False)
while sum(bool(node["Resources"].get("CPU")) and node["Alive"] for node in ray.nodes()) < {count}:
    time.sleep(0.1)
"""
        waiting = subprocess.Popen([sys.executable, "-c", script])
        while waiting.poll() is None:
            for name, process in list(self._running.items()):
                if process.poll() is not None and name != "head":
                    self.start(name)  # a slow machine gives up where the head is slower
            time.sleep(0.2)
        assert not waiting.returncode

    def raylets(self, name: str) -> list[int]:
        """The process of a machine that Ray knows it by."""
        group = str(self._running[name].pid)
        words = ["ps", "--no-headers", "-o", "pid,comm", "-s", group]
        rows = subprocess.run(words, capture_output=True, text=True).stdout.splitlines()
        return [int(row.split()[0]) for row in rows if row.split()[1] == "raylet"]

    def kill(self, name: str) -> None:
        """End a machine's raylet at once, as its death would."""
        for pid in self.raylets(name):
            os.kill(pid, signal.SIGKILL)

    def cut(self, name: str) -> None:
        """From now on nothing passes between a machine and the database."""
        self._loop.call_soon_threadsafe(self._proxies[name].cut)

    def mend(self, name: str) -> None:
        """The database can be reached again."""
        self._loop.call_soon_threadsafe(self._proxies[name].mend)

    def stop(self) -> None:
        for process in self._running.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._log.close()
        for proxy in self._proxies.values():
            asyncio.run_coroutine_threadsafe(proxy.stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    server = PostgresServer("max_connections=200")
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: PostgresServer) -> Iterator[Machines]:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "nowhere"))
    # Where the database is, each machine and this program know by themselves.
    monkeypatch.setenv("PILOTHOUSE_JOURNAL", server.url.partition("?")[0])
    monkeypatch.setenv("PGHOST", str(server.room))
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # whatever the user of this machine has
    places = {"PYTHONPATH": os.pathsep.join(sys.path), fleet_actor.FILE: str(tmp_path / "witness")}
    machines = Machines(tmp_path, places, server)
    try:
        yield machines
    finally:
        machines.stop()


def fleet(*words: str) -> dict[str, Any]:
    """The program's answer."""
    command = [sys.executable, "-m", "tests.fleet_actor", "fleet", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    assert not done.returncode, (words, done.stdout, done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


class Troubles:
    """What can happen to a fleet on Ray; each says which shards have to begin anew."""

    def __init__(self, machines: Machines, flight: FleetFlight, draw: random.Random) -> None:
        self._machines, self._flight, self._draw = machines, flight, draw

    def _any_shard(self) -> int:
        return self._draw.randint(1, self._flight.count)

    def _with_shards(self) -> tuple[str, list[int]]:
        """A machine with shards, and these."""
        rows = self._flight.client.shards
        name = self._draw.choice([row.node for row in rows])
        return name, [row.number for row in rows if row.node == name]

    async def engine(self) -> list[int]:
        """An engine is killed."""
        number = self._any_shard()
        os.kill(self._flight.client.shards[number - 1].pid, signal.SIGKILL)
        return [number]

    async def shard(self) -> list[int]:
        """The process of Ray's that keeps an engine running is killed."""
        number = self._any_shard()
        status = Path(f"/proc/{self._flight.client.shards[number - 1].pid}/status").read_text()
        os.kill(int(status.partition("PPid:")[2].split()[0]), signal.SIGKILL)
        return [number]

    async def database(self) -> list[int]:
        """PostgreSQL is killed, and starts again."""
        self._flight.server.kill()
        self._flight.server.start()
        return []

    async def network(self) -> list[int]:
        """A machine is cut off from the database until its engines have ended."""
        name, numbers = self._with_shards()
        self._machines.cut(name)
        async with asyncio.timeout(PATIENCE_S):
            while any(map(self._flight.alive, numbers)):
                await asyncio.sleep(0.05)
        self._machines.mend(name)
        return numbers

    async def machine(self) -> list[int]:
        """The raylet of a machine is killed."""
        name, numbers = self._with_shards()
        self._machines.kill(name)
        return numbers


async def _fly(machines: Machines, flight: FleetFlight) -> dict[str, list[float]]:
    """Let trouble come at random while agents are given goals; the seconds until all were back."""
    draw = random.Random(4)
    troubles = Troubles(machines, flight, draw)
    kinds = [troubles.engine, troubles.shard, troubles.database, troubles.network, troubles.machine]
    drawn = kinds * rounds(1, full=20)
    draw.shuffle(drawn)
    took: dict[str, list[float]] = {}
    await flight.back({})
    await flight.create()
    for trouble in drawn:
        tokens = await flight.tokens()
        working = asyncio.create_task(flight.work(draw.sample(flight.agents, AT_WORK)))
        before, began = list(flight.client.shards), time.monotonic()
        begun = await trouble()
        lasted = time.monotonic() - began
        back = await flight.back({number: tokens[number] for number in begun})
        took.setdefault(trouble.__name__, []).append(back)
        print(f"{trouble.__name__}, {lasted:.1f} s long, shards {begun}: back after {back:.1f} s", flush=True)
        await working
        if trouble == troubles.machine:
            (name,) = {before[number - 1].node for number in begun}
            assert name not in {row.node for row in await flight.client.look()}
            machines.start(name)
            await asyncio.to_thread(machines.joined, 2)
    await flight.check()
    await flight.client.close()
    return took


def test_a_ray_that_died_is_told_at_once_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.cli.fleet.cluster import join

    (tmp_path / "ray").mkdir()
    (tmp_path / "ray/ray_current_cluster").write_text("127.0.0.1:9\n")
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    for address in ("", "auto", "127.0.0.1:9"):
        with pytest.raises(JournalError, match=r"No Ray answers at 127\.0\.0\.1:9: start it with ray start"):
            join(address)


STARTED = """
from app.cli.fleet.cluster import join, leave
join("", start=True), leave()
join(""), leave()
"""


def test_where_the_user_has_a_token_ray_is_started_and_joined_with_it() -> None:
    with socket.socket() as port:
        if not port.connect_ex(("127.0.0.1", 6379)):
            pytest.skip("another program has the port of Ray")
    room = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # a socket's path is short
    (room / ".ray").mkdir()
    (room / ".ray/auth_token").write_text("0" * 32)
    environment = {**os.environ, "HOME": str(room), "RAY_TMPDIR": str(room), "RAY_NUM_REDIS_GET_RETRIES": "2"}
    environment.pop("RAY_AUTH_MODE", None)
    try:
        done = subprocess.run(
            [sys.executable, "-c", STARTED], env=environment, capture_output=True, text=True, cwd=REPOSITORY
        )
        assert not done.returncode, done.stderr
        refused = subprocess.run(
            [sys.executable, "-c", "from app.cli.fleet.cluster import join; join('127.0.0.1:6379')"],
            env={**environment, "RAY_TMPDIR": "/nowhere"},
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
        )
        assert "set RAY_AUTH_MODE=token" in refused.stderr
    finally:
        subprocess.run(["pkill", "-9", "-f", str(room)])
        shutil.rmtree(room, ignore_errors=True)


def test_shards_on_ray_move_are_stopped_and_come_back_whatever_dies(
    tmp_path: Path, machines: Machines, server: PostgresServer
) -> None:
    for name in MACHINES:
        machines.start(name)
    machines.joined(2)
    ray = ("--ray", machines.address)
    (tmp_path / "fleet.toml").write_text(FLEET)

    lease = () if FULL else ("--lease", "20")  # a crowded machine is only slow
    up = fleet("up", "--shards", "3", "--root", str(tmp_path / "root"), *lease, *ray)
    assert up["address"].startswith("fleet://pilot@/postgres")
    assert {shard["state"] for shard in up["shards"]} == {"up"}
    assert fleet("run", str(tmp_path / "fleet.toml")) == {"agents": 6, "refused": []}
    assert sum(shard["agents"] for shard in fleet("status")["shards"]) == 6
    assert [line.split(":")[0] for line in fleet("stop")["shards"]] == ["shard-1", "shard-2", "shard-3"]

    shard = fleet("status")["shards"][0]
    moved = fleet("move", "1", *lease, *ray)["shards"][0]
    print(f"shard-1 moved from {shard['node']} to {moved['node']}")
    assert moved["node"] != shard["node"]
    assert moved["agents"] == shard["agents"]

    flight = FleetFlight(tmp_path, server, 3, rounds(9, full=600))
    took = asyncio.run(_fly(machines, flight))
    for kind, seconds in took.items():
        median, slowest = statistics.median(seconds), max(seconds)
        print(f"{kind}: {min(seconds):.1f} to {slowest:.1f} s, median {median:.1f}, {len(seconds)} times")
    print(
        f"{flight.actions} actions, {flight.unknown} of unknown outcome, {len(flight.acknowledged)} receipts"
    )
    assert flight.actions
    if FULL:
        assert max(map(max, took.values())) <= BACK_S

    assert fleet("down", *ray)["ended"] == 3
