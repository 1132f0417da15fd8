"""The files of a project: which there are, which are left out and why, and how they are read.

Symbolic links are never followed. Source: mindX spec §1.2 (basegen), §4.5 (paths that lead out).
"""

from __future__ import annotations

import os
import stat
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

SKIPPED = frozenset(
    {
        *("__pycache__", "node_modules", "venv", "env", "site-packages", "dist", "build", "htmlcov"),
        *(".git", ".hg", ".svn", ".venv", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache"),
        *(".hypothesis", ".pilothouse", ".home", ".tmp", ".idea", ".vscode", ".eggs", ".cache"),
    }
)
"""Directories that hold nothing which a person wrote."""
LARGEST = 1_000_000
"""Bytes of a file of source above which it is named and not read."""
MOST_FILES = 20_000


@dataclass(slots=True)
class LeftOut:
    """What was not looked at, counted by reason, with a few examples each."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, path: str) -> None:
        """One more."""
        self.counts[reason] += 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < 5:
            shown.append(path)

    def lines(self) -> list[str]:
        """One line for each reason."""
        return [
            f"{count} left out, {reason}: {', '.join(self.examples[reason])}{' …' * (count > 5)}"
            for reason, count in sorted(self.counts.items())
        ]


def is_skipped(name: str, directory: Path) -> bool:
    """Whether a directory of this name is passed over: hidden, a cache, or a virtual environment."""
    return name in SKIPPED or name.startswith(".") or name.endswith(".egg-info") or _is_venv(directory / name)


def _is_venv(directory: Path) -> bool:
    return (directory / "pyvenv.cfg").is_file()


def walk(top: Path, left: LeftOut, *, hidden: bool = False, most: int = MOST_FILES) -> Iterator[str]:
    """Regular files below a directory, in order of their names, relative to it with `/`.

    Args:
        top: where to begin.
        left: gets what was passed over.
        hidden: whether files whose names begin with a point are given, too.
        most: files after which it ends and says so.
    """
    given = 0
    for path, entry in _entries(top, "", left):
        if entry.is_symlink():
            left.add("a symbolic link", path)
        elif not entry.is_file(follow_symlinks=False):
            left.add("no regular file", path)
        elif entry.name.startswith(".") and not hidden:
            continue
        elif given >= most:
            left.add(f"more than {most:,} files", path)
            return
        else:
            given += 1
            yield path


def _entries(top: Path, below: str, left: LeftOut) -> Iterator[tuple[str, os.DirEntry[str]]]:
    try:
        with os.scandir(top / below) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        left.add(error.strerror or "unreadable", below or ".")
        return
    for entry in entries:
        path = f"{below}/{entry.name}" if below else entry.name
        if not entry.is_dir(follow_symlinks=False):
            yield path, entry
        elif not is_skipped(entry.name, top / below):
            yield from _entries(top, path, left)


def read_bytes(path: Path, most: int = LARGEST, *, beneath: Path | None = None) -> bytes:
    """A regular file's bytes, never through a link at its end and never from a pipe.

    Args:
        path: the file.
        most: its largest size in bytes.
        beneath: a directory, links resolved, that the file has to lie in once it is open; a directory that is
            swapped for a link meanwhile leads nowhere then.

    Raises:
        OSError: it cannot be read, is no regular file, is larger than `most`, or lies elsewhere.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path.name} is no regular file")
        if beneath is not None and not _lies_in(handle, beneath):
            raise OSError(f"{path.name} leads out of the tree")
        if status.st_size > most:
            raise OSError(f"{path.name} has {status.st_size:,} bytes, more than {most:,}")
        return file.read(most)


def _lies_in(handle: int, directory: Path) -> bool:
    try:
        place = Path(f"/proc/self/fd/{handle}").readlink()
    except FileNotFoundError:  # a system without /proc
        return True
    return place.is_relative_to(directory)


def read_source(path: Path, most: int = LARGEST, *, beneath: Path | None = None) -> str:
    """The text of a file of Python, by the encoding that it declares.

    Raises:
        OSError: see `read_bytes`.
        ValueError: its bytes are not of that encoding; the message says so.
    """
    data = read_bytes(path, most, beneath=beneath)
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
        return data.decode(encoding).replace("\r\n", "\n")
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise ValueError(f"its text cannot be read: {error}") from error
