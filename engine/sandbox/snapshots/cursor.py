"""A place in a directory tree, reached from the root without ever following a link.

Each step down is an `openat` of one name that refuses links, so a symlink swapper gains nothing, and no
path is ever put together for the kernel, so PATH_MAX does not matter. Only the nearest
ancestors are held open; the way up beyond them is `..`, taken only if it is the very directory that was
passed on the way down.

What a restoration does to the workspace, one name at a time.

Every function works on one name in a directory given by its descriptor and follows no link, so that it cannot
reach outside of the root. A new file is made under a passing name and takes the other's place in one step.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from engine.sandbox.paths import O_PATH
from engine.sandbox.snapshots.entry import escape
from engine.sandbox.snapshots.objects import ZEROS

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


_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OWNER = 0o700


def place_file(cursor: Cursor, name: str, chunks: Iterable[bytes], mode: int, mtime_ns: int) -> None:
    """Put a file at a name, over whatever stands there.

    Raises:
        OSError: the workspace refused; what stood there stands there still.
    """
    with _placed(cursor, name) as passing:
        descriptor = os.open(passing, _CREATE, 0o600, dir_fd=cursor.fd)
        try:
            size = 0
            for chunk in chunks:
                _write(descriptor, chunk)
                size += len(chunk)
            os.ftruncate(descriptor, size)
            os.fchmod(descriptor, mode)
            os.utime(descriptor, ns=(mtime_ns, mtime_ns))
        finally:
            os.close(descriptor)


def place_link(cursor: Cursor, name: str, target: str, mtime_ns: int) -> None:
    """Put a symbolic link at a name; otherwise as `place_file`."""
    with _placed(cursor, name) as passing:
        os.symlink(target, passing, dir_fd=cursor.fd)
        os.utime(passing, ns=(mtime_ns, mtime_ns), dir_fd=cursor.fd, follow_symlinks=False)


def place_fifo(cursor: Cursor, name: str, mode: int) -> None:
    """Put a named pipe at a name; otherwise as `place_file`."""
    with _placed(cursor, name) as passing:
        os.mkfifo(passing, 0o600, dir_fd=cursor.fd)
        change_mode(cursor.fd, passing, mode, stat.S_ISFIFO)


def change_mode(directory: int, name: str, mode: int, target: Callable[[int], bool]) -> None:
    """Set permission bits of what stands at a name, if it is what is wanted and has no other name.

    Raises:
        OSError: it is something else (EAGAIN), or the kernel refused.
    """
    descriptor = os.open(name, O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        status = os.fstat(descriptor)
        if not target(status.st_mode) or (status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode)):
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        # such a descriptor takes no fchmod, but stands for the very inode that was looked at
        os.chmod(f"/proc/self/fd/{descriptor}", mode)  # noqa: PTH101
    finally:
        os.close(descriptor)


def enter_to_change(cursor: Cursor, name: str) -> os.stat_result:
    """Step into a directory, made readable and writable for its owner if it is not.

    Returns:
        Its status before that.

    Raises:
        OSError: it is no directory, not ours, or of another file system.
    """
    before = os.stat(name, dir_fd=cursor.fd, follow_symlinks=False)
    device = os.fstat(cursor.fd).st_dev
    try:
        status = cursor.enter(name)
    except PermissionError:
        change_mode(cursor.fd, name, stat.S_IMODE(before.st_mode) | _OWNER, stat.S_ISDIR)
        status = cursor.enter(name)
    if status.st_dev != device:
        cursor.leave()
        raise OSError(errno.EXDEV, "it is another file system")
    try:
        unlock(cursor.fd, status)
    except OSError:
        cursor.leave()
        raise
    return before


def unlock(directory: int, status: os.stat_result) -> None:
    """Let the owner change a directory."""
    if status.st_mode & _OWNER != _OWNER:
        os.fchmod(directory, stat.S_IMODE(status.st_mode) | _OWNER)


def remove(cursor: Cursor, name: str, checkpoint: Callable[[], None]) -> None:
    """Remove what stands at a name, with all that is in it; nothing there is no error.

    Raises:
        OSError: something could not be removed; the cursor stands where it stood.
    """
    try:
        os.unlink(name, dir_fd=cursor.fd)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        # some systems say EPERM for a directory; what is a file with that answer fails again below
        if not stat.S_ISDIR(os.stat(name, dir_fd=cursor.fd, follow_symlinks=False).st_mode):
            raise
        _remove_directory(cursor, name, checkpoint)


def _remove_directory(cursor: Cursor, name: str, checkpoint: Callable[[], None]) -> None:
    start = cursor.depth
    enter_to_change(cursor, name)
    try:
        while cursor.depth > start:
            inner = _emptied(cursor.fd, checkpoint)
            if inner is not None:
                enter_to_change(cursor, inner)
                continue
            gone = cursor.name
            if not cursor.leave():
                raise OSError(errno.ESTALE, "directories were moved meanwhile")
            os.rmdir(gone, dir_fd=cursor.fd)
    finally:
        cursor.climb(start)


def _emptied(directory: int, checkpoint: Callable[[], None]) -> str | None:
    """Remove the files of a directory up to its first sub-directory, and answer that one's name."""
    with os.scandir(directory) as entries:
        for entry in entries:
            checkpoint()
            if entry.is_dir(follow_symlinks=False):
                return entry.name
            with suppress(FileNotFoundError):
                os.unlink(entry.name, dir_fd=directory)
    return None


@contextmanager
def _placed(cursor: Cursor, name: str) -> Iterator[str]:
    """A passing name; what the block makes there then takes the name's place."""
    passing = f".pilothouse-{secrets.token_hex(8)}"
    try:
        yield passing
        try:
            os.rename(passing, name, src_dir_fd=cursor.fd, dst_dir_fd=cursor.fd)
        except IsADirectoryError:
            remove(cursor, name, lambda: None)
            os.rename(passing, name, src_dir_fd=cursor.fd, dst_dir_fd=cursor.fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(passing, dir_fd=cursor.fd)
        raise


def _write(descriptor: int, chunk: bytes) -> None:
    """Write a piece; a whole one that is all zeros becomes a hole."""
    if chunk == ZEROS:
        os.lseek(descriptor, len(chunk), os.SEEK_CUR)
        return
    view = memoryview(chunk)
    while view:
        view = view[os.write(descriptor, view) :]
