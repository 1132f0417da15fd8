"""Freezing and thawing the processes of a command in every tier of this machine (steering §3 idea 8)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from engine.core.sandbox import TreeKind
from engine.sandbox.jail import Confinement, KernelJail, Launch, Unconfined
from engine.sandbox.jobs import Sessions
from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.process import Ended, Launcher, ProcessResult
from engine.sandbox.process_trees import ProcessTree
from engine.sandbox.programs import BASE_PYTHON, child_environment
from engine.sandbox.tier import best_jail
from tests.patience import PATIENCE_S

TIERS = ("FULL", "KERNEL", "PATHS")
LIMIT_S = 10.0
POLICY = SandboxPolicy(grace_s=0.2)
BUSY = """
import os, time
def write(name):
    while True:
        with open(name, "a") as file: file.write("x")
        time.sleep(0.001)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: write("daemon")
    os._exit(0)
if os.fork() == 0: write("child")
while not all(map(os.path.exists, ("daemon", "child"))): time.sleep(0.001)
print("up", flush=True)
while not os.path.exists("go"): time.sleep(0.001)
print("done", flush=True)
"""
"""A command with a child and a daemon that left its session, all of them busy with files."""


def here(tier: str) -> bool:
    """Whether this machine has the jail."""
    jail = best_jail(SandboxPolicy())
    return tier == "PATHS" or (isinstance(jail, KernelJail) and (tier == "KERNEL" or bool(jail.bwrap)))


def jail_of(tier: str) -> Confinement:
    jail = best_jail(SandboxPolicy())
    if not here(tier):
        pytest.skip(f"this machine has no jail {tier}")
    if not isinstance(jail, KernelJail) or tier == "PATHS":
        return Unconfined()
    return jail if tier == "FULL" else replace(jail, bwrap=None)


@asynccontextmanager
async def running(
    root: Path, tier: str, code: str, limit_s: float = 30.0
) -> AsyncIterator[tuple[Sessions, ProcessTree, asyncio.Task[ProcessResult]]]:
    """A command that says when it is up, in a tree of an agent `a`."""
    for private in (POLICY.home, POLICY.tmp):
        (root / private).mkdir(parents=True)
    trees, up = Sessions(), asyncio.Event()
    tree = trees.new_tree("a", TreeKind.CALL, "a1", "busy")
    argv = (str(BASE_PYTHON), "-c", code)
    cwd = os.open(root, os.O_RDONLY)
    run = asyncio.create_task(
        Launcher(root, POLICY).run(
            Launch(argv[0], argv, child_environment(root, POLICY, None)),
            cwd,
            jail=jail_of(tier),
            limit_s=limit_s,
            output=lambda _stream, _text: up.set(),
            tree=tree,
        )
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            await up.wait()
        yield trees, tree, run
    finally:
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        os.close(cwd)


def sizes(root: Path) -> tuple[int, ...]:
    return tuple((root / name).stat().st_size for name in ("daemon", "child"))


async def test_a_frozen_tree_does_nothing_and_its_time_stands_still(tmp_path: Path) -> None:
    """All tiers at once: it takes longer than the command may run."""
    await asyncio.gather(*(frozen_and_thawed(tmp_path / tier, tier) for tier in filter(here, TIERS)))


async def frozen_and_thawed(root: Path, tier: str) -> None:
    async with running(root, tier, BUSY, limit_s=LIMIT_S) as (trees, tree, run):
        trees.freeze("a")
        seen = await tree.look(PATIENCE_S)
        assert seen is not None
        assert (seen.alive, seen.going, seen.frozen) == (3, 0, True)
        before = sizes(root)
        await asyncio.sleep(LIMIT_S + 0.1)  # longer than the command may run
        assert sizes(root) == before
        assert not run.done()
        trees.thaw("a")
        seen = await tree.look(PATIENCE_S)
        assert seen is not None
        assert not seen.frozen
        (root / "go").touch()
        done = await run
    assert (done.ended, done.return_code, done.stdout) == (Ended.EXIT, 0, "up\ndone")
    assert done.duration_s < LIMIT_S
    assert tree.over.is_set()
    assert trees.processes("a") == []


@pytest.mark.parametrize("tier", TIERS)
async def test_what_is_frozen_can_be_killed_without_going_on(tmp_path: Path, tier: str) -> None:
    async with running(tmp_path, tier, BUSY) as (trees, tree, run):
        trees.freeze("a")
        assert (await tree.look(PATIENCE_S)) is not None
        before = sizes(tmp_path)
        run.cancel()
        await tree.ended()
        assert (tree.remaining, tree.last.alive) == (0, 3)
        assert sizes(tmp_path) == before


async def test_a_program_that_is_to_start_while_its_agent_is_frozen_waits(tmp_path: Path) -> None:
    for private in (POLICY.home, POLICY.tmp):
        (tmp_path / private).mkdir(parents=True)
    trees = Sessions()
    trees.freeze("a")
    tree = trees.new_tree("a", TreeKind.CALL, "a1", "touch")
    argv = (str(BASE_PYTHON), "-c", "open('made', 'w')")
    cwd = os.open(tmp_path, os.O_RDONLY)
    launch = Launch(argv[0], argv, child_environment(tmp_path, POLICY, None))
    run = asyncio.create_task(
        Launcher(tmp_path, POLICY).run(
            launch, cwd, jail=Unconfined(), limit_s=9, output=lambda *_: None, tree=tree
        )
    )
    await asyncio.wait({run}, timeout=0.2)
    assert not tree.running
    assert not (tmp_path / "made").exists()
    trees.thaw("a")
    assert (await run).return_code == 0
    assert (tmp_path / "made").exists()
    os.close(cwd)


async def test_what_had_stopped_itself_is_not_woken(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "if os.fork() == 0:\n os.kill(os.getpid(), signal.SIGSTOP); open('woken', 'w')\n os._exit(0)\n"
        "os.waitpid(-1, os.WUNTRACED); print('up', flush=True)\n"
        "import time\nwhile not os.path.exists('go'): time.sleep(0.001)"
    )
    async with running(tmp_path, "PATHS", code) as (trees, tree, run):
        trees.freeze("a")
        assert (await tree.look(PATIENCE_S)) is not None
        trees.thaw("a")
        seen = await tree.look(PATIENCE_S)
        assert seen is not None
        assert (seen.alive, seen.going) == (2, 1)
        (tmp_path / "go").touch()
        assert (await run).leftover == 1
    assert not (tmp_path / "woken").exists()


@pytest.mark.parametrize("tier", TIERS)
async def test_a_killed_cockpit_leaves_nothing_that_was_frozen(tmp_path: Path, tier: str) -> None:
    jail_of(tier)
    script = f"""
import asyncio
from pathlib import Path
from tests.engine.sandbox.test_freezing import BUSY, running
async def main():
    async with running(Path({str(tmp_path)!r}), {tier!r}, BUSY) as (trees, tree, run):
        trees.freeze("a")
        seen = await tree.look(100)
        print(seen.alive, seen.going, flush=True)
        await run
asyncio.run(main())
"""
    cockpit = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE
    )
    assert cockpit.stdout is not None
    assert await cockpit.stdout.readline() == b"3 0\n"
    assert len(alive(tmp_path)) == 3
    cockpit.send_signal(signal.SIGKILL)
    await cockpit.wait()
    async with asyncio.timeout(PATIENCE_S):
        while alive(tmp_path):
            await asyncio.sleep(0.01)


def alive(root: Path) -> list[int]:
    """Processes that work in the root."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if (entry / "cwd").readlink() == root:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
