"""What the socket of an engine costs: a step by it beside an embedded one, the loop among fifty clients, and
the first screen of `attach` with a long session beside one with a short.

Run it with `python -m tests.benchmarks.remote`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from app.commands.headless import open_engine
from app.gateways.engine_client import EngineClient
from app.gateways.socket_server import EngineServer
from engine.core import commands as cmd
from engine.core.journal import Event
from tests.app.gateways.many_clients import crowd, late_ticks, note
from tests.benchmarks import long_session
from tests.benchmarks.cockpit import Screen, pilothouse, row

STEPS = 100
LONG, GOAL, ATTACHED = 100_000, 83, 9
"""Events of a long session and of each of its goals, and how often each is attached to."""
NEWEST = long_session.named(-(-LONG // GOAL) - 1)
CLIENTS, EVENTS, RATE = 22, 20_000, 1_000
"""Followers of each of two programs, events, and events a second."""


async def _steps(
    submit: Callable[[cmd.Command], Awaitable[cmd.Receipt]], events: Callable[[int], AsyncIterator[Event]]
) -> list[float]:
    """Milliseconds from a call of a tool to its end, as who asked for it sees it."""
    await submit(cmd.CreateAgent(agent="pilot-1"))
    times, place = [], 0
    stream = events(0)
    for _ in range(STEPS):
        began = time.perf_counter()
        receipt = await submit(cmd.CallTool(agent="pilot-1", command="ls", args={"path": "."}))
        assert receipt.ok, receipt.message
        async for event in stream:
            place = event.seq
            if event.kind == "action.finished":
                break
        times.append((time.perf_counter() - began) * 1000)
    assert place
    return times


async def _embedded(workspace: Path) -> list[float]:
    async with open_engine(workspace) as engine:
        return await _steps(engine.submit, engine.events)


async def _by_socket(workspace: Path) -> list[float]:
    command = [sys.executable, "-m", "app.cli", "serve", "--workspace", str(workspace)]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    client = await EngineClient.open(workspace)
    assert client is not None
    try:
        return await _steps(client.submit, client.events)
    finally:
        await client.close()
        process.terminate()
        await process.wait()


@asynccontextmanager
async def _serving(workspace: Path) -> AsyncIterator[tuple[Any, EngineServer]]:
    async with open_engine(workspace) as engine:
        server = EngineServer(engine, "serve")
        await server.begin()
        try:
            yield engine, server
        finally:
            await server.close()


async def _crowd(workspace: Path) -> tuple[dict[str, Any], float]:
    """What fifty clients see and cost, and how late the loop is without them."""
    async with _serving(workspace) as (engine, server):
        await engine.submit(cmd.CreateAgent(agent="pilot-1"))
        ticks = asyncio.create_task(late_ticks())
        await note(engine, RATE * 2, RATE)
        ticks.cancel()
        lates = sorted(await ticks)
        result = await crowd(workspace, engine, server, programs=2, each=CLIENTS, events=EVENTS, rate=RATE)
        return result, lates[int(len(lates) * 0.99)] * 1000


@contextmanager
def _served(workspace: Path) -> Iterator[None]:
    """Serve a workspace whose agent's state has been kept, as that of a long session is."""
    serve = [*pilothouse("serve"), "--workspace", str(workspace)]
    for served in (False, True):
        with subprocess.Popen(serve, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            try:
                if served:
                    yield
            finally:
                process.terminate()


def _attached(workspace: Path, shown: str) -> float:
    """Seconds from the start of `attach` until the screen shows a text."""
    with Screen([*pilothouse("attach"), str(workspace)]) as screen:
        return screen.wait_for(b"6 Mind", shown.encode()) - screen.began


def _attach(long: Path, short: Path) -> dict[str, Any]:
    made = {long: LONG, short: GOAL}
    for workspace, count in made.items():
        workspace.mkdir()
        long_session.make(workspace, count)
    with _served(long), _served(short):
        pairs = [(_attached(long, NEWEST), _attached(short, long_session.named(0))) for _ in range(ATTACHED)]
    name = f"attach to {LONG:,} events, first screen"
    return row(name, *zip(*pairs, strict=True), "s", ATTACHED, baseline="a session of one goal")


def rows() -> list[dict[str, Any]]:
    """The rows of the bench form."""
    with tempfile.TemporaryDirectory() as place:
        os.environ["PILOTHOUSE_HOME"] = f"{place}/home"
        embedded = asyncio.run(_embedded(Path(place) / "a"))
        socket = asyncio.run(_by_socket(Path(place) / "b"))
        result, alone = asyncio.run(_crowd(Path(place) / "c"))
        attach = _attach(Path(place) / "long", Path(place) / "short")
    late = row(
        f"loop p99 among {2 * CLIENTS + 1} followers and 5 cockpits",
        [result["late_p99_ms"]],
        [max(alone, 0.001)],
        "ms",
        EVENTS,
        baseline="no client",
    )
    return [
        row("a step by the socket", socket, embedded, "ms", STEPS, baseline="embedded"),
        attach,
        {**late, "events_per_s": round(result["rate"]), "whole": result["whole"]},
    ]


if __name__ == "__main__":
    for each in rows():
        print(json.dumps(each))
