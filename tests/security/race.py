"""The race of cases 8 and 9: a swapper inside the jail against every file command of SimpleCoder.

`python -m tests.security.race BASE SECONDS` prints a JSON object: tries, done, refused and leaks by verb.
The swapper exchanges, as fast as it can, directories and files with links that lead outside (renameat2
EXCHANGE); each verb has a directory of its own on both sides, which is watched from outside, so that even a
file that was only opened counts as a leak. The verbs run in groups of four or five at once on one loop, each
group for the given seconds. `resolve, check, open` is the naive way, raced alike to show what the swapper is
worth.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from engine.core.actions import ErrorCode, SandboxSession, ToolResult
from engine.core.ports import CallContext
from engine.sandbox.policy import SandboxPolicy, Tier
from engine.sandbox.programs import BASE_PYTHON
from engine.tools.simple_coder import SimpleCoder
from tests.security.watch import Watch

WORD = "the secret"
GROUPS = (
    ("ls", "cd", "read", "find"),
    ("write", "append", "replace", "mkdir"),
    ("move", "copy", "rm", "activate_venv", "create_venv"),
)
VERBS = tuple(verb for group in GROUPS for verb in group)
NAIVE = "resolve, check, open"
PATIENCE_S = 120.0
SWAPPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pairs = [(f"{verb}/{one}".encode(), f"{verb}/{two}".encode())
         for verb in sys.argv[1:]
         for one, two in (("d", "to-d"), ("f", "to-f"), ("d", "to-d2"), ("f", "to-f2"))]
for one, two in pairs:
    for _ in range(2):
        if libc.renameat2(-100, one, -100, two, 2): sys.exit(os.strerror(ctypes.get_errno()))
open("swapping", "w").close()
while True:
    for one, two in pairs:
        libc.renameat2(-100, one, -100, two, 2)
        libc.renameat2(-100, one, -100, two, 2)
"""


@dataclass
class Score:
    """What came of one verb."""

    tries: int = 0
    done: int = 0
    refused: int = 0
    leaks: int = 0
    example: str = ""


