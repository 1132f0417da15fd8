"""How fast a workspace is snapshotted and restored, beside `cp -a` and `tar` of the same tree in one run.

The tree has 2,000 files of 200 bytes to 20 KB in 200 directories. `cp -a` and `tar` copy it and let the disk
settle in its own time; ours hashes everything, lets the disk settle before it answers, and after a
restoration looks at every file again. The last rows are whole actions of an agent: each writes one small
file, in a tree of so many others, beside the same without snapshots.
Run it with `python -m tests.benchmarks.snapshot`.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.agent.actions.snapshots import SnapshotRule
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.sandbox.snapshots.workspace import Snapshots

ROUNDS = 5
FILES = 2_000
ACTIONS = 30
OTHERS = (10, 2_000, 20_000)


@contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


def _make(root: Path) -> None:
    chance = random.Random(3)
    for number in range(FILES):
        place = root / f"package{number % 20}" / f"module{number % 200}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"file{number}.py").write_bytes(chance.randbytes(chance.randint(200, 20_000)))


def _until_settled(root: Path) -> None:
    """Let the files grow old enough for their times to prove something, as they are in a workspace."""
    subprocess.run(["sync", "-f", root], check=True)
    time.sleep(0.2)


def _ms(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1000


def _change(root: Path, count: int) -> None:
    for number, path in enumerate(sorted(root.rglob("*.py"))):
        if number % (FILES // count) == 0:
            path.write_bytes(os.urandom(2_000))


def _copy(root: Path, to: Path) -> None:
    subprocess.run(["cp", "-a", root, to], check=True)


def _pack(root: Path, to: Path) -> None:
    subprocess.run(["tar", "-cf", to, "-C", root, "."], check=True)


def _empty(root: Path) -> None:
    for path in root.iterdir():
        shutil.rmtree(path)


class Round:
    """Everything measured once, in milliseconds by name."""

    def __init__(self, here: Path) -> None:
        self.took: dict[str, float] = {}
        self._root, self._here = here / "root", here
        self._snapshots = Snapshots(self._root, here / "store")
        self._root.mkdir()
        _make(self._root)
        _until_settled(self._root)

    def _take(self) -> str:
        return asyncio.run(self._snapshots.take()).id

    def _restore(self, snapshot: str) -> None:
        done = asyncio.run(self._snapshots.restore(snapshot))
        if not done.verified or done.left or done.failed:
            raise RuntimeError(f"the tree did not come back: {done}")

    def run(self) -> dict[str, float]:
        """Measure."""
        took, here, root = self.took, self._here, self._root
        took["cp"] = _ms(lambda: _copy(root, here / "copy"))
        took["tar"] = _ms(lambda: _pack(root, here / "archive.tar"))
        took["first"] = _ms(self._take)
        took["unchanged"] = _ms(self._take)
        first = self._take()
        _change(root, 20)
        took["changed"] = _ms(self._take)
        took["preview"] = _ms(lambda: asyncio.run(self._snapshots.restore(first, dry_run=True)))
        took["back"] = _ms(lambda: self._restore(first))
        _empty(root)
        took["all"] = _ms(lambda: self._restore(first))
        _empty(root)
        took["untar"] = _ms(
            lambda: subprocess.run(["tar", "-xf", here / "archive.tar", "-C", root], check=True)
        )
        return took


async def _act(workspace: Path, others: int, rule: SnapshotRule) -> float:
    """Median milliseconds from an action's request to its end."""
    (workspace / "sandbox").mkdir()
    for number in range(others):
        place = workspace / "sandbox" / str(number // 100)
        place.mkdir(exist_ok=True)
        (place / str(number)).write_text(f"content {number}")
    engine = await Engine.open(workspace, config=EngineConfig(snapshots=rule))
    write = {"tool_id": "simple_coder", "command": "write"}
    steps = [
        {"type": "EXECUTE_TOOL", "params": {**write, "args": {"path": "f", "content": str(number)}}}
        for number in range(ACTIONS + 2)
    ]
    for command in (
        cmd.CreateAgent(agent="pilot"),
        cmd.AdoptGoal(agent="pilot", text="list the files"),
        cmd.ReplacePlan(agent="pilot", goal="g1", plan=json.dumps(steps)),
        cmd.Run(agent="pilot"),
    ):
        await engine.submit(command)
    async for event in engine.events():
        if event.kind == ev.GoalEnded.kind:
            break
    events = await engine.store.read("pilot")
    await engine.close()
    requested = [_seconds(event.at) for event in events if event.kind == ev.ActionRequested.kind]
    finished = [_seconds(event.at) for event in events if event.kind == ev.ActionFinished.kind]
    # The first were held at the gate, and saved a tree that was not known yet.
    took = [end - begin for begin, end in zip(requested[-ACTIONS:], finished[-ACTIONS:], strict=True)]
    return statistics.median(took) * 1000


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def _actions() -> dict[str, float]:
    took = {}
    for others in OTHERS:
        for rule in SnapshotRule:
            with _directory() as workspace:
                took[f"{rule} {others}"] = asyncio.run(_act(workspace, others, rule))
    return took


ROWS = {
    "first snapshot of 2,000 files, beside cp -a": ("first", "cp"),
    "first snapshot of 2,000 files, beside tar": ("first", "tar"),
    "snapshot of 2,000 unchanged files, beside cp -a": ("unchanged", "cp"),
    "snapshot after 20 files changed, beside cp -a": ("changed", "cp"),
    "preview of restoring 20 files, beside cp -a": ("preview", "cp"),
    "restoring 20 files, verified, beside cp -a": ("back", "cp"),
    "restoring 2,000 files, verified, beside tar -x": ("all", "untar"),
    **{
        f"an action with its snapshot among {others:,} files, beside one without": (
            f"{SnapshotRule.REQUIRED} {others}",
            f"{SnapshotRule.OFF} {others}",
        )
        for others in OTHERS
    },
}
"""What is compared with what."""


def rows() -> list[dict[str, Any]]:
    """Medians in milliseconds; a ratio of 1 means as long as the baseline, and below that shorter."""
    rounds = []
    for _ in range(ROUNDS):
        with _directory() as here:
            rounds.append(Round(here).run())
    median = {name: statistics.median(took[name] for took in rounds) for name in rounds[0]} | _actions()
    return [
        {
            "name": name,
            "ours": round(median[ours], 1),
            "baseline": round(median[baseline], 1),
            "ratio": round(median[ours] / median[baseline], 3),
            "unit": "ms",
            "n": ROUNDS,
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
            f"Python {platform.python_version()}",
        }
        for name, (ours, baseline) in ROWS.items()
    ]


if __name__ == "__main__":
    for found in rows():
        print(json.dumps(found))
