"""The user's key, which lies outside of any workspace: what bears a seal made with it, this user said.

A workspace may come from somebody else, and its journal with it. So what was permitted in it counts only
under a seal of this user, for the directory where the workspace is.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.core.journal import canonical

KEY_FILE = "leave.key"
"""In the user's own directory; whoever can read it can give permission in the user's name."""
KEY_BYTES = 32
FILE_LIMIT = 8 * 1024 * 1024


def read_own(path: Path, limit: int = FILE_LIMIT) -> bytes | None:
    """A plain file of the user's that nobody else can read or write; None where there is none. Blocking."""
    with suppress(OSError):
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as file:
            how = os.fstat(number)
            mine = how.st_uid == os.geteuid() and not how.st_mode & 0o077
            return file.read(limit) if stat.S_ISREG(how.st_mode) and mine else None
    return None


def write_own(path: Path, content: bytes, *, replace: bool = True) -> None:
    """Write a file that only the user can read, as a whole or not at all. Blocking.

    Raises:
        OSError: it cannot be written, or is there already and is not to be replaced.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(number)
        if replace:
            part.replace(path)
        else:
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)


class UserKey:
    """Makes and checks seals for one workspace.

    Args:
        workspace: its directory.
        home: the user's own directory; None, or one that cannot be written, has no key that lasts.
    """

    def __init__(self, workspace: Path, home: Path | None) -> None:
        self.place = str(workspace.resolve())
        """The directory that seals are for."""
        self.home = home
        self._key: bytes | None = None
        self.lasting = self.home is not None
        """Whether what is sealed now counts in later sessions, as far as is known."""

    def seal(self, *values: Any) -> str:
        """A seal over values; makes the key where there is none yet. Blocking."""
        if self._key is None:
            self._key = self._read() or self._make()
        return self._sealed(self._key, values)

    def bears(self, seal: str, *values: Any) -> bool:
        """Whether a seal was made by this user over these values in this directory. Blocking."""
        if self._key is None:
            self._key = self._read()
        if self._key is None:
            return False
        return hmac.compare_digest(self._sealed(self._key, values).encode(), seal.encode("utf-8", "replace"))

    def _sealed(self, key: bytes, values: tuple[Any, ...]) -> str:
        text = canonical([self.place, *values])
        return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def _read(self) -> bytes | None:
        key = read_own(self.home / KEY_FILE, KEY_BYTES) if self.home is not None else None
        return key if key is not None and len(key) == KEY_BYTES else None

    def _make(self) -> bytes:
        key = secrets.token_bytes(KEY_BYTES)
        self.lasting = False
        if self.home is not None:
            with suppress(OSError):
                try:
                    write_own(self.home / KEY_FILE, key, replace=False)  # never over one that is there
                except FileExistsError:
                    key = self._read() or key
                self.lasting = self._read() == key
        return key
