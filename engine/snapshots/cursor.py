"""A place in a directory tree, reached from the root without ever following a link.

Each step down is an `openat` of one name that refuses links, so a symlink swapper gains nothing (sandbox
spec §3.3), and no path is ever put together for the kernel, so PATH_MAX does not matter. Only the nearest
ancestors are held open; the way up beyond them is `..`, taken only if it is the very directory that was
passed on the way down.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

from engine.snapshots.entry import escape

HELD = 48
"""Open ancestors; with the few others a walk needs, far below any limit on open files."""
OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class _Place:
    name: str
    key: tuple[int, int]
    descriptor: int | None


class Cursor:
    """A directory beneath a root; the caller keeps the root's descriptor open."""

    def __init__(self, root: int) -> None:
        status = os.fstat(root)
        self._places = [_Place("", (status.st_dev, status.st_ino), os.dup(root))]

    @property
    def fd(self) -> int:
        """Descriptor of the directory. Raises OSError (ESTALE) where `leave` could not come back to."""
        descriptor = self._places[-1].descriptor
        if descriptor is None:
            raise OSError(errno.ESTALE, "directories were moved meanwhile")
        return descriptor

    @property
    def depth(self) -> int:
        """Levels below the root."""
        return len(self._places) - 1

    @property
    def name(self) -> str:
        """Name of the directory, empty for the root."""
        return self._places[-1].name

    def path(self, name: str = "") -> str:
        """Escaped path of the directory, or of a name in it; `.` for the root."""
        names = [place.name for place in self._places[1:]]
        if name:
            names.append(name)
        return "/".join(map(escape, names)) or "."

    def enter(self, name: str) -> os.stat_result:
        """Step down into a directory and answer its status.

        Raises:
            OSError: it is gone, no directory (a link is none) or not readable; the cursor stays.
        """
        descriptor = os.open(name, OPEN_DIRECTORY, dir_fd=self.fd)
        try:
            status = os.fstat(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        self._places.append(_Place(name, (status.st_dev, status.st_ino), descriptor))
        if self.depth > HELD:
            self._let_go(self._places[-1 - HELD])
        return status

    def leave(self) -> bool:
        """Step up; False when the parent cannot be reached any more because directories were moved.

        After False only further steps up make sense; the root can always be reached.
        """
        place = self._places.pop()
        parent = self._places[-1]
        try:
            if parent.descriptor is None and place.descriptor is not None:
                parent.descriptor = _parent_of(place.descriptor, parent.key)
        finally:
            self._let_go(place)
        return parent.descriptor is not None

    def climb(self, depth: int) -> bool:
        """Step up to a depth; as `leave`."""
        reached = True
        while self.depth > depth:
            reached = self.leave()
        return reached

    def close(self) -> None:
        """Let go of all descriptors."""
        for place in self._places:
            self._let_go(place)

    @staticmethod
    def _let_go(place: _Place) -> None:
        if place.descriptor is not None:
            os.close(place.descriptor)
            place.descriptor = None


def _parent_of(directory: int, key: tuple[int, int]) -> int | None:
    try:
        descriptor = os.open("..", OPEN_DIRECTORY, dir_fd=directory)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if (status.st_dev, status.st_ino) == key:
        return descriptor
    os.close(descriptor)
    return None