class Raced:
    """One verb on its own directories."""

    def __init__(self, base: Path, verb: str) -> None:
        self.verb, self.score = verb, Score()
        self.inside, self.outside = base / "root" / verb, base / "outside" / verb
        _venv(self.inside / "d")
        _venv(self.outside / "d")
        for path, text in ((self.inside, "inside"), (self.outside, WORD)):
            for name in ("f", "d/f", "d/g"):
                (path / name).write_text(text)
            (path / "d/planted" if path == self.outside else path / "mine").write_text(text)
        for name in ("d", "f"):
            (self.inside / f"to-{name}").symlink_to(f"../../outside/{verb}/{name}")
            (self.inside / f"to-{name}2").symlink_to(self.outside / name)
        self.before = _tree(self.outside)
        self.watch = Watch(self.outside)
        self.calls = self._calls()

    def _calls(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Calls whose paths lead over what is being swapped, over and over."""
        verb = self.verb
        for number in count():
            for path in (f"{verb}/d/f", f"{verb}/f"):
                match verb:
                    case "ls" | "cd":
                        yield verb, {"path": f"{verb}/d"}
                    case "read":
                        yield verb, {"path": path}
                    case "find":
                        yield verb, {"text": WORD, "path": path}
                        yield verb, {"text": WORD, "path": verb}
                    case "write" | "append":
                        yield verb, {"path": path, "content": "inside"}
                        yield verb, {"path": f"{verb}/d/new{number}", "content": "inside"}
                    case "replace":
                        yield verb, {"path": path, "old": "i", "new": "i"}
                        yield verb, {"path": path, "old": "t", "new": "t"}
                    case "mkdir":
                        yield verb, {"path": f"{verb}/d/n{number}/m"}
                    case "move" | "copy":
                        yield verb, {"source": path, "target": f"{verb}/took{number}"}
                        yield verb, {"source": f"{verb}/took{number}", "target": path}
                        yield verb, {"source": f"{verb}/mine", "target": f"{verb}/d/gave{number}"}
                        yield verb, {"source": f"{verb}/d/gave{number}", "target": f"{verb}/mine"}
                    case "rm":
                        yield "write", {"path": f"{verb}/d/g", "content": "inside"}
                        yield verb, {"path": f"{verb}/d/g"}
                    case _:
                        yield verb, {"venv_name": "d"}

    async def run(self, tool: SimpleCoder, until: float) -> None:
        """Call until the time is over, and look outside after every hundred calls."""
        cwd = self.verb if self.verb.endswith("_venv") else "."
        context = CallContext(SandboxSession(cwd=cwd, autonomous=True), "agent")
        while time.monotonic() < until:
            verb, args = next(self.calls)
            answer = await tool.call(verb, args, context)
            self._count(answer)
            if self.score.tries % 100 == 0:
                self._look()
        self._look()
        if _tree(self.outside) != self.before:
            self._leak("what lies outside was changed")
        self.watch.close()

    def _count(self, answer: ToolResult) -> None:
        score = self.score
        score.tries += 1
        score.done += answer.ok
        score.refused += not answer.ok
        told = json.dumps(dict(answer.data))
        if WORD in told or "planted" in told:
            self._leak(told)
        if answer.code is ErrorCode.INTERNAL and "try again" not in told:
            self._leak(f"not answered in order: {told}")

    def _look(self) -> None:
        if events := self.watch.events():
            self._leak(f"outside: {events[:4]}")

    def _leak(self, what: str) -> None:
        self.score.leaks += 1
        self.score.example = self.score.example or what[:200]


def _venv(path: Path) -> None:
    """A directory that passes for a virtual environment."""
    (path / "bin").mkdir(parents=True)
    (path / "bin/python").symlink_to(BASE_PYTHON)
    (path / "pyvenv.cfg").write_text(f"home = {BASE_PYTHON.parent}\n")


def _tree(top: Path) -> dict[str, str]:
    files = (path for path in top.rglob("*") if not path.is_symlink())
    return {str(path): path.read_text() if path.is_file() else "" for path in files}


def _naive(raced: Raced, root: Path, until: float) -> None:
    """Read as a careless tool would; on a busy machine until the swapper has won once."""
    while (now := time.monotonic()) < until or (not raced.score.leaks and now < until + PATIENCE_S):
        raced.score.tries += 1
        path = root / raced.verb / "d" / "f"
        try:
            if path.resolve().is_relative_to(root):
                raced.score.done += 1
                raced.score.leaks += path.read_text() == WORD
        except OSError:
            raced.score.refused += 1


async def race(base: Path, seconds: float) -> dict[str, Any]:
    """Every group of verbs, and the naive way, each for so many seconds."""
    (base / "root").mkdir()
    tool = SimpleCoder(base / "root", SandboxPolicy(wall_clock_s=3600, disk_entries=10**7, grace_s=0.1))
    if tool.tier not in (Tier.FULL, Tier.KERNEL):
        return {}
    found = {}
    for group in ((NAIVE,), *GROUPS):
        names = tuple(verb.replace(", ", "-") for verb in group)
        raced = [Raced(base, name) for name in names]
        context = CallContext(SandboxSession(), "agent")
        swapper = asyncio.create_task(
            tool.call("run", {"command": ["python", "-c", SWAPPER, *names]}, context)
        )
        mark = base / "root" / "swapping"
        while not mark.exists() and not swapper.done():
            await asyncio.sleep(0.01)
        until = time.monotonic() + seconds
        if group == (NAIVE,):
            await asyncio.to_thread(_naive, raced[0], base / "root", until)
        else:
            await asyncio.gather(*(one.run(tool, until) for one in raced))
        if swapper.done():
            raise RuntimeError(f"the swapper ended early: {swapper.result().data}")
        swapper.cancel()
        await asyncio.wait({swapper})
        mark.unlink()
        found |= {verb: asdict(one.score) for verb, one in zip(group, raced, strict=True)}
        for one in raced:
            shutil.rmtree(one.inside)
    tool.close()
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(race(Path(sys.argv[1]), float(sys.argv[2])))))
