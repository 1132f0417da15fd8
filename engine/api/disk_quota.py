"""The room that a workspace's data may take on the disk: first said, then held to."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from engine.core.reasons import NONE, Reason

MB = 1_000_000
WARN_PERCENT = 80
"""Of the room, from which on it is said how much is left."""


class DiskQuota:
    """Weighs the data directory of a workspace.

    Args:
        data: the directory.
        limit_mb: what it may take; None for all that there is.
    """

    def __init__(self, data: Path, limit_mb: int | None) -> None:
        self._data = data
        self._limit = limit_mb
        self._used = 0

    def weigh(self) -> Reason:
        """Why nothing more may be written; empty while there is room. Blocking."""
        if self._limit is None:
            return NONE
        self._used = directory_bytes(self._data)
        if self._used < self._limit * MB:
            return NONE
        return Reason("budget.disk", used=self._used // MB, limit=self._limit)

    @property
    def warning(self) -> str:
        """How little room is left, in a sentence; empty while there is enough."""
        if self._limit is None or self._used * 100 < self._limit * MB * WARN_PERCENT:
            return ""
        used = self._used // MB
        return (
            f"the data of this workspace take {used:,} MB of the {self._limit:,} MB that they may take: make "
            "room (pilothouse sessions archive --to FILE), or raise disk_mb in [keeping] of the settings"
        )


def directory_bytes(top: Path) -> int:
    """Room that all files below a directory take on the disk; no link is followed."""
    blocks = 0
    for folder, folders, names in os.walk(top):
        for name in (*folders, *names):
            with suppress(OSError):
                blocks += os.lstat(os.path.join(folder, name)).st_blocks  # noqa: PTH118
    return blocks * 512
