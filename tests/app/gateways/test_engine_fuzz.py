"""Messages that nobody meant, by the thousand: each is answered, counted or ends its connection alone.

`make endurance` sends a hundred thousand.
"""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from app.gateways.answers import QUESTIONS
from engine.core import commands as cmd
from tests.app.gateways.sockets import HELLO, Raw, client_of, serving
from tests.patience import PATIENCE_S
from tests.rounds import rounds

MESSAGES = rounds(400, full=100_000)
A_CONNECTION = 100
"""Messages of one connection, whose answers are read when all are sent."""
VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2**64,
    1.5,
    "",
    "pilot-1",
    "\x00\x1b[2J\ud800",
    "x" * 5_000,
    [],
    {},
    [[]],
]
HARMLESS = (
    "events",
    "view",
    "agents",
    "waiting",
    "inbox",
    "budgets",
    "health",
    "head",
    "event",
    "ping",
    "cancel",
)
"""What may be asked and changes nothing."""


def message(draw: random.Random) -> bytes:
    """A line of one of many kinds."""
    match draw.randrange(6):
        case 0:
            return draw.randbytes(draw.randrange(200)).replace(b"\n", b" ") + b"\n"
        case 1:
            fields = {
                draw.choice(["id", "ask", "since", "agent", "x"]): draw.choice(VALUES) for _ in range(3)
            }
        case 2:
            fields = {"id": draw.randrange(1, 50), "ask": draw.choice([*QUESTIONS, "", "rm"])}
            fields |= {
                name: draw.choice(VALUES) for name in ("since", "agent", "command", "line", "request", "ref")
            }
            if fields["ask"] in ("line", "submit", "stop", "mcp"):
                fields["dry"], fields["command"] = True, {"do": draw.choice(VALUES)}
                fields["line"] = draw.choice([None, 1, [], "\x00", "?"])
                fields["ask"] = draw.choice(["line", "submit"])
        case 3:
            fields = {"id": draw.randrange(1, 2**53), "ask": draw.choice(HARMLESS), "agent": "pilot-1"}
        case 4:
            depth = draw.randrange(1, 3_000)
            return b'{"id": 1, "ask": "ping", "x": ' + b"[" * depth + b"]" * depth + b"}\n"
        case _:
            fields = {"hello": HELLO["hello"], "id": draw.choice(VALUES)}
    line = json.dumps(fields).encode()
    if draw.random() < 0.1:  # cut short, or with a byte changed
        place = draw.randrange(len(line))
        line = line[:place] if draw.random() < 0.5 else line[:place] + draw.randbytes(1) + line[place + 1 :]
    return line.replace(b"\n", b" ") + b"\n"


async def _flood(workspace: Path, draw: random.Random, count: int) -> int:
    """Send so many messages over a connection, and read until the last is answered; the refusals."""
    raw = await Raw.to(workspace, HELLO if draw.random() < 0.9 else None)
    refusals = 0

    async def read() -> None:
        nonlocal refusals
        while answer := await raw.next():
            refusals += "error" in answer
            if answer.get("id") == 2**52:
                return

    reading = asyncio.create_task(read())
    try:
        for _ in range(count):
            await raw.send(message(draw))
        while not reading.done():  # it is refused while too many requests are under way
            await raw.send({"id": 2**52, "ask": "cancel", "request": 2**51})
            await asyncio.wait({reading}, timeout=0.5)
    except ConnectionError:
        pass  # the server has ended it
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(reading, return_exceptions=True)
    raw.writer.close()
    return refusals


@pytest.mark.parametrize("seed", [7])
async def test_random_messages_touch_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    draw, workspace = random.Random(seed), tmp_path / "workspace"
    async with serving(workspace) as (engine, server):
        await engine.submit(cmd.CreateAgent(agent="pilot-1"))
        head, refusals = await engine.head(), 0
        for _ in range(0, MESSAGES, A_CONNECTION):
            refusals += await _flood(workspace, draw, A_CONNECTION)
        assert refusals > MESSAGES / 4
        assert sum(server.refused.values()) >= refusals
        assert "fault" not in server.refused
        assert not (workspace / ".pilothouse/faults.log").exists()
        async with client_of(workspace) as client:
            assert await client.ask("ping") == "pong"
            assert (await client.submit(cmd.AddNote(agent="pilot-1", text="x"))).ok
        assert [event.kind async for event in engine.events(head, follow=False)] == [
            "command.received",
            "note.added",
        ]
