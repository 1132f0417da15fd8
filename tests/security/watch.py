"""Watching a directory from outside: whatever opens, changes or removes something there is noticed."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

_EVERYTHING = 0xFFF
_NONBLOCK = 0x800
_libc = ctypes.CDLL(None, use_errno=True)


class Watch:
    """The events of directories and all that lies in them, since the last look."""

    def __init__(self, *tops: Path) -> None:
        self._descriptor = _libc.inotify_init1(_NONBLOCK)
        for top in tops:
            for path in (top, *(one for one in top.rglob("*") if one.is_dir() and not one.is_symlink())):
                if _libc.inotify_add_watch(self._descriptor, os.fsencode(path), _EVERYTHING) < 0:
                    raise OSError(ctypes.get_errno(), f"{path} cannot be watched")

    def events(self) -> list[str]:
        """What happened, as names with the event's bits."""
        found = []
        while True:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return found
            while data:
                _, mask, _, length = struct.unpack_from("=iIII", data)
                name = data[16 : 16 + length].rstrip(b"\0").decode(errors="replace")
                found.append(f"{name or '.'}:{mask:#x}")
                data = data[16 + length :]

    def close(self) -> None:
        """Stop watching."""
        os.close(self._descriptor)
