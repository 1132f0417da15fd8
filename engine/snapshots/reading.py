"""Reading the files of a workspace in which somebody may be at work against the reader.

No link is followed, nothing is opened that could block, and content only counts if the file was the same
before and after.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from engine.snapshots.entry import digest_of
from engine.snapshots.errors import FileChanged
from engine.snapshots.objects import CHUNK
from engine.snapshots.stat_cache import StatCache, now_ns

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Sink(Protocol):
    """Where content goes that is read."""

    def has(self, digest: str, size: int) -> bool:
        """Whether content that is known by its digest need not be read."""

    def put(self, data: bytes) -> str:
        """Take bytes and answer their digest."""

    def put_stream(self, chunks: Iterator[bytes]) -> str:
        """Take content piece by piece and answer its digest."""


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
        found = hashlib.sha256()
        for chunk in chunks:
            found.update(chunk)
        return found.hexdigest()


def content_digest(directory: int, name: str, status: os.stat_result, cache: StatCache, sink: Sink) -> str:
    """Digest of a regular file's content, which the sink has afterwards.

    Args:
        directory: descriptor of the directory.
        name: the file in it.
        status: as it was just found.
        cache: asked first, and told.
        sink: gets the content unless it has it.

    Raises:
        FileChanged: it is no longer that file, or changed while it was read.
        OSError: it cannot be opened or read.
    """
    known = cache.get(status)
    if known is not None and sink.has(known, status.st_size):
        return known
    with reading(directory, name) as descriptor:
        read_at = now_ns()
        before = os.fstat(descriptor)
        if not same_content(before, status):
            raise FileChanged(name)
        digest = sink.put_stream(_chunks(descriptor, before.st_size, name))
        if not same_content(os.fstat(descriptor), before):
            raise FileChanged(name)
    cache.put(before, digest, read_at)
    return digest


@contextmanager
def reading(directory: int, name: str) -> Iterator[int]:
    """A descriptor of a regular file, or of whatever stands there, opened without waiting."""
    descriptor = os.open(name, _READ, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def same_content(one: os.stat_result, other: os.stat_result) -> bool:
    """Whether two statuses are of one regular file that was not written to in between."""
    return (
        stat.S_ISREG(one.st_mode)
        and stat.S_ISREG(other.st_mode)
        and (one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns)
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
