"""Walking a hostile tree and writing down what is there.

Iterative, so that depth costs no stack; by directory descriptors, so that links and long paths mean nothing;
counted, so that neither a million names nor a huge file takes memory or time without end.

A snapshot never leaves anything out silently: whatever a limit or the policy keeps away is named in the
snapshot and in the answer of `take`. Virtual environments and caches are written down instead of kept. What
makes a directory one of them is its name, or what lies in it; a workspace can therefore hide files from its
snapshots this way, and each such directory is named in the snapshot.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from engine.sandbox.policy import GIB, MIB, SandboxPolicy, size_text
from engine.sandbox.snapshots.cursor import OPEN_DIRECTORY, Cursor
from engine.sandbox.snapshots.entry import (
    DIRECTORY_MODE,
    FILE_MODE,
    KEPT,
    Directory,
    Entry,
    FileChanged,
    Kind,
    Manifest,
    PathList,
    canonical,
    escape,
)
from engine.sandbox.snapshots.file_reader import HashingSink, Sink, StatCache, content_digest, opened_at
from engine.value import dataclass, field, fields

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


@dataclass(frozen=True, slots=True)
class SnapshotPolicy:
    """What snapshots keep, and their limits; it belongs to the operator, never to an agent."""

    cache_names: tuple[str, ...] = (
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"),
        *(".tox", ".nox", ".cache", ".npm", "node_modules"),
    )
    """Names of cache directories, wherever they are: tools make these anew, so they are only named."""
    cache_paths: tuple[str, ...] = (".home/tmp",)
    """Cache directories by their path from the root."""
    protected: tuple[str, ...] = (".pilothouse",)
    """Names at the root that are never read, recorded, restored or removed."""
    file_bytes: int = 64 * MIB
    """Largest file that is kept."""
    total_bytes: int = 1 * GIB
    """Content of one snapshot, each file counted once."""
    entries: int = 200_000
    """Names in one snapshot."""
    depth: int = 10_000
    """Levels of directories."""
    attempts: int = 3
    """How often something that changes while it is read is tried."""
    store_bytes: int = 4 * GIB
    """Size of the store to which `collect` brings it back by forgetting the oldest snapshots."""
    snapshots: int = 2_000
    """How many `collect` leaves."""
    floor_bytes: int = 256 * MIB
    """Free disk space below which nothing is taken; 0 for no floor."""

    @classmethod
    def for_sandbox(cls, sandbox: SandboxPolicy) -> SnapshotPolicy:
        """The policy for a sandbox's root: HOME and TMPDIR of its programs are caches."""
        names = tuple(name.casefold() for name in sandbox.protected)
        return cls(cache_paths=(sandbox.home, sandbox.tmp), protected=names)

    def protects(self, name: str) -> bool:
        """Whether a name at the root is Pilothouse's own, however a file system spells it."""
        return name.casefold() in self.protected

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            least = 0 if item.name == "floor_bytes" else 1
            if isinstance(value, int) and value < least:
                raise ValueError(f"snapshot policy: {item.name} must be at least {least}, not {value}")


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
        self.times: list[list[int]] = []
        """Of the entries, a list a directory, parents first."""
        self.files = self.bytes = 0
        self.skipped = PathList(_LISTED_SKIPS)

    def run(self) -> Manifest:
        """Walk the whole tree; its top.

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
                    top = self._closed(frame)
                    return Manifest(frame.mode, top.digest, top.size)
        finally:
            self._cursor.close()

    def _push(self, name: str, status: os.stat_result, names: list[str], unlisted: str) -> None:
        """Begin with the directory that the cursor stands in."""
        names.sort(key=escape, reverse=True)
        mode = stat.S_IMODE(status.st_mode) & DIRECTORY_MODE
        self._frames.append(_Frame(name, mode, status.st_mtime_ns, len(self.times), names, unlisted))
        self.times.append([])

    def _leave(self, frame: _Frame) -> None:
        """Write the directory down and continue with its parent."""
        entry = self._closed(frame)
        self._frames.pop()
        parent = self._frames[-1]
        parent.entries.append(entry)
        if not self._cursor.leave():
            parent.pending.clear()
            parent.unlisted = _MOVED

    def _closed(self, frame: _Frame) -> Entry:
        if frame.unlisted:
            self.skipped.note(self._cursor.path, frame.unlisted)
        self.times[frame.number] = [entry.mtime_ns for entry in frame.entries]
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
            self.skipped.note(lambda: self._cursor.path(name), entry.why)

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
        if self.bytes + size > policy.total_bytes:
            why = f"the snapshot holds {size_text(policy.total_bytes)} already, the most that is kept"
            return self._omitted(name, why, size)
        digest = content_digest(self._cursor.fd, name, status, self._cache, self._sink)
        self.files += 1
        self.bytes += size
        mode = stat.S_IMODE(status.st_mode) & FILE_MODE
        return Entry(escape(name), Kind.FILE, mode, size, digest, mtime_ns=status.st_mtime_ns)

    def _directory(self, name: str) -> Entry | None:
        if is_cache(self._cursor, name, self._policy):
            return self._omitted(name, CACHE_OMITTED)
        if self._cursor.depth >= self._policy.depth:
            return self._omitted(name, f"deeper than {self._policy.depth} levels")
        status = self._cursor.enter(name)
        depth, entered = self._cursor.depth, False
        try:
            if status.st_dev != self._device:
                return self._omitted(name, "another file system")
            left = self._left
            names, unlisted = self._names()
            if _CONFIGURATION in names and ("bin" in names or "Scripts" in names):
                self._left = left
                return _venv_entry(self._cursor, name, self._sink)
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


CACHE_OMITTED = "a cache, left out by policy"
_CONFIGURATION = "pyvenv.cfg"
_CONFIGURATION_BYTES = 64 * 1024
_NAMES = 10_000
"""Names in a list, at most."""


def is_cache(cursor: Cursor, name: str, policy: SnapshotPolicy) -> bool:
    """Whether a directory of this name, where the cursor stands, is a cache that is not kept."""
    return name in policy.cache_names or any(
        path.rpartition("/")[2] == name and path.count("/") == cursor.depth and cursor.path(name) == path
        for path in policy.cache_paths
    )


def _venv_entry(cursor: Cursor, name: str, sink: Sink) -> Entry:
    """The entry of the virtual environment that the cursor stands in: its parts are listed, not kept."""
    result = _distributions(cursor.fd)
    body = {"configuration": _configuration(cursor.fd), "distributions": result}
    why = f"a virtual environment: its {len(result)} distributions are listed, its files are not kept"
    return Entry(escape(name), Kind.LISTED, digest=sink.put(canonical(body)), why=why)


def listed_digest(cursor: Cursor, name: str) -> str:
    """What the list of a virtual environment, in the directory of the cursor, is now.

    Raises:
        OSError: it cannot be read.
    """
    cursor.enter(name)
    try:
        return _venv_entry(cursor, name, HashingSink()).digest
    finally:
        cursor.leave()


def _names(descriptor: int) -> list[str]:
    with os.scandir(descriptor) as entries:
        return [entry.name for entry in islice(entries, _NAMES)]


def _configuration(venv: int) -> str:
    """The text of pyvenv.cfg, which says which Python it was made with."""
    try:
        with opened_at(venv, _CONFIGURATION) as descriptor:
            return os.read(descriptor, _CONFIGURATION_BYTES).decode("utf-8", "backslashreplace")
    except OSError:
        return ""


def _distributions(venv: int) -> list[list[str]]:
    """Name and version of what is installed, by the names of the metadata directories."""
    pairs: set[tuple[str, str]] = set()
    with suppress(OSError), opened_at(venv, "lib", OPEN_DIRECTORY) as library:  # what there is of it
        for python in filter(lambda name: name.startswith("python"), _names(library)):
            with (
                opened_at(library, python, OPEN_DIRECTORY) as versioned,
                opened_at(versioned, "site-packages", OPEN_DIRECTORY) as packages,
            ):
                pairs |= {_distribution(name) for name in _names(packages) if name.endswith("-info")}
    return [list(pair) for pair in sorted(pairs)]


def _distribution(directory: str) -> tuple[str, str]:
    """`six-1.17.0.dist-info` is six, 1.17.0."""
    name, _, version = directory.rpartition(".")[0].partition("-")
    return escape(name), escape(version.partition("-py")[0])
