"""What files held when they were last read, so that unchanged ones need not be read again.

A file is known again by device, inode, size, mtime and ctime. Programs can set the mtime but not the ctime,
which every change of content moves on, unless it falls into the same tick of the kernel's clock: as git does
with its index, nothing is remembered about a file that changed just before it was read. One gap remains, and
git has it too: a page that is still being written through a shared memory mapping moves no time until it is
written back.

Reading the files of a workspace in which somebody may be at work against the reader.

No link is followed, nothing is opened that could block, and content only counts if the file was the same
before and after.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.sandbox.snapshots.entry import FileChanged, digest_of
from engine.sandbox.snapshots.objects import CHUNK, ObjectStore

_MAGIC = b"pilothouse stat cache 1\n"
_KEY, _DIGEST = 16, 32
_TICK_NS = 100_000_000
"""Kernels count the time of files in ticks of at most 10 ms; ten of them, for clocks that differ a little."""
_COARSE_NS = 3_000_000_000
"""For file systems that only store whole seconds, or two."""


class StatCache:
    """Digests of files by their status; lives in memory and, between processes, in one file.

    A missing or damaged file is an empty cache. For one thread at a time.

    Args:
        path: the file.
        passing: a directory on the same disk that is cleared now and then, for the file while it is written.
    """

    def __init__(self, path: Path, passing: Path) -> None:
        self._path = path
        self._passing = passing
        self._known = self._load()
        self._seen: dict[bytes, bytes] = {}
        self._fresh = False

    def get(self, status: os.stat_result) -> str | None:
        """Digest of the file's content, if it is certain."""
        key = _key(status)
        digest = self._seen.get(key) or self._known.get(key)
        if digest is None:
            return None
        self._seen[key] = digest
        return digest.hex()

    def put(self, status: os.stat_result, digest: str, read_at_ns: int) -> None:
        """Remember what a file held, unless it had changed too shortly before it was read.

        Args:
            status: the file's, the same before and after reading.
            digest: of its content.
            read_at_ns: `time.time_ns()` before the first byte was read.
        """
        tick = _COARSE_NS if status.st_ctime_ns % 1_000_000 == 0 else _TICK_NS
        if status.st_ctime_ns + tick < read_at_ns:
            self._seen[_key(status)] = bytes.fromhex(digest)
            self._fresh = True

    def settle(self) -> None:
        """Forget files that were not met since the last time, and write the cache down if it changed.

        It is only a cache: a disk that refuses is not an error, and no sync is needed.
        """
        if not self._fresh and len(self._seen) == len(self._known):
            self._seen = {}
            return
        self._known, self._seen, self._fresh = self._seen, {}, False
        body = b"".join(key + digest for key, digest in self._known.items())
        part = self._passing / f"stat-cache-{secrets.token_hex(4)}"
        try:
            part.write_bytes(_MAGIC + hashlib.sha256(body).digest() + body)
            part.replace(self._path)
        except OSError:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    def _load(self) -> dict[bytes, bytes]:
        try:
            data = self._path.read_bytes()
        except OSError:
            return {}
        head = len(_MAGIC) + _DIGEST
        body = data[head:]
        if data[:head] != _MAGIC + hashlib.sha256(body).digest():
            return {}
        step = _KEY + _DIGEST
        return {body[at : at + _KEY]: body[at + _KEY : at + step] for at in range(0, len(body), step)}


def _key(status: os.stat_result) -> bytes:
    text = (
        f"{status.st_dev},{status.st_ino},{status.st_size},{status.st_mtime_ns},{status.st_ctime_ns}".encode()
    )
    return hashlib.blake2b(text, digest_size=_KEY).digest()


_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class HashingSink:
    """Keeps nothing: for looking at what is there."""

    def has(self, digest: str, size: int) -> bool:
        """Always: nothing is kept, so nothing is missing."""
        del digest, size
        return True

    def put(self, data: bytes) -> str:
        """The digest."""
        return digest_of(data)

    def put_stream(self, chunks: Iterator[bytes]) -> str:
        """The digest of all pieces."""
        result = hashlib.sha256()
        for chunk in chunks:
            result.update(chunk)
        return result.hexdigest()


Sink = ObjectStore | HashingSink
"""Where content goes that is read."""


def content_digest(directory: int, name: str, status: os.stat_result, cache: StatCache, sink: Sink) -> str:
    """Digest of a regular file's content, which the sink has afterwards.

    Args:
        directory: descriptor of the directory.
        name: the file in it.
        status: as it was just found.
        cache: asked first; learns the digest.
        sink: gets the content unless it has it.

    Raises:
        FileChanged: it is no longer that file, or changed while it was read.
        OSError: it cannot be opened or read.
    """
    known = cache.get(status)
    if known is not None and sink.has(known, status.st_size):
        return known
    with opened_at(directory, name) as descriptor:
        read_at = time.time_ns()
        before = os.fstat(descriptor)
        if not same_content(before, status):
            raise FileChanged(name)
        digest = sink.put_stream(_chunks(descriptor, before.st_size, name))
        if not same_content(os.fstat(descriptor), before):
            raise FileChanged(name)
    cache.put(before, digest, read_at)
    return digest


@contextmanager
def opened_at(directory: int, name: str, flags: int = _READ) -> Iterator[int]:
    """A descriptor of what stands at a name in a directory, opened without waiting."""
    descriptor = os.open(name, flags, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def same_content(item: os.stat_result, other: os.stat_result) -> bool:
    """Whether two statuses are of one regular file that was not written to in between."""
    return (
        stat.S_ISREG(item.st_mode)
        and stat.S_ISREG(other.st_mode)
        and (item.st_dev, item.st_ino, item.st_size, item.st_mtime_ns, item.st_ctime_ns)
        == (other.st_dev, other.st_ino, other.st_size, other.st_mtime_ns, other.st_ctime_ns)
    )


def _chunks(descriptor: int, size: int, name: str) -> Iterator[bytes]:
    """The content, in pieces of full length but the last, and never more than the size says."""
    left = size
    while left:
        chunk = os.read(descriptor, min(CHUNK, left))
        if not chunk:
            raise FileChanged(name)
        left -= len(chunk)
        yield chunk
