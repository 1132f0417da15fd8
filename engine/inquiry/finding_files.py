"""Searching names and texts of the files in the sandbox, newest first, within bounds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from engine.inquiry.finding import Batch, Hit, Source, Tell, Wanted, around, holds
from engine.sandbox.files import SandboxFiles
from engine.sandbox.links import Names
from engine.sandbox.names import shown
from engine.sandbox.paths import PathError
from engine.sandbox.search import MAX_FILE_BYTES, MAX_FILES, walk

BATCH_FILES = 64
"""Files looked at before it is told again."""
LINES = 3
"""Lines of one file that are told."""


class FileSearch:
    """Looks through the files beneath a root, which are opened by directory descriptors only."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def __call__(self, what: Wanted, tell: Tell) -> None:
        """Tell what is found, files that were changed last first."""
        loop = asyncio.get_running_loop()
        stop = threading.Event()

        def told(batch: Batch) -> None:
            if not stop.is_set():
                loop.call_soon_threadsafe(pass_on, batch)

        def pass_on(batch: Batch) -> None:
            if not stop.is_set():
                tell(batch)

        try:
            await loop.run_in_executor(None, self._through, what, told, stop)
        except (OSError, PathError) as error:
            problem = error.message if isinstance(error, PathError) else str(error.strerror)
            tell(Batch(Source.FILE, done=True, problem=problem))
        finally:
            stop.set()

    def _through(self, what: Wanted, tell: Tell, stop: threading.Event) -> None:
        if not self._root.is_dir():
            tell(Batch(Source.FILE, done=True))
            return
        files = SandboxFiles(self._root)
        try:
            _look(files, what, tell, stop)
        finally:
            files.close()


def _look(files: SandboxFiles, what: Wanted, tell: Tell, stop: threading.Event) -> None:
    newest, more = _newest(files, stop)
    left = what.limit
    hits: list[Hit] = []
    names = files.names()
    for count, (changed, path) in enumerate(newest, 1):
        if stop.is_set():
            return
        for hit in _hits(files, what, changed, path, names):
            if not left:
                tell(Batch(Source.FILE, tuple(hits), count, done=True, more=True))
                return
            hits.append(hit)
            left -= 1
        if count % BATCH_FILES == 0:
            tell(Batch(Source.FILE, tuple(hits), count))
            hits = []
    tell(Batch(Source.FILE, tuple(hits), len(newest), done=True, more=more))


def _newest(files: SandboxFiles, stop: threading.Event) -> tuple[list[tuple[float, str]], bool]:
    """Regular files with the time of their change, and whether there are more than are looked at."""
    found: list[tuple[float, str]] = []
    for path, is_directory in walk(files):
        if stop.is_set():
            break
        if is_directory:
            continue
        if len(found) == MAX_FILES:
            return sorted(found, reverse=True), True
        try:
            status = files.entry(path)
        except PathError:
            continue
        if status is not None:
            found.append((status.st_mtime, path))
    return sorted(found, reverse=True), False


def _hits(files: SandboxFiles, what: Wanted, changed: float, path: str, names: Names) -> Iterator[Hit]:
    name, at = shown(path), _time(changed)
    if holds(name, what.words):
        yield Hit(Source.FILE, name, at, "", "name", name)
    try:
        content = files.read_bytes(path, MAX_FILE_BYTES, names)
    except PathError:
        return  # too large, not a plain file any more, or not ours to read
    if b"\0" in content[:8192]:
        return
    text = content.decode("utf-8", "replace")
    if not holds(text, what.words):
        return
    lines = text.splitlines()
    fitting = [place for place, line in enumerate(lines) if holds(line, what.words)][:LINES]
    # Where the words stand on lines of their own, the first of them is told.
    fitting = fitting or [place for place, line in enumerate(lines) if holds(line, what.words[:1])][:1]
    for number in fitting:
        line = around(lines[number].strip(), what.words)
        yield Hit(Source.FILE, f"{name}:{number + 1}", at, "", "text", line)


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    except (OverflowError, ValueError, OSError):
        return "1970-01-01T00:00:00.000000Z"
