"""Ray places the shards of a fleet, and starts one again whose process or machine has died."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from app.cli.fleet.shard import Shard, ShardPlan
from engine.core.journal import JournalError

NAMESPACE = "pilothouse"
DRAINED_S = 120.0
"""How long the actions that run when a shard is drained may take."""
LOOK_S = 0.1
CONNECT_S = 5.0
NOTICED_EARLY = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "3",
}
"""With which a Ray is started here that finds a dead machine within about three seconds, instead of 30."""


class ShardActor:
    """A shard as an actor of Ray, in a thread with a loop of its own."""

    def __init__(self, plan: tuple[Any, ...]) -> None:
        self._loop = asyncio.new_event_loop()
        self._over = threading.Event()
        self._shard = Shard(ShardPlan(*plan))
        threading.Thread(target=self._run, name="shard", daemon=True).start()
        threading.Thread(target=_end_with, args=(os.getppid(),), name="end with Ray", daemon=True).start()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._shard.run())
            self._over.set()
        finally:
            if not self._over.is_set():
                traceback.print_exc()
                os._exit(1)  # Ray starts it again, where it can

    def drain(self) -> bool:
        """Let the shard go behind the actions that run; whether that was done in time."""
        self._loop.call_soon_threadsafe(self._shard.drain)
        return self._over.wait(DRAINED_S)

    def node(self) -> str:
        """Ray's id of the machine."""
        return str(_ray().get_runtime_context().get_node_id())


def _end_with(parent: int) -> None:
    """End at once with the raylet of this machine: others wait for as long as the lease is renewed.

    A signal at its death would come with that of its thread which began this process.
    """
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(1)


def _ray() -> Any:
    """Ray.

    Raises:
        JournalError: it is not installed.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise JournalError(
            "A fleet needs Ray and asyncpg, which are not installed: pip install 'pilothouse[fleet]'"
        ) from error
    return ray


def join(address: str, *, start: bool = False) -> None:
    """Connect to a cluster, or start one on this machine where none was named and none runs.

    Raises:
        JournalError: there is none, or it cannot be started.
    """
    ray = _ray()
    place = address if address not in ("", "auto") else _noted()
    if not _answers(place):
        if address or not start:
            raise JournalError(f"No Ray answers at {place or 'this machine'}: start it with ray start --head")
        _start()
        place = _noted()
    # Ray, started by a user with a token, asks for it; `ray.init` gives it where the address was not named.
    found = "auto" if place == _noted() and "RAY_ADDRESS" not in os.environ else place
    try:
        ray.init(address=found, namespace=NAMESPACE, log_to_driver=False, logging_level="error")
    except (ConnectionError, RuntimeError, ValueError) as error:
        why = str(error)
        if "AuthToken" in f"{error.__cause__}":
            why = (
                "it asks for a token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to what it was started with"
            )
        raise JournalError(f"Ray at {place} cannot be used: {why}") from error


def _noted() -> str:
    """Where the Ray of this machine is, as Ray notes it; a Ray that died leaves its note."""
    try:
        return (Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray/ray_current_cluster").read_text().strip()
    except OSError:
        return ""


def _answers(address: str) -> bool:
    """Whether something listens at an address; Ray itself would wait for minutes where nothing does."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_S).close()
    except (OSError, ValueError):
        return False
    return True


def _start() -> None:
    words = ("start", "--head", "--include-dashboard=false", "--disable-usage-stats", "--num-cpus=1")
    done = subprocess.run(
        [sys.executable, "-m", "ray.scripts.scripts", *words],
        capture_output=True,
        text=True,
        env={**os.environ, **NOTICED_EARLY},
    )
    if done.returncode:
        raise JournalError(f"Ray could not be started: {done.stderr.strip()[-300:]}")


def leave() -> None:
    """End the connection to the cluster; what runs there stays."""
    _ray().shutdown()


def _name(schema: str, number: int) -> str:
    return f"{schema} shard-{number}"


def place(schema: str, plan: ShardPlan, *, node: str = "") -> None:
    """Have a shard run, on this machine of Ray's if it can be; one that is there stays."""
    ray = _ray()
    where: Any = "SPREAD"
    if node:
        where = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=True)
    ray.remote(ShardActor).options(
        name=_name(schema, plan.number),
        lifetime="detached",
        get_if_exists=True,
        max_restarts=-1,
        num_cpus=0.01,  # so that a machine which offers none gets none
        max_concurrency=4,
        scheduling_strategy=where,
    ).remote(tuple(plan))


def remove(schema: str, number: int) -> bool:
    """Drain a shard and end its actor; whether there was one, and it was done in time."""
    ray = _ray()
    try:
        actor = ray.get_actor(_name(schema, number))
        drained = bool(ray.get(actor.drain.remote(), timeout=DRAINED_S + 10))
    except (ValueError, ray.exceptions.RayError):
        return False
    ray.kill(actor, no_restart=True)
    with suppress(ValueError):  # until its name is free
        while ray.get_actor(_name(schema, number)):
            time.sleep(LOOK_S)
    return drained


def other_node(schema: str, number: int, shards: int) -> str:
    """The machine with the fewest shards that is not a shard's own; its own where there is no other."""
    ray = _ray()
    alive: list[str] = [
        node["NodeID"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")
    ]
    there = {}
    for each in range(1, shards + 1):
        try:
            there[each] = ray.get(ray.get_actor(_name(schema, each)).node.remote(), timeout=30)
        except (ValueError, ray.exceptions.RayError):
            continue
    count = Counter(there.values())
    return min(alive, key=lambda node: (node == there.get(number), count[node]))
