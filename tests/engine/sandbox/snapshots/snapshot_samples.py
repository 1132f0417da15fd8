"""Workspaces for the tests of snapshots, looked at by plain means that owe nothing to the code under test."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from engine.sandbox.snapshots.entry import SnapshotError, SnapshotInfo
from engine.sandbox.snapshots.tree import entries_below
from engine.sandbox.snapshots.workspace import Snapshots
from tests.patience import PATIENCE_S

TOP = Path(__file__).parents[4]
FREE_UID = 54_321


def picture(root: Path) -> dict[bytes, tuple[object, ...]]:
    """Every name below the root with its kind, mode and content."""
    found: dict[bytes, tuple[object, ...]] = {b".": (stat.S_IMODE(os.lstat(root).st_mode),)}
    waiting = [os.fsencode(root)]
    top = len(os.fsencode(root)) + 1
    while waiting:
        directory = waiting.pop()
        for name in os.listdir(directory):
            path = directory + b"/" + name
            status = os.lstat(path)
            mode = stat.S_IMODE(status.st_mode)
            if stat.S_ISDIR(status.st_mode):
                waiting.append(path)
                found[path[top:]] = ("dir", mode)
            elif stat.S_ISLNK(status.st_mode):
                found[path[top:]] = ("link", os.readlink(path))
            elif stat.S_ISREG(status.st_mode):
                found[path[top:]] = ("file", mode, Path(os.fsdecode(path)).read_bytes())
            else:
                found[path[top:]] = ("special", stat.S_IFMT(status.st_mode), mode)
    return found


def kept(snapshots: Snapshots) -> list[SnapshotInfo]:
    """All snapshots, oldest first."""
    records = [snapshots._store.read(name) for name in snapshots._store.names().values()]
    return [record.info for record in reversed(records) if record is not None]


def forget(snapshots: Snapshots, *ids: str) -> None:
    """Remove the records of snapshots."""
    snapshots._store.forget(ids)


def limit_store(snapshots: Snapshots, size: int) -> Snapshots:
    """The same with so much room for objects."""
    snapshots.policy = replace(snapshots.policy, store_bytes=size)
    return snapshots


def is_whole(snapshots: Snapshots, snapshot: str) -> bool:
    """Whether all that a snapshot names is there and holds what it held."""
    store = snapshots._store
    try:
        store.times(store.record(snapshot).times)
        for _, entry in entries_below(store.manifest(snapshot).tree, store.tree):
            if entry.digest:
                store.objects.read(entry.digest)
    except SnapshotError:
        return False
    return True


async def is_back(snapshots: Snapshots, snapshot: str) -> bool:
    """Whether the workspace is that of the snapshot once it was restored."""
    done = await snapshots.restore(snapshot)
    return done.verified and (await snapshots.take()).id == snapshot


def bytes_read() -> int:
    """What this process has read through system calls so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


def age(root: Path) -> None:
    """Wait until nothing below the root changed so lately that its times prove nothing.

    The clock of the file system is asked, by making files until one is younger enough.
    """
    newest = max(os.lstat(path).st_ctime_ns for path in [root, *root.rglob("*")])
    with tempfile.TemporaryDirectory(dir=root.parent) as directory:
        probe = Path(directory, "probe")
        while True:
            probe.write_bytes(b"x")
            if probe.stat().st_ctime_ns > newest + 150_000_000:
                return


@contextmanager
def ordinary_user_directory() -> Iterator[Path]:
    """A directory that belongs to an ordinary user."""
    directory = Path(tempfile.mkdtemp(prefix="pilothouse-test-"))
    try:
        os.chown(directory, FREE_UID, FREE_UID)
        directory.chmod(0o755)
        yield directory
    finally:
        for path, _, _ in os.walk(directory):
            os.chmod(path, 0o700)
        shutil.rmtree(directory)


_AS_USER = """
import asyncio, os, sys
from pathlib import Path
from engine.sandbox.snapshots.workspace import Snapshots
from engine.sandbox.snapshots.walk import SnapshotPolicy
from engine.sandbox.snapshots.store import _records
from tests.engine.sandbox.snapshots.snapshot_samples import is_back, kept
async def main():
{body}
async def nothing(): await asyncio.to_thread(_records)  # and all that this imports, while it can be read
asyncio.run(nothing())
here = Path(sys.argv[1])
if {drop} and os.getuid() == 0:
    os.setgroups([])
    os.setresgid({uid}, {uid}, {uid})
    os.setresuid({uid}, {uid}, {uid})
os.umask(0o022)
asyncio.run(main())
"""


def run_as_user(directory: Path, body: str, *, drop: bool = True) -> str:
    """What a program prints that an ordinary user runs; `here` is the directory.

    It begins as the user of the tests, whose interpreter others may not be able to reach.
    """
    lines = "\n".join("    " + line for line in body.strip().splitlines())
    script = _AS_USER.format(body=lines, uid=FREE_UID, drop=drop)
    done = subprocess.run(
        [sys.executable, "-c", script, str(directory)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TOP)},
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def deep_tree(
    root: Path, levels: int, name: str = "d" * 100, visit: Callable[[int], None] | None = None
) -> None:
    """Directories in directories, made by descriptors because no path could name them."""
    here = os.open(root, os.O_RDONLY)
    for level in range(levels):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
        if visit is not None and level == levels - 1:
            visit(here)
    os.close(here)


def remove_deep_tree(root: Path) -> None:
    """Remove what `shutil.rmtree` dies of."""
    subprocess.run(["rm", "-rf", str(root)], check=True)
