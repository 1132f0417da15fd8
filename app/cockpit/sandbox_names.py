"""The names beneath the sandbox, for completion: looked up off the loop, answered from memory."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

LIMIT = 2_000
"""Names that are kept; completion needs no more."""
DEPTH = 4
_SKIPPED = frozenset({"__pycache__", "node_modules"})


async def names_below(root: Path) -> tuple[str, ...]:
    """Directories (ending in `/`) and files beneath a directory, the shallow ones first; hidden ones not."""
    return await asyncio.to_thread(_names, root)


def _names(root: Path) -> tuple[str, ...]:
    found: list[str] = []
    level = [""]
    for _ in range(DEPTH):
        below: list[str] = []
        for directory in level:
            try:
                with os.scandir(root / directory) as entries:
                    kept = sorted(
                        (one.name, one.is_dir(follow_symlinks=False))
                        for one in entries
                        if not one.name.startswith(".") and one.name not in _SKIPPED
                    )
            except OSError:
                continue
            for name, inside in kept:
                found.append(f"{directory}{name}/" if inside else f"{directory}{name}")
                if inside:
                    below.append(f"{directory}{name}/")
            if len(found) >= LIMIT:
                return tuple(found[:LIMIT])
        level = below
    return tuple(found)
