"""Walking a hostile tree and writing down what is there.

Iterative, so that depth costs no stack; by directory descriptors, so that links and long paths mean nothing;
counted, so that neither a million names nor a huge file takes memory or time without end.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

from engine.sandbox.policy import size_text
from engine.snapshots.cursor import Cursor
from engine.snapshots.entry import (
    DIRECTORY_MODE,
    FILE_MODE,
    KEPT,
    Directory,
    Entry,
    Kind,
    Manifest,
    collisions,
    escape,
)
from engine.snapshots.errors import FileChanged
from engine.snapshots.listing import cache_entry, is_cache, is_venv, venv_entry
from engine.snapshots.policy import SnapshotPolicy
from engine.snapshots.reading import Sink, content_digest
from engine.snapshots.report import PathList, SkippedList
from engine.snapshots.stat_cache import StatCache

CHANGING = frozenset(
    (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO, errno.EAGAIN, errno.ESTALE)
)
"""What the kernel says when a name is no longer what it was: worth another look."""
_LISTED_SKIPS = 1_000
_MOVED = "directories were moved while it was read"
_SPECIAL = {
    stat.S_IFIFO: Kind.FIFO,
    stat.S_IFSOCK: Kind.SOCKET,
    stat.S_IFCHR: Kind.DEVICE,
    stat.S_IFBLK: Kind.DEVICE,
}


@dataclass(slots=True)
class _Frame:
    """A directory that is being read."""

    name: str
    mode: int
    mtime_ns: int
    number: int
    pending: list[str]
    unlisted: str
    entries: list[Entry] = field(default_factory=list)


@dataclass(slots=True)
class Walked:
    """What a walk found."""

    manifest: Manifest
    times: list[list[int]]
    """Of the entries, a list a directory, parents first."""
    files: int
    bytes: int
    hard_links: int
    skipped: SkippedList
    collisions: PathList


class Walk:
    """One walk over a tree; used once.

    Args:
        root: descriptor of its root.
        policy: what is kept, and the limits.
        cache: what files held before.
        sink: gets contents, lists and directory objects.
        checkpoint: called between any two names; may raise to end the walk.
    """

    def __init__(
        self, root: int, policy: SnapshotPolicy, cache: StatCache, sink: Sink, checkpoint: Callable[[], None]
    ) -> None:
        self._cursor = Cursor(root)
        self._device = os.fstat(root).st_dev
        self._policy, self._cache, self._sink, self._checkpoint = policy, cache, sink, checkpoint
        self._frames: list[_Frame] = []
        self._left = policy.entries
        self._times: list[list[int]] = []
        self._files = self._bytes = self._hard_links = 0
        self._skipped = SkippedList(_LISTED_SKIPS)
        self._collisions = PathList(_LISTED_SKIPS)

    def run(self) -> Walked:
        """Walk the whole tree.

        Raises:
            SnapshotStopped: from the checkpoint.
            SnapshotError: from a sink that cannot keep things.
            OSError: the root itself cannot be read.
        """
        try:
            status = os.fstat(self._cursor.fd)
            names, unlisted = self._names()
            names = [name for name in names if not self._policy.protects(name)]
            self._push("", status, names, unlisted)
            while True:
                self._checkpoint()
                frame = self._frames[-1]
                if frame.pending:
                    self._visit(frame, frame.pending.pop())
                elif len(self._frames) > 1:
                    self._leave(frame)
                else:
                    return self._finish(frame)
        finally:
            self._cursor.close()

    def _finish(self, frame: _Frame) -> Walked:
        top = self._closed(frame)
        return Walked(
            manifest=Manifest(frame.mode, top.digest, top.size),
            times=self._times,
            files=self._files,
            bytes=self._bytes,
            hard_links=self._hard_links,
            skipped=self._skipped,
            collisions=self._collisions,
        )

    def _push(self, name: str, status: os.stat_result, names: list[str], unlisted: str) -> None:
        """Begin with the directory that the cursor stands in."""
        names.sort(key=escape, reverse=True)
        mode = stat.S_IMODE(status.st_mode) & DIRECTORY_MODE
        self._frames.append(_Frame(name, mode, status.st_mtime_ns, len(self._times), names, unlisted))
        self._times.append([])
        for twin in collisions(names):
            self._collisions.note(lambda twin=twin: self._cursor.path(twin))  # type: ignore[misc]

    def _leave(self, frame: _Frame) -> None:
        """Write the directory down and go on with its parent."""
        entry = self._closed(frame)
        self._frames.pop()
        parent = self._frames[-1]
        parent.entries.append(entry)
        if not self._cursor.leave():
            parent.pending.clear()
            parent.unlisted = _MOVED

    def _closed(self, frame: _Frame) -> Entry:
        if frame.unlisted:
            self._skipped.note(self._cursor.path, frame.unlisted)
        self._times[frame.number] = [entry.mtime_ns for entry in frame.entries]
        digest = self._sink.put(Directory(tuple(frame.entries), frame.unlisted).encoded())
        size = 1 + sum(entry.size for entry in frame.entries if entry.kind is Kind.DIRECTORY)
        return Entry(escape(frame.name), Kind.DIRECTORY, frame.mode, size, digest, mtime_ns=frame.mtime_ns)

    def _visit(self, frame: _Frame, name: str) -> None:
        """Write one name down, or step into it."""
        why = "kept changing while it was read"
        for _ in range(self._policy.attempts):
            try:
                entry = self._entry(name)
                break
            except FileChanged:
                continue
            except OSError as error:
                if error.errno in CHANGING:
                    gone = error.errno == errno.ENOENT
                    why = "vanished while it was read" if gone else "kept changing while it was read"
                    continue
                entry = self._omitted(name, f"unreadable: {error.strerror}")
                break
        else:
            entry = self._omitted(name, why)
        if entry is None:
            return
        frame.entries.append(entry)
        if entry.kind not in KEPT:
            self._skipped.note(lambda: self._cursor.path(name), entry.why)

    def _entry(self, name: str) -> Entry | None:
        """What stands at a name; None when it is a directory that the cursor now stands in."""
        status = os.stat(name, dir_fd=self._cursor.fd, follow_symlinks=False)
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFREG:
            return self._file(name, status)
        if kind == stat.S_IFDIR:
            return self._directory(name)
        if kind == stat.S_IFLNK:
            target = escape(os.readlink(name, dir_fd=self._cursor.fd))
            return Entry(escape(name), Kind.LINK, target=target, mtime_ns=status.st_mtime_ns)
        special = _SPECIAL.get(kind, Kind.DEVICE)
        why = "" if special is Kind.FIFO else f"a {special}: only its name is kept"
        mode = stat.S_IMODE(status.st_mode) & FILE_MODE
        return Entry(escape(name), special, mode, why=why, mtime_ns=status.st_mtime_ns)

    def _file(self, name: str, status: os.stat_result) -> Entry:
        size, policy = status.st_size, self._policy
        if size > policy.file_bytes:
            why = f"larger than {size_text(policy.file_bytes)}, the most that is kept of a file"
            return self._omitted(name, why, size)
        if self._bytes + size > policy.total_bytes:
            why = f"the snapshot holds {size_text(policy.total_bytes)} already, the most that is kept"
            return self._omitted(name, why, size)
        digest = content_digest(self._cursor.fd, name, status, self._cache, self._sink)
        self._files += 1
        self._bytes += size
        self._hard_links += status.st_nlink > 1
        mode = stat.S_IMODE(status.st_mode) & FILE_MODE
        return Entry(escape(name), Kind.FILE, mode, size, digest, mtime_ns=status.st_mtime_ns)

    def _directory(self, name: str) -> Entry | None:
        if is_cache(self._cursor, name, self._policy):
            return cache_entry(self._cursor, name, self._policy, self._sink)
        if self._cursor.depth >= self._policy.depth:
            return self._omitted(name, f"deeper than {self._policy.depth} levels")
        status = self._cursor.enter(name)
        depth, entered = self._cursor.depth, False
        try:
            if status.st_dev != self._device:
                return self._omitted(name, "another file system")
            left = self._left
            names, unlisted = self._names()
            if self._policy.venvs != "whole" and is_venv(names):
                self._left = left
                return venv_entry(self._cursor, name, self._policy, self._sink)
            self._push(name, status, names, unlisted)
            entered = True
        finally:
            if not entered:
                self._cursor.climb(depth - 1)
        return None

    def _names(self) -> tuple[list[str], str]:
        """The names where the cursor stands as far as the budget reaches, and why there may be more."""
        with os.scandir(self._cursor.fd) as entries:
            names = [entry.name for entry in islice(entries, self._left + 1)]
        if len(names) <= self._left:
            self._left -= len(names)
            return names, ""
        del names[self._left :]
        self._left = 0
        return names, f"the snapshot has {self._policy.entries:,} names already, the most that are kept"

    @staticmethod
    def _omitted(name: str, why: str, size: int = 0) -> Entry:
        return Entry(escape(name), Kind.OMITTED, size=size, why=why)
