"""Blobs: what is kept comes back, or it is said that it does not."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from engine.core.journal import BlobCorrupt, BlobMissing, BlobWriteError, JournalError
from engine.core.store.blobs import BlobStore


@pytest.mark.parametrize("content", [b"", b"text", bytes(range(256)) * 10_000])
async def test_content_comes_back_by_its_digest(tmp_path, content):
    blobs = BlobStore(tmp_path)

    digest = await blobs.put(content)

    assert digest == hashlib.sha256(content).hexdigest()
    assert await blobs.get(digest) == content
    assert (tmp_path / ".pilothouse" / "blobs" / digest[:2] / digest).read_bytes() == content


async def test_keeping_the_same_content_again_changes_nothing(tmp_path):
    blobs = BlobStore(tmp_path)
    digest = await blobs.put(b"text")
    before = (tmp_path / ".pilothouse" / "blobs" / digest[:2] / digest).stat()

    assert await blobs.put(b"text") == digest

    after = (tmp_path / ".pilothouse" / "blobs" / digest[:2] / digest).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


async def test_keeping_the_same_content_at_the_same_time_leaves_one_file(tmp_path):
    blobs = BlobStore(tmp_path)

    digests = await asyncio.gather(*(blobs.put(b"x" * 100_000) for _ in range(16)))

    assert len(set(digests)) == 1
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [digests[0]]


async def test_a_damaged_blob_is_found_out_and_healed_by_keeping_the_content_again(tmp_path):
    blobs = BlobStore(tmp_path)
    digest = await blobs.put(b"text")
    (tmp_path / ".pilothouse" / "blobs" / digest[:2] / digest).write_bytes(b"tex!")

    with pytest.raises(BlobCorrupt, match=digest):
        await blobs.get(digest)
    await blobs.put(b"text")

    assert await blobs.get(digest) == b"text"


@pytest.mark.parametrize("digest", ["0" * 64, "", "../../secret", "A" * 64, "0" * 63, "0" * 64 + "\n"])
async def test_a_blob_that_is_not_there_is_missing(tmp_path, digest):
    (tmp_path / "secret").write_text("secret")

    with pytest.raises(BlobMissing) as raised:
        await BlobStore(tmp_path).get(digest)

    assert isinstance(raised.value, JournalError)


async def test_a_blob_that_cannot_be_written_says_why_and_leaves_nothing(tmp_path):
    (tmp_path / ".pilothouse").write_text("a file where the directory should be")

    with pytest.raises(BlobWriteError, match="4 bytes could not be written"):
        await BlobStore(tmp_path).put(b"text")

    assert [path.name for path in tmp_path.rglob("*")] == [".pilothouse"]
