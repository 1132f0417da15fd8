"""A full or broken disk at any write of a run: it holds or refuses with a sentence, nothing is lost."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import random
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.commands.settings import Settings
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.journal import JournalError
from engine.core.store.blobs import BlobStore
from engine.core.store.port import DATA_DIRECTORY
from engine.core.store.verify import verify
from engine.sandbox.snapshots.entry import SnapshotError
from engine.sandbox.snapshots.workspace import Snapshots
from tests import forking
from tests.disk_faults import EVERY_LATER, DiskFaults, built
from tests.patience import PATIENCE_S
from tests.rounds import rounds

ROUNDS = rounds(2, full=300)
AGENT = "pilot-1"
SCRIPT = """import sys
open("witness", "a").write(sys.argv[1] + "\\n")
print("output " * 20_000)
"""
GOAL = (
    "write 'one' to a.txt, run 'python mark.py 1', append 'two' to a.txt, create the directory d, "
    "run 'python mark.py 2', read a.txt"
)
HELD_S = 3.0
"""How long a disk stays full that is full from some write on."""


@dataclass
class Ran:
    """How a run on a bad disk ended."""

    code: int
    events: list[dict[str, str]]
    """Those that it printed, and which are durable by then."""
    text: str


def ran(workspace: Path, faults: DiskFaults, library: Path) -> Ran:
    """`pilothouse run`; a disk that is full from some write on has room again after a while."""
    out, err = workspace.parent / "out", workspace.parent / "err"
    words = ("run", GOAL, "--events", "--workspace", str(workspace))
    with open(os.devnull, "rb") as nothing, out.open("wb") as told, err.open("wb") as said:
        files = (nothing.fileno(), told.fileno(), said.fileno())
        environment = {**os.environ, **faults.environment}
        run = forking.start(
            forking.CLI, *words, cwd=workspace, files=files, environment=environment, preload=str(library)
        )
    try:
        full_s = 0.0
        while faults.failed == 0 and is_running(run.pid):
            time.sleep(0.01)
        while full_s < HELD_S and is_running(run.pid):
            time.sleep(0.02)
            full_s += 0.02
        faults.mend()
        code = run.wait()
    finally:
        run.kill()
    lines = out.read_text().splitlines(keepends=True)
    events = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]
    return Ran(code, events, err.read_text() + "".join(line for line in lines if not line.startswith("{")))


def is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


async def opens_sound(workspace: Path, printed: list[dict[str, str]]) -> None:
    """Open it on a sound disk: everything durable is there, and another agent can work."""
    engine = await Engine.open(workspace, config=Settings.load(workspace).engine_config())
    try:
        check = await verify(engine.store, BlobStore(workspace / DATA_DIRECTORY / "blobs"))
        assert check.ok, check
        kept = {event.ref: event async for event in engine.store.events()}
        for event in printed:
            assert kept[event["ref"]].hash == event["hash"]
        await engine.memory.ready()
        await snapshots_are_whole(workspace, list(kept.values()))
        agent = f"later{len(engine.agents)}"
        for command in (
            cmd.CreateAgent(agent=agent),
            cmd.AdoptGoal(agent=agent, text="write 'later' to later.txt"),
            cmd.Run(agent=agent),
        ):
            receipt = await engine.submit(command)
            assert receipt.ok, receipt.message
        async with asyncio.timeout(PATIENCE_S):
            while (await engine.view(agent)).open_goals:
                await asyncio.sleep(0.01)
        assert (workspace / "sandbox" / "later.txt").read_text().strip() == "later"
    finally:
        await engine.close()


async def snapshots_are_whole(workspace: Path, events: list[ev.Event]) -> None:
    """Whatever snapshot an event names can be compared with the last one, and files come back from it."""
    taken = [ev.payload_of(event) for event in events if event.kind == ev.SnapshotTaken.kind]
    names = [payload.snapshot for payload in taken if isinstance(payload, ev.SnapshotTaken)]
    snapshots = Snapshots(workspace / "sandbox", workspace / DATA_DIRECTORY / "snapshots")
    for name in names:
        await snapshots.diff(name, names[-1])
    if names:
        await snapshots.restore(names[-1])


def prepared(place: Path) -> Path:
    workspace = place / "workspace"
    (workspace / "sandbox").mkdir(parents=True)
    (workspace / "sandbox" / "mark.py").write_text(SCRIPT)
    return workspace


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def writes(library: Path, tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many writes a run has on a sound disk."""
    place = tmp_path_factory.mktemp("sound")
    workspace = prepared(place)
    faults = DiskFaults(place / "control", workspace)
    faults.break_at(1, 0, 0)
    done = ran(workspace, faults, library)
    assert done.code == 0, done.text
    assert faults.calls > 100
    return faults.calls


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True], ids=["new", "reopened"])
def test_a_disk_that_refuses_any_write_costs_nothing_durable(
    again: bool, library: Path, writes: int, tmp_path: Path
) -> None:
    outcomes, wrong = Counter[str](), list[str]()
    for number in range(int(again), ROUNDS, 2):
        dice = random.Random(f"disk faults {number}")
        place = tmp_path / f"r{number}"
        workspace = prepared(place)
        if again:
            asyncio.run(opens_sound(workspace, []))
        faults = DiskFaults(place / "control", workspace)
        first, error = dice.randint(1, writes), dice.choice([errno.ENOSPC, errno.EIO])
        last = dice.choice([first, EVERY_LATER])
        faults.break_at(first, last, error)
        done = ran(workspace, faults, library)
        how = "once" if last == first else f"{faults.failed} times"
        what = f"{number}: write {first} of {writes}, {errno.errorcode[error]} {how}, exit {done.code}"
        if why := _wrong(workspace, done):
            wrong.append(f"{what}: {why}\n{done.text}")
        outcomes[f"exit {done.code}"] += 1
    print(outcomes)
    assert not wrong, "\n\n".join(wrong)


def _wrong(workspace: Path, done: Ran) -> str:
    """What a run on a bad disk did that it may not do; empty for nothing."""
    if "Traceback" in done.text or done.code not in (0, 1, 2, 3):
        return "not refused with a sentence"
    if done.code and not done.text.strip():
        return "not a word"
    try:
        asyncio.run(opens_sound(workspace, done.events))
    except (AssertionError, JournalError, SnapshotError, KeyError) as error:
        return f"afterwards: {type(error).__name__} {error}"
    witness = workspace / "sandbox" / "witness"
    marks = witness.read_text().split() if witness.exists() else []
    return "" if len(marks) == len(set(marks)) else f"repeated: {marks}"
