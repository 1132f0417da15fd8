"""Files beneath a sandbox root that another place shares.

Opened for writing by a program, a file with a hard link outside of the root changes there too, and no jail
can hold that: the file is in the root. It comes of roots that were filled by links, as `git clone --local`
and some installers do. Source: sandbox spec §3.3, §6 case 16.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.sandbox.files import SandboxFiles
from engine.sandbox.names import shown
from engine.sandbox.paths import PathError

EXAMPLES = 3


@dataclass
class Shared:
    """What of a root is not the root's alone."""

    count: int = 0
    """Files that have a name outside of the root."""
    examples: list[str] = field(default_factory=list)
    """Paths of the first few, relative to the root, as text; see `engine.sandbox.names`."""
    whole: bool = True
    """Whether all of the root was looked at, as far as the policy's limits on its size go."""


def shared_files(files: SandboxFiles) -> Shared:
    """Files with more names than the root holds; blocking, links are not followed."""
    found = Shared()
    names: dict[tuple[int, int], list[str]] = {}
    links: dict[tuple[int, int], int] = {}
    for path, status in _entries(files, found):
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            identity = (status.st_dev, status.st_ino)
            names.setdefault(identity, []).append(path)
            links[identity] = status.st_nlink
    outside = sorted(min(paths) for identity, paths in names.items() if len(paths) < links[identity])
    found.count = len(outside)
    found.examples = [shown(path) for path in outside[:EXAMPLES]]
    return found


def _entries(files: SandboxFiles, found: Shared) -> Iterator[tuple[str, os.stat_result]]:
    """Path and status of everything below the root, within the limits."""
    waiting, count = [(".", 0)], 0
    while waiting:
        path, depth = waiting.pop()
        try:
            with files.directory(path) as directory, os.scandir(directory) as entries:
                below = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
        except (OSError, PathError):
            found.whole = False  # it went away, or is not ours to read
            continue
        for name, status in below:
            count += 1
            child = name if path == "." else f"{path}/{name}"
            if stat.S_ISDIR(status.st_mode) and depth < files.policy.disk_depth:
                waiting.append((child, depth + 1))
            yield child, status
        if count > files.policy.disk_entries:
            found.whole = False
            return
