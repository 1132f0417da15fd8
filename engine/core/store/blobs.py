"""Large content, kept as files that are named after what they hold.

The name is the SHA-256 of the content, so that an event which names a blob also seals it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import secrets
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from engine.core.journal import BlobCorrupt, BlobMissing, BlobWriteError
from engine.core.store.places import open_plain
from engine.core.store.schema import sync_directory

ARCHIVES = "archives"
"""The directory of archives, in the data directory; see `engine.api.archiving`."""
ZIP_ERRORS = (
    *(OSError, EOFError, ValueError, KeyError, RuntimeError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error),
)
"""What reading a zip raises that is damaged, or none."""
SIZE_LIMIT = 256 * 1024 * 1024
"""Bytes of a blob that is read out of an archive."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


def blob_named(body: str) -> str:
    """The digest of the blob that a stored payload names; empty for none."""
    if '"blob":"' not in body:
        return ""
    try:
        payload = json.loads(body)
    except ValueError:
        return ""
    blob = payload.get("blob") if isinstance(payload, dict) else None
    return blob if isinstance(blob, str) else ""


class SharedBlobs(Protocol):
    """Keeps blobs where several machines have them; its methods block."""

    def keep(self, digest: str, content: bytes) -> None:
        """Keep a blob durably."""

    def fetch(self, digest: str) -> bytes | None:
        """A blob; None where there is none."""


class BlobStore:
    """The blobs of a workspace, in `.pilothouse/blobs/ab/abcdef…` below its own directory."""

    def __init__(self, directory: Path, shared: SharedBlobs | None = None) -> None:
        """Use the workspace at `directory`; nothing is made before the first `put`.

        Args:
            directory: keeps the files.
            shared: keeps each blob as well, and has those of other machines.
        """
        self._root = directory / ".pilothouse" / "blobs"
        self._shared = shared

    async def put(self, content: bytes) -> str:
        """Keep content durably and answer its digest; keeping the same content again changes nothing.

        Raises:
            BlobWriteError: the disk refused; no part of the blob is left behind.
        """
        return await asyncio.to_thread(self.write, content)

    async def get(self, digest: str) -> bytes:
        """The content with this digest, checked against it.

        Raises:
            BlobMissing: there is none, or the digest is not 64 lower-case hexadecimal digits.
            BlobCorrupt: the file holds something else.
        """
        return await asyncio.to_thread(self.read, digest)

    def files(self) -> Iterator[Path]:
        """The file of each blob; links are passed over."""
        for path in sorted(self._root.glob("??/*")):
            if _DIGEST.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                yield path

    def size(self, digest: str) -> int:
        """Bytes of a blob; 0 where there is none. Blocking."""
        try:
            return self._path(digest).stat().st_size if _DIGEST.fullmatch(digest) else 0
        except OSError:
            return 0

    def remove(self, digests: Iterable[str]) -> None:
        """Remove blobs that are kept elsewhere; what cannot be removed stays. Blocking."""
        for digest in digests:
            with suppress(OSError):
                self._path(digest).unlink()

    def _archived(self, digest: str) -> bytes | None:
        """A blob out of an archive of the workspace."""
        for place in sorted(self._root.parents[2].glob(f"{ARCHIVES}/*.zip")):
            if not place.is_file():
                continue
            with suppress(*ZIP_ERRORS), zipfile.ZipFile(place) as archive:
                with archive.open(f"blobs/{digest}") as member:
                    content = member.read(SIZE_LIMIT)
                if hashlib.sha256(content).hexdigest() == digest:
                    return content
        return None

    def _path(self, digest: str) -> Path:
        return self._root / digest[:2] / digest

    def write(self, content: bytes) -> str:
        """As `put`, for a thread that may wait for the disk."""
        digest = self._write_here(content)
        if self._shared is not None:
            self._shared.keep(digest, content)
        return digest

    def _write_here(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        path = self._path(digest)
        try:
            # A damaged file is written anew: whoever has the content can heal the blob.
            if path.is_file() and path.read_bytes() == content:
                return digest
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_durably(path, content)
            # the entries of a new directory and of its parents must survive a power cut as well
            for parent in (path.parent, self._root, self._root.parent):
                sync_directory(parent)
        except OSError as error:
            raise BlobWriteError(
                f"A blob of {len(content)} bytes could not be written ({error.strerror}): "
                f"check the room on the disk of {self._root} and who may write there."
            ) from error
        return digest

    def read(self, digest: str) -> bytes:
        """As `get`, for a thread that may wait for the disk."""
        if not _DIGEST.fullmatch(digest):
            raise BlobMissing(f"{digest[:80]!r} is not the digest of a blob.")
        path = self._path(digest)
        try:
            with open_plain(path) as file:
                content = file.read()
        except OSError as error:
            if (archived := self._archived(digest)) is not None:
                return archived
            if self._shared is not None and (kept := self._shared.fetch(digest)) is not None:
                if self._write_here(kept) == digest:
                    return kept
                self.remove([hashlib.sha256(kept).hexdigest()])
            raise BlobMissing(
                f"Blob {digest} cannot be read ({error.strerror}): restore {path} from a backup, or the "
                "archive that it is in: pilothouse sessions archive --restore FILE."
            ) from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise BlobCorrupt(
                f"Blob {digest} does not hold what it held: restore {path} from a backup, or remove it."
            )
        return content


def _write_durably(path: Path, content: bytes) -> None:
    """Write beside the path, press to the disk, then take the name, so that no half blob has it."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
