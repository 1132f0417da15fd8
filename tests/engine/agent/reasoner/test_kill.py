"""`kill -9` in the middle: what was acknowledged is kept, and an action is not repeated by itself."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from tests.engine.agent.engine_flight import journal_holds_together
from tests.engine.agent.reasoner.reasoner_flight import ReasonerFlight, same_mind_from_the_journal
from tests.patience import PATIENCE_S

LIFE = """
import asyncio, os, sys
from pathlib import Path
from engine.core import commands as cmd
from engine.api.engine import Engine

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

async def tell(engine):
    async for event in engine.events(await engine.head()):
        say("durable", event.ref, event.hash)
        if event.kind == "action.started":
            say("started")

async def live(workspace, program):
    engine = await Engine.open(workspace)
    asyncio.create_task(tell(engine))
    if "pilot" not in engine.agents:
        config = {"program": program}
        receipt = await engine.submit(cmd.CreateAgent(agent="pilot", agent_type="asl_agent", config=config))
        assert receipt.ok, receipt.message
    await engine.submit(cmd.Run(agent="pilot"))
    say("running")
    await asyncio.sleep(600)

asyncio.run(live(Path(sys.argv[1]), sys.argv[2]))
"""
WORK = (
    '!work(0). !count(0). +!work(N) <- .concat("m", N, M); append("log", M); +did(N); .wait(2); !work(N + 1).'
    "-!work(N)[error_msg(E)] <- +failed(N, E); !work(N + 1)."
    "+!count(N) <- -+counted(N); .wait(1); !count(N + 1)."
)
ENDLESS = "import time; open('began', 'a').write('x'); time.sleep(600)"
STUCK = f'!go. +!go <- run(["python", "-c", "{ENDLESS}"]); +never. -!go[error_msg(E)] <- +failed(E).'


async def lived(workspace: Path, program: str, until: str, lines: int = 0) -> dict[str, str]:
    """Live until a line that begins so, and so many more, and be killed; what was acknowledged by then."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LIFE, str(workspace), program, stdout=PIPE
    )
    assert process.stdout is not None
    said: dict[str, str] = {}

    def take(line: bytes) -> str:
        if line.startswith(b"durable") and line.endswith(b"\n"):
            _word, ref, digest = line.decode().split()
            said[ref] = digest
        return line.decode()

    try:
        async with asyncio.timeout(PATIENCE_S):
            while not take(await process.stdout.readline()).startswith(until):
                assert process.returncode is None
            for _ in range(lines):
                take(await process.stdout.readline())
    finally:
        process.send_signal(signal.SIGKILL)
    for line in (await process.stdout.read()).splitlines(keepends=True):
        take(line)
    await process.wait()
    return said


async def reopened(workspace: Path, said: dict[str, str]) -> ReasonerFlight:
    """The workspace of the dead, opened; what was acknowledged is there, and the agent is paused."""
    flight = ReasonerFlight(workspace)
    await flight.open()
    try:
        await is_as_it_was(flight, said)
    except BaseException:
        await flight.engine.close()
        raise
    return flight


async def is_as_it_was(flight: ReasonerFlight, said: dict[str, str]) -> None:
    kept = {event.ref: event.hash for event in await flight.events()}
    for ref, digest in said.items():
        if ref.startswith("pilot:"):
            assert kept[ref] == digest, f"{ref} was acknowledged and is gone"
    assert (await flight.state()).run is RunState.PAUSED
    await same_mind_from_the_journal(flight, "pilot")


async def test_an_action_under_way_fails_for_its_intention_and_is_not_repeated(tmp_path: Path) -> None:
    began = tmp_path / "sandbox" / "began"
    said = await lived(tmp_path, STUCK, "started")
    flight = await reopened(tmp_path, said)
    state = await flight.state()
    started = await flight.payloads(ev.ActionStarted)
    unknown = await flight.payloads(ev.ActionOutcomeUnknown)
    assert len(unknown) == len(started) == 1
    assert state.wanted == []
    await flight.do(cmd.Run)
    state = await flight.idle()
    assert any("its outcome is unknown" in text for text in state.held_beliefs)
    assert len(await flight.payloads(ev.ActionStarted)) == 1
    assert not began.exists() or began.read_text() == "x"
    await flight.engine.close()
    await journal_holds_together(tmp_path)


@pytest.mark.slow
async def test_kills_at_random_moments_lose_and_repeat_nothing(tmp_path: Path) -> None:
    dice = random.Random(20261122)
    unknown = 0
    for _ in range(3):
        said = await lived(tmp_path, WORK, "started", dice.randrange(100))
        assert said
        flight = await reopened(tmp_path, said)
        unknown = len(await flight.payloads(ev.ActionOutcomeUnknown))
        await flight.engine.close()
    replays = await journal_holds_together(tmp_path)
    assert all(replay.matches for replay in replays)
    log = (tmp_path / "sandbox" / "log").read_text()
    marks = [f"m{number}" for number in range(log.count("m"))]
    assert log == "".join(marks) or unknown
    assert all(log.count(f"{mark}m") + log.endswith(mark) <= 1 for mark in marks)
