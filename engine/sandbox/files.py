"""File operations beneath a sandbox root.

Every method takes a path relative to the root, as `SandboxFiles.relative` gives it, opens the parent
directory beneath the root and works on the one name in it. Blocking; callers use a thread.

What a write would destroy: the text of a file that is there and would not be any more.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import stat
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from copy import copy
from pathlib import Path

from engine.core.actions import ErrorCode
from engine.sandbox.paths import (
    Opener,
    PathError,
    SharedFileError,
    best_opener,
    name_text,
    refusal,
    relative_path,
)
from engine.sandbox.policy import SandboxPolicy, size_text
from engine.sandbox.snapshots.cursor import Cursor
from engine.sandbox.snapshots.cursor import remove as remove_entry
from engine.value import dataclass

SANDBOX_DIRECTORY = "sandbox"
"""Where agents work, below the workspace; what steers them (journal, recipes) lies outside of it."""
FORKS_DIRECTORY = "forks"
"""Where forks of agents have files of their own, below the workspace."""
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_TRIES = 16
"""How often a private directory is made anew while a program replaces it."""
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Listing:
    """Names in a directory."""

    items: tuple[str, ...]
    """Sorted, as `engine.sandbox.paths` shows them; directories end in `/`."""
    total: int
    """How many there are, before the limit."""


def remove_directory(folder: Path) -> None:
    """Take a directory away, read-only parts as well; one that is not there is no matter. Blocking."""
    if folder.is_symlink():
        folder.unlink()
        return
    for path, directories, _ in os.walk(folder):
        for name in (".", *directories):
            with suppress(OSError):
                if not Path(path, name).is_symlink():  # whose target is somebody else's
                    os.chmod(Path(path, name), 0o700)  # noqa: PTH101
    shutil.rmtree(folder, ignore_errors=True)


def make_root(path: Path) -> None:
    """Make the directory of a sandbox and its parents; one that exists is fine.

    Raises:
        PathError: says what stands in the way, and what to do.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "there is a file of that name" if error.errno == errno.EEXIST else error.strerror
        if path.is_symlink():
            why = f"it is a symbolic link to {str(path.readlink())!r}, which is no directory"
        message = (
            f"{str(path)!r} cannot be made: {why}. Remove what is in the way, or choose another workspace."
        )
        raise PathError(ErrorCode.PERMISSION, message) from error


