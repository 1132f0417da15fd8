"""Random rewinds of an agent whose program edits the tree at random, each compared with what was there."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core.state import AgentState
from tests.patience import PATIENCE_S

AGENT = "pilot"
CHANGES = ("agent.created", "action.finished", "agent.rewound")
"""Events after which the files are others than before."""
EDIT = """import os, random, shutil, sys
chance = random.Random(int(sys.argv[1]))
names = [f"{a}/{b}" for a in "abc" for b in "xyz"]
for _ in range(4):
    name = chance.choice(names)
    what = chance.choice(["write", "write", "append", "remove", "mode", "link", "tree", "move"])
    os.makedirs(os.path.dirname(name), exist_ok=True)
    if what in ("write", "append"):
        if os.path.lexists(name) and (os.path.islink(name) or what == "write"):
            os.remove(name)
        with open(name, "a") as file:
            file.write(str(chance.random()) * chance.randint(0, 300))
    elif what == "remove" and os.path.lexists(name):
        os.remove(name)
    elif what == "mode" and os.path.isfile(name) and not os.path.islink(name):
        os.chmod(name, chance.choice([0o600, 0o644, 0o755]))
    elif what == "link":
        if os.path.lexists(name):
            os.remove(name)
        os.symlink(chance.choice(names), name)
    elif what == "tree" and chance.random() < 0.4:
        shutil.rmtree(os.path.dirname(name))
    elif what == "move" and os.path.lexists(name):
        os.rename(name, name + ".moved")
"""
"""A program that changes files as shell commands do: writes, modes, links, moves, whole directories gone."""


def tree_hash(root: Path) -> str:
    """SHA-256 over every name with its mode and content, without HOME and TMPDIR of programs."""
    digest = hashlib.sha256()
    for place, directories, files in os.walk(root):
        directories.sort()
        if Path(place) == root:
            directories[:] = [name for name in directories if name not in (".home", ".tmp")]
        for name in sorted([*files, *(one for one in directories if (Path(place) / one).is_symlink())]):
            path = Path(place) / name
            content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            digest.update(f"{path.relative_to(root)}\0{path.lstat().st_mode}\0".encode() + content)
        digest.update(
            f"{Path(place).relative_to(root)}/\0{os.stat(place).st_mode}".encode() if place else b""
        )
    return digest.hexdigest()


@dataclass
class Rewinds:
    """What came of random rewinds."""

    same: int = 0
    other: list[str] = field(default_factory=list)
    """Those whose tree or state was not as it had been."""
    took_ms: list[float] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many were made."""
        return self.same + len(self.other)


class Wanderer:
    """An agent that edits, and is taken back and forth in its time."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self.engine = engine
        self.chance = random.Random(seed)
        self.places: list[tuple[int, str]] = []
        """Versions from which on the files were so, with the hash of the tree, oldest first."""

    async def fly(self, actions: int) -> None:
        """Let a plan of so many edits run, and note after each how the tree is."""
        await self._do(cmd.CreateAgent(agent=AGENT))
        (self.engine.root / "edit.py").write_text(EDIT)
        await self._do(cmd.AdoptGoal(agent=AGENT, text="list the files"))
        await self._until(lambda state: state.plan is not None and state.action is not None)
        args = [{"command": ["python", "edit.py", str(number)]} for number in range(actions)]
        plan = [
            {"type": "EXECUTE_TOOL", "params": {"tool_id": "simple_coder", "command": "run", "args": one}}
            for one in args
        ]
        await self._do(cmd.ReplacePlan(agent=AGENT, goal="g1", plan=json.dumps(plan)))
        await self._note()
        for number in range(actions):
            await self._do(cmd.Step(agent=AGENT))
            await self._until(lambda state, least=number + 1: state.actions >= least)  # type: ignore[misc]
            await self._note()

    async def wander(self, times: int) -> Rewinds:
        """Go to random events; before some of them the operator edits at the agent's side."""
        found = Rewinds()
        for number in range(times):
            if self.chance.random() < 0.3:
                call = {"command": ["python", "edit.py", str(10_000 + number)]}
                await self._do(cmd.CallTool(agent=AGENT, command="run", args=call))
                await self._note()
            asked = self.chance.randint(self.places[0][0], self.places[-1][0])
            preview = await self.engine.time_travel.preview(AGENT, asked)
            began = time.perf_counter()
            receipt = await self.engine.submit(cmd.Rewind(agent=AGENT, to=asked))
            found.took_ms.append((time.perf_counter() - began) * 1000)
            version, tree = [one for one in self.places if one[0] <= preview.to][-1]
            state, then = await self.engine.view(AGENT), await self.engine.view(AGENT, preview.to)
            same_state = (list(state.goals), state.plans) == (list(then.goals), then.plans)
            if not receipt.ok:
                found.other.append(f"{asked}: {receipt.message}")
            elif tree_hash(self.engine.root) != tree or not same_state:
                found.other.append(f"{asked}: not as at {version}")
            else:
                found.same += 1
            await self._note()
        return found

    async def _note(self) -> None:
        state = await self._until(lambda one: not one.busy and not one.grants and not one.requests)
        while (await self.engine.store.head(AGENT)).version < state.version:
            await asyncio.sleep(0)
        changes = await self.engine.store.places(AGENT, CHANGES, 1, state.version)
        self.places.append((changes[-1][0], tree_hash(self.engine.root)))

    async def _do(self, command: cmd.Command) -> None:
        receipt = await self.engine.submit(command)
        if not receipt.ok:
            raise AssertionError(receipt.message)

    async def _until(self, holds: object) -> AgentState:
        async with asyncio.timeout(PATIENCE_S):
            while not holds(state := await self.engine.view(AGENT)):  # type: ignore[operator]
                await asyncio.sleep(0.001)
        return state
