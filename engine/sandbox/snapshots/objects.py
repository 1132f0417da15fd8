"""The objects of a snapshot store: content in files named after its SHA-256.

The journal's blobs are not used for this: they come whole from memory and each is pressed to the disk alone,
while a snapshot streams thousands of files and lets the disk settle once for many. An object has its name
only when its content is safely on the disk, so that after a crash or a power cut every named object is whole.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from engine.core.store.places import clear
from engine.sandbox import kernel
from engine.sandbox.policy import MIB, size_text
from engine.sandbox.snapshots import entry as stored

CHUNK = 1 * MIB
ZEROS = bytes(CHUNK)
_BATCH = 512
"""Objects that get their names together."""
_EACH = 16
"""Up to so many, each is synced; beyond, the whole file system is, which is faster by far."""
_THREADS = ThreadPoolExecutor(6, "sync")
"""So that the disk settles for many files together: one by one they take several times as long."""
_UNCHECKED = 16 * MIB
"""Bytes written between two looks at the free space."""
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class ObjectStore:
    """Objects below `<directory>/objects/ab/`; the caller sees to it that only one process writes.

    Blocking; for one thread at a time.
    """

    def __init__(self, directory: Path, floor_bytes: int = 0) -> None:
        self._objects = directory / "objects"
        self._passing = directory / "passing"
        self._floor = floor_bytes
        self._pending: dict[str, tuple[Path, int]] = {}
        self._touched: set[Path] = set()
        self._unchecked = _UNCHECKED
        self.new_bytes = 0
        """Bytes of new objects since `begin`."""

    def begin(self) -> None:
        """Make the directories and clear away what a killed process left half-written."""
        with self._refusal("prepared"):
            for directory in (self._objects, self._passing):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            for left in self._passing.iterdir():
                clear(left)
        self._pending.clear()
        self._touched.clear()
        self._unchecked = _UNCHECKED
        self.new_bytes = 0

    def has(self, digest: str, size: int) -> bool:
        """Whether there is such an object, of this size."""
        if digest in self._pending:
            return True
        try:
            # a string, not a Path: this is asked for every file of every snapshot
            status = os.stat(f"{self._objects}/{digest[:2]}/{digest}")  # noqa: PTH116
        except OSError:
            return False
        return status.st_size == size

    def put(self, data: bytes) -> str:
        """Keep bytes and answer their digest; they are durable after `commit`.

        Raises:
            SnapshotError: the disk refused, or free space is below the floor.
        """
        digest = stored.digest_of(data)
        if not self.has(digest, len(data)):
            with self._passing_file() as (path, descriptor):
                self._write(descriptor, data)
            self._keep(digest, path, len(data))
        return digest

    def put_stream(self, chunks: Iterator[bytes]) -> str:
        """Keep content of any length, in bounded memory; otherwise as `put`.

        Pieces that are all zeros become holes. An error of the iterator passes through and leaves nothing
        behind.
        """
        first, second = next(chunks, b""), next(chunks, b"")
        if not second:
            return self.put(first)
        digest, size = hashlib.sha256(), 0
        with self._passing_file() as (path, descriptor):
            for chunk in chain((first, second), chunks):
                digest.update(chunk)
                size += len(chunk)
                if chunk == ZEROS:
                    os.lseek(descriptor, CHUNK, os.SEEK_CUR)
                else:
                    self._write(descriptor, chunk)
            with self._refusal("written"):
                os.ftruncate(descriptor, size)  # holes at the end are not written
        name = digest.hexdigest()
        if self.has(name, size):
            path.unlink()
        else:
            self._keep(name, path, size)
        return name

    def flush(self) -> None:
        """Press pending objects to the disk, then give them their names."""
        if not self._pending:
            return
        with self._refusal("written"):
            sync_all([path for path, _ in self._pending.values()], self._passing)
            for digest, (path, size) in self._pending.items():
                place = self._path(digest)
                if not place.parent.is_dir():
                    place.parent.mkdir(mode=0o700, exist_ok=True)
                    self._touched.add(self._objects)
                path.replace(place)
                self.new_bytes += size
                self._touched.add(place.parent)
            self._pending.clear()

    def commit(self, *beside: Path) -> None:
        """Make everything put so far durable, names included, and so files beside the objects."""
        self.flush()
        with self._refusal("written"):
            sync_all([*sorted(self._touched), *beside], self._objects)
        self._touched.clear()

    def discard(self) -> None:
        """Give up what is pending."""
        for path, _ in self._pending.values():
            path.unlink(missing_ok=True)
        self._pending.clear()

    def read(self, digest: str) -> bytes:
        """The whole object, checked.

        Raises:
            SnapshotMissing: there is none.
            SnapshotDamaged: it holds something else.
        """
        return b"".join(self.chunks(digest))

    def chunks(self, digest: str) -> Iterator[bytes]:
        """The object piece by piece; that it was damaged is raised after the last piece.

        Raises:
            SnapshotMissing: there is none.
            SnapshotDamaged: it held something else.
        """
        if not stored.is_digest(digest):
            raise stored.SnapshotMissing(f"{digest[:80]!r} is not the digest of an object.")
        result = hashlib.sha256()
        try:
            with self._path(digest).open("rb", buffering=0) as file:
                while chunk := file.read(CHUNK):
                    result.update(chunk)
                    yield chunk
        except OSError as error:
            raise stored.SnapshotMissing(
                f"Object {digest} of the snapshot store cannot be read ({error.strerror})."
            ) from error
        if result.hexdigest() != digest:
            raise stored.SnapshotDamaged(f"Object {digest} of the snapshot store does not hold what it held.")

    def all(self) -> Iterator[tuple[str, int]]:
        """Digest and size of every object."""
        with self._refusal("listed"):
            for group in self._objects.iterdir():
                with os.scandir(group) as entries:
                    for entry in entries:
                        if stored.is_digest(entry.name):
                            yield entry.name, entry.stat(follow_symlinks=False).st_size

    def remove(self, digest: str) -> None:
        """Remove an object; harmless when there is none."""
        with self._refusal("cleared"):
            self._path(digest).unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        return self._objects / digest[:2] / digest

    @contextmanager
    def _passing_file(self) -> Iterator[tuple[Path, int]]:
        """A new file under a passing name, removed if anything goes wrong."""
        path = self._passing / secrets.token_hex(8)
        with self._refusal("written"):
            self._require_room()
            descriptor = os.open(path, _CREATE, 0o600)
        try:
            yield path, descriptor
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise
        finally:
            os.close(descriptor)

    def _write(self, descriptor: int, data: bytes) -> None:
        with self._refusal("written"):
            self._unchecked += len(data)
            self._require_room()
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]

    def _keep(self, digest: str, path: Path, size: int) -> None:
        self._pending[digest] = (path, size)
        if len(self._pending) >= _BATCH:
            self.flush()
            self._unchecked = _UNCHECKED  # many small files take more room than their bytes

    def _require_room(self) -> None:
        if self._unchecked < _UNCHECKED:
            return
        self._unchecked = 0
        status = os.statvfs(self._passing)
        free = status.f_bavail * status.f_frsize
        if free < self._floor:
            raise stored.SnapshotError(
                f"No snapshot was taken: {size_text(free)} are free on the disk of {self._objects.parent} "
                f"and {size_text(self._floor)} must stay free. Make room, or remove that directory: then no "
                "older state can be brought back."
            )

    @contextmanager
    def _refusal(self, done: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise stored.SnapshotError(
                f"The snapshot store could not be {done} ({error.strerror}): check the room on the disk of "
                f"{self._objects.parent} and who may write there. Nothing half-written counts."
            ) from error


def sync_all(paths: list[Path], where: Path) -> None:
    """Press files or directories, all of one file system, to the disk.

    Raises:
        OSError: the disk refused.
    """
    if len(paths) > _EACH:
        with _opened(where) as descriptor:
            if sync_file_system(descriptor):
                return
    list(_THREADS.map(_sync, paths))


def _sync(path: Path) -> None:
    with _opened(path) as descriptor:
        os.fsync(descriptor)


def sync_file_system(descriptor: int) -> bool:
    """Press everything of a descriptor's file system to the disk; False where that cannot be asked for.

    Raises:
        OSError: the disk refused.
    """
    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    return syncfs is not None and kernel.checked(syncfs(descriptor)) == 0


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
