"""T12: random rewinds after edits by programs: how many give tree and state as they were, how long they take.

Random rewinds go to any event of an agent whose actions are programs that write, move, link and remove files,
and of an operator's calls between them; the tree is hashed without using what was measured. Then a tree of
10,000 files and 1 GB: a program changes some of it, and it is rewound, beside `cp -a` of the whole tree.
Run it with `python -m tests.benchmarks.rewinding`.
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
from pathlib import Path
from typing import Any

from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.sandbox.policy import SandboxPolicy
from tests.rewinding import AGENT, Wanderer, tree_hash

ACTIONS, REWINDS, SEED = 60, 200, 12
FILES, FILE_BYTES = 10_000, 100_000
CHANGED = 200
CHANGE = f"""import os
for number in range({CHANGED}):
    with open(f"part{{number % 100}}/file{{number}}", "wb") as file:
        file.write(os.urandom({FILE_BYTES}))
"""


async def _wander(workspace: Path) -> dict[str, Any]:
    engine = await Engine.open(workspace)
    try:
        wanderer = Wanderer(engine, SEED)
        await wanderer.fly(ACTIONS)
        found = await wanderer.wander(REWINDS)
    finally:
        await engine.close()
    return {
        "name": f"T12: {found.count} random rewinds that gave the same tree and state, beside all of them",
        "ours": found.same,
        "baseline": found.count,
        "ratio": found.same / found.count,
        "unit": "rewinds",
        "n": found.count,
        "p50_ms": round(statistics.median(found.took_ms), 1),
        "p95_ms": round(statistics.quantiles(found.took_ms, n=20)[-1], 1),
        "wrong": found.other[:5],
        "machine": _machine(),
    }


def _make(root: Path) -> None:
    chance = random.Random(3)
    for number in range(FILES):
        place = root / f"part{number % 100}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"file{number}").write_bytes(chance.randbytes(FILE_BYTES))


async def _large(workspace: Path) -> dict[str, Any]:
    sandbox = workspace / "sandbox"
    _make(sandbox)
    subprocess.run(["sync", "-f", sandbox], check=True)
    began = time.perf_counter()
    shutil.copytree(sandbox, workspace / "copy", symlinks=True)
    copied = (time.perf_counter() - began) * 1000
    shutil.rmtree(workspace / "copy")
    (sandbox / "change.py").write_text(CHANGE)
    policy = SandboxPolicy(wall_clock_s=300)
    engine = await Engine.open(workspace, config=EngineConfig(policy=policy))
    try:
        await engine.submit(cmd.CreateAgent(agent=AGENT))
        version, tree = (await engine.view(AGENT)).version, tree_hash(sandbox)
        await engine.submit(
            cmd.CallTool(agent=AGENT, command="run", args={"command": ["python", "change.py"]})
        )
        async with asyncio.timeout(300):
            while (state := await engine.view(AGENT)).busy or state.requests or not state.operator_actions:
                await asyncio.sleep(0.01)
        began = time.perf_counter()
        preview = await engine.time_travel.preview(AGENT, version)
        previewed = (time.perf_counter() - began) * 1000
        began = time.perf_counter()
        receipt = await engine.submit(cmd.Rewind(agent=AGENT, to=version))
        took = (time.perf_counter() - began) * 1000
        same = receipt.ok and tree_hash(sandbox) == tree and preview.changed == CHANGED
    finally:
        await engine.close()
    return {
        "name": f"rewinding {CHANGED} files of {FILES:,} with 1 GB, beside copying the tree",
        "ours": round(took, 1),
        "baseline": round(copied, 1),
        "ratio": round(took / copied, 3),
        "unit": "ms",
        "n": 1,
        "preview_ms": round(previewed, 1),
        "same": same,
        "message": receipt.message[:200],
        "machine": _machine(),
    }


def _machine() -> str:
    system = f"{platform.system()} {platform.machine()}"
    return f"{system}, {os.cpu_count()} cores, Python {platform.python_version()}"


def rows() -> list[dict[str, Any]]:
    """The two rows."""
    found = []
    for measure in (_wander, _large):
        with tempfile.TemporaryDirectory() as directory:
            found.append(asyncio.run(measure(Path(directory) / "workspace")))
    return found


if __name__ == "__main__":
    for row in rows():
        print(json.dumps(row))
