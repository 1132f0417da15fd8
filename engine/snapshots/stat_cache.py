"""What files held when they were last read, so that unchanged ones need not be read again.

A file is known again by device, inode, size, mtime and ctime. Programs can set the mtime but not the ctime,
which every change of content moves on, unless it falls into the same tick of the kernel's clock: as git does
with its index, nothing is remembered about a file that changed just before it was read. One gap remains, and
git has it too: a page that is still being written through a shared memory mapping moves no time until it is
written back.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

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


def now_ns() -> int:
    """The time that statuses of files are compared with."""
    return time.time_ns()


def _key(status: os.stat_result) -> bytes:
    text = (
        f"{status.st_dev},{status.st_ino},{status.st_size},{status.st_mtime_ns},{status.st_ctime_ns}".encode()
    )
    return hashlib.blake2b(text, digest_size=_KEY).digest()
