"""Searching the text files beneath a directory of the sandbox.

Files beneath a sandbox root that another place shares.

Opened for writing by a program, a file with a hard link outside of the root changes there too, and no jail
can hold that: the file is in the root. It comes of roots that were filled by links, as `git clone --local`
and some installers do.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator

from engine.core.actions import ErrorCode
from engine.sandbox.files import SandboxFiles
from engine.sandbox.paths import PathError, SharedFileError, name_text
from engine.value import dataclass, field

SKIPPED = frozenset({".git", ".venv", "__pycache__", "node_modules"})
MAX_MATCHES = 200
MAX_FILES = 20_000
MAX_DEPTH = 64
MAX_FILE_BYTES = 2 * 1024 * 1024
MAX_LINE = 240


@dataclass(frozen=True, slots=True)
class Matches:
    """Lines that hold a text."""

    lines: tuple[tuple[str, int, str], ...]
    """Path relative to the root, line number from 1, and the line, in path order."""
    truncated: bool
    """True when there is more than the limits let through."""
    shared: int = 0
    """Files that were left out as another place may share them."""


def search(files: SandboxFiles, text: str, path: str) -> Matches:
    """Lines of text files that hold the text exactly; binaries, links and build folders are skipped."""
    results: list[tuple[str, int, str]] = []
    status = files.entry(path) if path != "." else None
    if path != "." and status is None:
        raise PathError(ErrorCode.NOT_FOUND, f"{path!r} does not exist")
    single = status is not None and stat.S_ISREG(status.st_mode)
    below = (name for name, is_directory in walk(files, path) if not is_directory)
    shared = 0
    for count, name in enumerate([path] if single else below):
        if count >= MAX_FILES:
            return Matches(tuple(results), truncated=True, shared=shared)
        try:
            lines = _matching_lines(files, name, text)
        except SharedFileError:
            if single:
                raise
            shared += 1
            continue
        for number, line in lines:
            if len(results) == MAX_MATCHES:
                return Matches(tuple(results), truncated=True, shared=shared)
            shown = line.strip() if len(line) <= MAX_LINE else line.strip()[:MAX_LINE] + "…"
            results.append((name, number, shown))
    return Matches(tuple(results), truncated=False, shared=shared)


def walk(files: SandboxFiles, start: str = ".") -> Iterator[tuple[str, bool]]:
    """Regular files and directories (True) below a directory, breadth first and sorted.

    Links, build folders and virtual environments are skipped; trees may be deeper than the stack.

    Raises:
        PathError: the directory to start from cannot be read.
    """
    waiting = deque([(start, 0)])
    while waiting:
        path, depth = waiting.popleft()
        try:
            children = _children(files, path)
        except PathError:
            if path == start:
                raise
            continue  # it went away, or is not ours to read
        for name, is_directory in children:
            child = name if path == "." else f"{path}/{name}"
            yield child, is_directory
            if is_directory and depth < MAX_DEPTH:
                waiting.append((child, depth + 1))


def _children(files: SandboxFiles, path: str) -> list[tuple[str, bool]]:
    """Names of regular files and directories (True) worth searching, sorted; none in a venv."""
    hidden = files.policy.hidden if path == "." else frozenset()
    with files.directory(path) as directory, os.scandir(directory) as scan:
        children = sorted(
            (entry.name, entry.is_dir(follow_symlinks=False))
            for entry in scan
            if not entry.is_symlink() and entry.name not in hidden and entry.name not in SKIPPED
        )
    if any(name == "pyvenv.cfg" for name, _ in children):
        return []
    return children


def _matching_lines(files: SandboxFiles, path: str, text: str) -> Iterator[tuple[int, str]]:
    """Numbers and lines that hold the text.

    Raises:
        SharedFileError: another place may share the file.
    """
    try:
        content = files.read_bytes(path, MAX_FILE_BYTES)
    except SharedFileError:
        raise
    except PathError:
        return iter(())
    if b"\0" in content[:8192] or text.encode() not in content:
        return iter(())
    lines = enumerate(content.decode("utf-8", "replace").splitlines(), 1)
    return ((number, line) for number, line in lines if text in line)


EXAMPLES = 3


@dataclass
class SharedFiles:
    """What of a root may not be the root's alone."""

    count: int = 0
    """Files that have several names."""
    examples: list[str] = field(default_factory=list)
    """Paths of the first few, relative to the root, as text; see `engine.sandbox.paths`."""
    whole: bool = True
    """Whether all of the root was looked at, as far as the policy's limits on its size go."""


def shared_files(files: SandboxFiles) -> SharedFiles:
    """Files with several names, of which some may lie outside of the root; blocking."""
    shared: dict[tuple[int, int], str] = {}
    report, left = SharedFiles(), files.policy.disk_entries
    waiting = [(".", 0)]
    while waiting and left > 0:
        path, depth = waiting.pop()
        try:
            with files.directory(path) as directory, os.scandir(directory) as entries:
                below = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
        except (OSError, PathError):
            report.whole = False  # it went away, or is not ours to read
            continue
        left -= len(below)
        for name, status in below:
            child = name if path == "." else f"{path}/{name}"
            if stat.S_ISDIR(status.st_mode) and depth < files.policy.disk_depth:
                waiting.append((child, depth + 1))
            elif stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                key = (status.st_dev, status.st_ino)
                shared[key] = min(shared.get(key, child), child)
    report.count, report.examples = (
        len(shared),
        [name_text(path) for path in sorted(shared.values())[:EXAMPLES]],
    )
    report.whole = report.whole and not waiting
    return report
