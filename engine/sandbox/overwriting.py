"""What a write would destroy: the text of a file that is there and would not be any more."""

from __future__ import annotations

import hashlib
import stat

from engine.sandbox.files import SandboxFiles
from engine.sandbox.paths import PathError


def lost_by(files: SandboxFiles, path: str, data: bytes, own: str = "") -> int:
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
