"""The names that files have: whether all names of one lie beneath the sandbox root.

A hard link beneath the root to a file of another place cannot be told from the root's own files by its name
or its content, only by counting: the kernel says how many names a file has, and a walk finds those beneath
the root. A name that is moved about meanwhile could be found twice; that changes the file's status, so only
files whose status is older than the walk count as found. Source: mindX spec §7 item 50, sandbox spec §3.3.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from engine.domain.action import ErrorCode
from engine.sandbox.names import shown
from engine.sandbox.paths import PathError

STEADY_S = 0.05
"""How much older than the walk a file's status is to be; the clock of file systems goes in steps."""
STEADY_COARSE_S = 2.1
"""The same where it goes in whole seconds."""

OpenDirectory = Callable[[str], AbstractContextManager[int]]
"""Opens a directory by its path relative to the root, beneath the root."""
_Identity = tuple[int, int]
_Name = tuple[_Identity, str]


class SharedFileError(PathError):
    """A file has names that were not found beneath the root."""

    def __init__(self, path: str, links: int) -> None:
        super().__init__(
            ErrorCode.NOT_ALLOWED,
            f"'{shown(path)}' has {links} names (hard links), and not all of them were found beneath the "
            "sandbox root, so it may belong to another place; have the operator put a copy of it here.",
        )


class Names:
    """The names of what lies beneath a root, found as far as they are needed and kept for one call.

    Args:
        directory: opens directories of the root.
        entries: how many names are looked at, at most.
        depth: how many levels of directories are looked into.
    """

    def __init__(self, directory: OpenDirectory, *, entries: int, depth: int) -> None:
        self._directory = directory
        self._left, self._depth = entries, depth
        self._found: dict[_Identity, dict[_Name, str]] = {}
        self._links: dict[_Identity, int] = {}
        self.whole = True
        """Whether all was looked at, as far as the walk has come."""
        self._began_ns = time.time_ns()
        self._walk = self._names()

    def hold_all_of(self, look: Callable[[], os.stat_result]) -> bool:
        """Whether every name of a regular file lies beneath the root; False where that cannot be shown.

        Args:
            look: gives the file's status as it is now.
        """
        status = look()
        identity = (status.st_dev, status.st_ino)
        while len(self._found.get(identity, ())) < status.st_nlink:
            if next(self._walk, None) is None:
                return False
        now = look()
        same = (now.st_dev, now.st_ino, now.st_nlink) == (*identity, status.st_nlink)
        coarse = now.st_ctime_ns % 1_000_000_000 == 0
        steady_ns = round((STEADY_COARSE_S if coarse else STEADY_S) * 1e9)
        return same and now.st_ctime_ns + steady_ns < self._began_ns

    def shared(self) -> list[str]:
        """A path of each file that has more names than were found beneath the root, sorted."""
        for _ in self._walk:
            pass
        return sorted(
            min(names.values())
            for identity, names in self._found.items()
            if len(names) < self._links[identity]
        )

    def _names(self) -> Iterator[str]:
        """Go over the root; files with several names are noted by the directory that each stands in."""
        waiting = [(".", 0)]
        while waiting:
            path, depth = waiting.pop()
            if self._left <= 0:
                self.whole = False
                return
            try:
                with self._directory(path) as directory, os.scandir(directory) as entries:
                    here = os.fstat(directory)
                    below = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
            except (OSError, PathError):
                self.whole = False  # it went away, or is not ours to read
                continue
            for name, status in below:
                self._left -= 1
                child = name if path == "." else f"{path}/{name}"
                if stat.S_ISDIR(status.st_mode) and depth < self._depth:
                    waiting.append((child, depth + 1))
                elif stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                    # One directory may be seen under two paths, where it is mounted twice.
                    standing, identity = ((here.st_dev, here.st_ino), name), (status.st_dev, status.st_ino)
                    self._found.setdefault(identity, {})[standing] = child
                    self._links[identity] = status.st_nlink
            yield path
