"""`pilothouse fleet` on Ray: machines of their own names on this one, one of which dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from app.cli.fleet.client import FleetClient
from engine.core.journal import JournalError
from tests.fleet_flight import FleetFlight
from tests.patience import PATIENCE_S
from tests.postgres_server import PostgresServer
from tests.rounds import FULL, rounds

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(not find_spec("ray"), reason="Ray is not installed: make test-extras installs it"),
]
BACK_S = 10.0
FLEET = """
[[agents]]
id = "writer"
count = 6
goal = "append 'hello' to {id}.txt"
thinker = "procedural"
"""


class Machines:
    """A cluster of Ray: a head that takes no shards, and machines that do."""

    def __init__(self, room: Path, environment: dict[str, str]) -> None:
        self._environment, self._log = environment, (room / "ray.log").open("ab")
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
            env={**os.environ, **self._environment, **NOTICED_EARLY, "PILOTHOUSE_NODE": name},
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

    def stop(self) -> None:
        for process in self._running.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._log.close()


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
    monkeypatch.setenv("PILOTHOUSE_JOURNAL", server.url)
    machines = Machines(tmp_path, {"PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        yield machines
    finally:
        machines.stop()


def fleet(*words: str) -> dict[str, Any]:
    """The program's answer."""
    command = [sys.executable, "-m", "app.cli", "fleet", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert not done.returncode, (words, done.stdout, done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


async def _back(url: str, before: dict[int, int]) -> float:
    """Seconds until every shard that had this token is up with a newer one."""
    client, began = FleetClient(url), time.monotonic()
    try:
        while time.monotonic() - began < PATIENCE_S:
            with suppress(JournalError):
                rows = {row.number: row for row in await client.look()}
                if all(rows[number].token > token for number, token in before.items()) and all(
                    row.state == "up" for row in rows.values()
                ):
                    return time.monotonic() - began
            await asyncio.sleep(0.05)
    finally:
        await client.close()
    raise AssertionError(f"not back: {client.shards}")


async def _die_at_work(machines: Machines, flight: FleetFlight) -> float:
    """Let machines die one after the other while agents are given goals; the slowest return in seconds."""
    slowest = 0.0
    await flight.client.look()
    await flight.create()
    for _ in range(rounds(1, full=20)):
        rows = (await asyncio.to_thread(fleet, "status"))["shards"]
        name = next(row["node"] for row in rows if row["node"] in ("east", "west"))
        working = asyncio.create_task(flight.work())
        machines.kill(name)
        took = await _back(flight.url, {row["number"]: row["token"] for row in rows if row["node"] == name})
        slowest = max(slowest, took)
        print(f"{name} died: all shards back after {took:.1f} s", flush=True)
        await working
        assert name not in {row["node"] for row in (await asyncio.to_thread(fleet, "status"))["shards"]}
        machines.start(name)
        await asyncio.to_thread(machines.joined, 2)
    await flight.check()
    await flight.client.close()
    return slowest


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


def test_shards_on_ray_move_are_stopped_and_come_back_when_a_machine_dies(
    tmp_path: Path, machines: Machines, server: PostgresServer
) -> None:
    for name in ("east", "west"):
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
    flight.witness.touch()
    slowest = asyncio.run(_die_at_work(machines, flight))
    print(
        f"{flight.actions} actions, {flight.unknown} of unknown outcome, {len(flight.acknowledged)} receipts"
    )
    if FULL:
        assert slowest <= BACK_S

    assert fleet("down", *ray)["ended"] == 3
