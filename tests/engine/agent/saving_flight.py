"""Saving the workspace in flight: made slow, made impossible, and seen at work."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from engine_flight import PATIENCE_S, Flight, act

from engine.sandbox.snapshots.workspace import Snapshots

WRITE = act("write", path="made", content="1")


def store_of(flight: Flight) -> Path:
    return flight.workspace / ".pilothouse" / "snapshots"


def snapshots_of(flight: Flight) -> Snapshots:
    assert flight.engine.time_travel.main is not None
    return flight.engine.time_travel.main.snapshots


@asynccontextmanager
async def slow(flight: Flight) -> AsyncIterator[None]:
    """Saving waits its turn, as when another agent's save takes long."""
    async with snapshots_of(flight)._busy:
        yield


@contextmanager
def broken_store(flight: Flight) -> Iterator[None]:
    store_of(flight).write_text("in the way")
    yield
    store_of(flight).unlink()


def picture(root: Path) -> dict[str, tuple[int, bytes | str]]:
    """Every name with its mode and content, without what the sandbox keeps for its programs."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if not name.startswith((".home", ".tmp")):
            content = "" if path.is_dir() else os.readlink(path) if path.is_symlink() else path.read_bytes()
            found[name] = (path.lstat().st_mode, content)
    return found


def make_large(flight: Flight, files: int = 4_000) -> None:
    """A tree that takes long to be saved for the first time."""
    (flight.sandbox / "large").mkdir()
    for number in range(files):
        (flight.sandbox / "large" / str(number)).write_text(f"content {number}")


async def until_reading(flight: Flight) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not (store_of(flight) / "passing").is_dir() or not os.listdir(store_of(flight) / "passing"):
            await asyncio.sleep(0)