class SandboxFiles:
    """The files beneath one root; the root's descriptor is held for life.

    Raises:
        PathError: from the constructor, when the root is no directory or is `/`; from each method,
            when the operation was not done.
    """

    def __init__(self, root: Path, policy: SandboxPolicy | None = None, opener: Opener | None = None) -> None:
        self.policy = policy or SandboxPolicy()
        if root.is_symlink():
            message = (
                f"{str(root)!r} is a symbolic link to {str(root.readlink())!r}; name the directory itself."
            )
            raise PathError(ErrorCode.NOT_ALLOWED, message)
        self.root = Path(os.path.realpath(root))
        if self.root == Path("/"):
            raise PathError(ErrorCode.NOT_ALLOWED, "The sandbox root must not be '/'; choose a directory.")
        try:
            self._root = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise refusal(error, str(root)) from error
        self._close = weakref.finalize(self, os.close, self._root)
        self._opener = opener or best_opener(self._root)

    def close(self) -> None:
        """Let go of the root's descriptor; harmless when done twice."""
        self._close()

    def under(self, policy: SandboxPolicy) -> SandboxFiles:
        """The same root, by the same descriptor, under another policy; of use until this one is closed."""
        other = copy(self)
        other.policy = policy
        return other

    def check_root(self) -> None:
        """Refuse when another directory, or none, is where the root was when it was opened.

        What was opened stays held, so nothing leads elsewhere; but a program would be started by the path.
        """
        held = os.fstat(self._root)
        try:
            there = self.root.lstat()
        except OSError:
            there = None
        if there is None or not os.path.samestat(held, there):
            message = (
                f"The sandbox root {str(self.root)!r} was moved, replaced or deleted while it was in use. "
                "Put it back, or close the workspace and open it again."
            )
            raise PathError(ErrorCode.PERMISSION, message)

    def relative(self, path: str, cwd: str = ".") -> str:
        """The path relative to the root; refuses what leaves the root and the protected names."""
        relative = relative_path(str(self.root), cwd, path)
        first = relative.split("/", 1)[0].casefold()
        if first in self.policy.protected:
            raise PathError(ErrorCode.NOT_ALLOWED, f"{path!r} belongs to Pilothouse itself; leave it alone.")
        return relative

    @contextmanager
    def opened(self, path: str, flags: int) -> Iterator[int]:
        """A descriptor of what is at the path, closed afterwards."""
        try:
            descriptor = self._opener.open(self._root, path, flags)
        except OSError as error:
            raise refusal(error, path) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def directory(self, path: str) -> Iterator[int]:
        """A descriptor of a directory."""
        with self.opened(path, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            yield descriptor

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """The parent's descriptor and the last name; OSErrors inside become refusals of the path."""
        if path == ".":
            raise PathError(ErrorCode.NOT_ALLOWED, "This is not possible for the sandbox root itself.")
        head, _, name = path.rpartition("/")
        with self.directory(head or ".") as parent:
            try:
                yield parent, name
            except OSError as error:
                raise refusal(error, path) from error

    def entry(self, path: str) -> os.stat_result | None:
        """The status of the name itself, links not followed; None when there is none."""
        try:
            with self._parent(path) as (parent, name):
                return os.stat(name, dir_fd=parent, follow_symlinks=False)
        except PathError as refused:
            if refused.code is ErrorCode.NOT_FOUND:
                return None
            raise

    def list(self, path: str) -> Listing:
        """The names in a directory."""
        hidden = self.policy.hidden if path == "." else frozenset()
        items: list[str] = []
        with self.directory(path) as directory, os.scandir(directory) as entries:
            for entry in entries:
                if entry.name in hidden:
                    continue
                is_directory = entry.is_dir(follow_symlinks=False) or (
                    entry.is_symlink() and self._leads_to_directory(path, entry.name)
                )
                items.append(name_text(entry.name) + "/" if is_directory else name_text(entry.name))
        items.sort()
        return Listing(tuple(items[: self.policy.list_entries]), len(items))

    def _leads_to_directory(self, path: str, name: str) -> bool:
        """Whether a link stays beneath the root and ends at a directory."""
        try:
            with self.directory(f"{path}/{name}"):
                return True
        except PathError:
            return False

    def read(self, path: str) -> str:
        """The text of a file, which must be UTF-8 and within the read limit."""
        data = self.read_bytes(path, self.policy.read_bytes)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = data[error.start]
            message = f"{path!r} is not UTF-8 text: byte 0x{byte:02x} at offset {error.start:,}."
            raise PathError(ErrorCode.NOT_TEXT, message) from None

    def read_bytes(self, path: str, limit: int) -> bytes:
        """The bytes of a regular file of the root's own; refuses more than the limit without reading them."""
        with self.opened(path, _READ) as descriptor:
            status = os.fstat(descriptor)
            _require_regular(status, path)
            _refuse_shared(status, path)
            if status.st_size > limit:
                raise _too_large(path, status.st_size, limit)
            chunks: list[bytes] = []
            left = limit + 1
            while left > 0 and (chunk := os.read(descriptor, min(left, 1 << 20))):
                chunks.append(chunk)
                left -= len(chunk)
            if left <= 0:  # it grew while it was read
                raise _too_large(path, limit + 1, limit)
            return b"".join(chunks)

    def write(self, path: str, data: bytes) -> None:
        """Put a file in place at once, whole or not at all; parents are made, the mode is kept.

        A link is refused rather than followed or replaced, and so is a file with a second hard link,
        which may be somebody else's outside of the root.
        """
        self.check_size(path, len(data))
        head = path.rpartition("/")[0]
        if head:
            self.make_directory(head)
        with self._parent(path) as (parent, name):
            mode = _replaceable_mode(parent, name, path)
            self._put(parent, name, data, mode)

    def check_size(self, path: str, size: int) -> None:
        """Refuse what would be too large to write, before it is put together."""
        if size > self.policy.write_bytes:
            raise _too_large_to_write(path, size, self.policy.write_bytes)

    def _put(self, parent: int, name: str, data: bytes, mode: int | None) -> None:
        """Write under a passing name, then rename."""
        passing = f".pilothouse-{secrets.token_hex(8)}.tmp"
        descriptor = os.open(passing, _CREATE, 0o666, dir_fd=parent)
        try:
            try:
                if mode is not None:
                    os.fchmod(descriptor, mode)
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.rename(passing, name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError:
            os.unlink(passing, dir_fd=parent)
            raise

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; one that exists is fine."""
        if path == ".":
            return
        done = ""
        for part in path.split("/"):
            done = f"{done}/{part}" if done else part
            with self._parent(done) as (parent, name):
                try:
                    os.mkdir(name, 0o777, dir_fd=parent)
                except FileExistsError:
                    continue
        with self.directory(path):
            """What was there already must be a directory beneath the root."""

    def private_directory(self, name: str) -> None:
        """Make a directory at the root that only its owner uses, whatever programs have put in its place.

        A link there is removed, a file gets another name, and a directory that lost its permissions gets
        them back; it is opened by descriptor and no link is followed.
        """
        flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
        for _ in range(_TRIES):
            try:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=self._root)
                descriptor = os.open(name, flags, dir_fd=self._root)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise refusal(error, name) from error
            try:
                status = os.fstat(descriptor)
                if stat.S_ISDIR(status.st_mode):
                    if stat.S_IMODE(status.st_mode) & 0o7777 != 0o700:
                        # By its number here: a name could be another directory by now.
                        os.chmod(f"/proc/self/fd/{descriptor}", 0o700)  # noqa: PTH101
                    return
                if stat.S_ISREG(status.st_mode):
                    aside = f"{name}.aside-{secrets.token_hex(4)}"
                    os.rename(name, aside, src_dir_fd=self._root, dst_dir_fd=self._root)
                else:
                    os.unlink(name, dir_fd=self._root)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise refusal(error, name) from error
            finally:
                os.close(descriptor)
        raise PathError(
            ErrorCode.WRONG_TYPE, f"{name!r} is replaced again and again; end the program that does it."
        )

    def remove(self, path: str) -> None:
        """Remove one file or link; a directory is refused, a link's target is left alone."""
        with self._parent(path) as (parent, name):
            if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                raise PathError(
                    ErrorCode.WRONG_TYPE, f"{path!r} is a directory; rm removes single files only."
                )
            os.unlink(name, dir_fd=parent)

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all it holds, however deep, never following a link."""
        with self._parent(path) as (parent, name), closing(Cursor(parent)) as cursor:
            remove_entry(cursor, name, lambda: None)

    def move(self, source: str, target: str) -> str:
        """Rename a file or directory; returns where it is now. Nothing is ever overwritten.

        A file with several names stays where it is; what a directory holds is not looked at, as a
        rename touches names beneath the root alone.
        """
        target = self._free_target(source, target)
        with self._parent(source) as (old, old_name):
            _refuse_shared(os.stat(old_name, dir_fd=old, follow_symlinks=False), source)
        head = target.rpartition("/")[0]
        self.make_directory(head or ".")
        with self._parent(source) as (old, old_name), self._parent(target) as (new, new_name):
            os.rename(old_name, new_name, src_dir_fd=old, dst_dir_fd=new)
        return target

    def copy(self, source: str, target: str) -> str:
        """Copy one file with its permissions; returns where the copy is. Nothing is ever overwritten."""
        target = self._free_target(source, target)
        data = self.read_bytes(source, self.policy.write_bytes)
        with self.opened(source, _READ) as descriptor:
            mode = os.fstat(descriptor).st_mode & 0o777
        self.make_directory(target.rpartition("/")[0] or ".")
        with self._parent(target) as (parent, name):
            self._put(parent, name, data, mode)
        return target

    def _free_target(self, source: str, target: str) -> str:
        """Where the source would come to lie: in the target if that is a directory, else at it."""
        if self.entry(source) is None:
            raise PathError(ErrorCode.NOT_FOUND, f"{source!r} does not exist")
        if target == "." or self._leads_to_directory(".", target):
            name = source.rpartition("/")[2]
            target = name if target == "." else f"{target}/{name}"
        if target == source or target.startswith(source + "/"):
            raise PathError(ErrorCode.BAD_ARGUMENTS, f"{source!r} cannot be put into itself.")
        if self.entry(target) is not None:
            raise PathError(ErrorCode.EXISTS, f"{target!r} exists already; remove it or choose another name.")
        return target


def _refuse_shared(status: os.stat_result, path: str) -> None:
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        raise SharedFileError(path, status.st_nlink)


def _require_regular(status: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise PathError(ErrorCode.WRONG_TYPE, f"{path!r} is a directory, not a file; use ls.")
    if not stat.S_ISREG(status.st_mode):
        raise PathError(ErrorCode.WRONG_TYPE, f"{path!r} is a pipe, socket or device, not a regular file.")


def _replaceable_mode(parent: int, name: str, path: str) -> int | None:
    """The mode to keep, or None for a new file."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(name, dir_fd=parent)
        message = f"{path!r} is a symbolic link to {target!r}; write to the file itself."
        raise PathError(ErrorCode.WRONG_TYPE, message)
    _require_regular(status, path)
    if status.st_nlink > 1:
        message = (
            f"{path!r} has {status.st_nlink} hard links, so another place may share it; "
            "copy it to a new name and write there."
        )
        raise PathError(ErrorCode.NOT_ALLOWED, message)
    if not os.access(name, os.W_OK, dir_fd=parent):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    return stat.S_IMODE(status.st_mode) & 0o777


def _too_large(path: str, size: int, limit: int) -> PathError:
    return PathError(
        ErrorCode.TOO_LARGE,
        f"{path!r} has {size_text(size)} ({size:,} bytes) and {size_text(limit)} is the most that is read at "
        "once. Look at a part of it with `run head -c 2000 FILE`, or search it with `run grep TEXT FILE`.",
    )


def _too_large_to_write(path: str, size: int, limit: int) -> PathError:
    return PathError(
        ErrorCode.TOO_LARGE,
        f"{path!r} would have {size_text(size)} and {size_text(limit)} is the most that is written at once; "
        "let a program write it piece by piece.",
    )


def bytes_lost(files: SandboxFiles, path: str, data: bytes, own: str = "") -> int:
    """How many bytes of a file would be gone once it is written; blocking.

    Nothing is lost where there is no file or an empty one, where the new content has the old one in it, and
    where the old content is what the writer put there itself. What cannot be read is not written either, so
    the write says why; one that is too large to be compared counts as lost.

    Args:
        files: the root.
        path: relative to the root.
        data: what is to be written.
        own: SHA-256 of what the writer itself wrote there last, in hex; empty for nothing.
    """
    try:
        status = files.entry(path)
        if status is None or not stat.S_ISREG(status.st_mode) or not status.st_size:
            return 0
        if status.st_size > files.policy.write_bytes:
            return status.st_size
        before = files.read_bytes(path, files.policy.write_bytes)
    except PathError:
        return 0
    if before in data or hashlib.sha256(before).hexdigest() == own:
        return 0
    return len(before)
