"""Watching a directory of data files that may not exist yet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from pathlib import Path

BEGIN_AFTER_S = 0.3
"""How long after it was asked for a watch begins."""
Fingerprint = tuple[tuple[str, int, int, int], ...]
"""Name, inode, time and size of each file, so that any change shows."""


async def watch_directory(directory: Path, look: Callable[[], Awaitable[None]], stop: asyncio.Event) -> None:
    """Call `look` whenever something in the directory may have changed, until `stop` is set.

    It is called soon after a change and about every 400 ms besides, so it should compare first and
    cost little when nothing changed. The directory may appear, vanish and appear again. The watch begins
    after `BEGIN_AFTER_S`, as loading it would keep the first screen waiting; what came before shows then.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(BEGIN_AFTER_S):
            await stop.wait()
            return
    # Imported here: what never watches should not pay for it.
    from watchfiles import awatch
    from watchfiles._rust_notify import WatchfilesRustInternalError

    polling = False
    while not stop.is_set():
        target = await asyncio.to_thread(_nearest_directory, directory)
        changes = awatch(
            target,
            recursive=False,
            watch_filter=None,
            stop_event=stop,
            debounce=200,
            step=50,
            rust_timeout=400,
            yield_on_timeout=True,
            force_polling=polling,
        )
        try:
            async with aclosing(changes):
                # Besides changes there is a tick every 400 ms: what happened while the watch was
                # being set up, or in a directory that replaced the watched one, is found by it.
                async for _ in changes:
                    await look()
                    if await asyncio.to_thread(_nearest_directory, directory) != target:
                        break
        except (OSError, WatchfilesRustInternalError):
            # The system has no watch to give (limit reached, network file system): poll instead.
            polling = True


def toml_files(directory: Path) -> list[Path]:
    """The TOML files of a directory by name.

    Raises:
        OSError: it is missing or cannot be read.
    """
    return sorted(path for path in directory.iterdir() if path.name.endswith(".toml"))


def fingerprint(directory: Path) -> Fingerprint:
    """What the TOML files of a directory look like from outside; empty for a missing one. Blocking."""
    try:
        paths = toml_files(directory)
    except OSError:
        return ()
    entries = []
    for path in paths:
        try:
            stat = path.stat()
        except OSError:
            entries.append((path.name, 0, 0, 0))
        else:
            entries.append((path.name, stat.st_ino, stat.st_mtime_ns, stat.st_size))
    return tuple(entries)


def _nearest_directory(path: Path) -> Path:
    """The directory itself, or the nearest one above it that exists."""
    while not path.is_dir() and path != path.parent:
        path = path.parent
    return path
