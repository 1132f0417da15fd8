"""Which files a tree's `.gitignore` leaves out: by git in the jail, else by patterns."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from engine.mastermind.code.box import Workshop
from engine.mastermind.code.history import HistoryError, git, repository
from engine.mastermind.code.tree import read_bytes

_AT_ONCE = 1000


async def ignored(
    workshop: Workshop | None, root: Path, top: Path, paths: Sequence[str]
) -> tuple[frozenset[str], str]:
    """The ignored ones of some paths, and in words by what they were told.

    Args:
        workshop: what holds git; without one patterns are matched here.
        root: a repository above it does not count.
        top: the directory that the paths count from.
        paths: files.
    """
    place = repository(top, root)
    if place is not None and workshop is not None:
        try:
            return await _by_git(workshop, place, top, paths), "git check-ignore"
        except HistoryError as error:
            why = f" (git could not be asked: {error})"
    else:
        why = ""
    found = frozenset(path for path in paths if is_ignored(path, patterns(top)))
    return found, f"patterns of .gitignore in its top directory, without those further down{why}"


async def _by_git(workshop: Workshop, place: Path, top: Path, paths: Sequence[str]) -> frozenset[str]:
    below = top.relative_to(place).as_posix()
    lead = "" if below == "." else f"{below}/"
    found: set[str] = set()
    for start in range(0, len(paths), _AT_ONCE):
        some = [f"{lead}{path}" for path in paths[start : start + _AT_ONCE]]
        words = ["ls-files", "-z", "-o", "-i", "--exclude-standard", "--", *some]
        said = await git(workshop, place, words)
        found |= {path.removeprefix(lead) for path in said.split("\0") if path}
    return frozenset(found)


def patterns(top: Path) -> list[str]:
    """The patterns of the directory's `.gitignore`, in their order."""
    try:
        text = read_bytes(top / ".gitignore").decode("utf-8", "replace")
    except OSError:
        return []
    lines = (line.rstrip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def is_ignored(path: str, known: Sequence[str]) -> bool:
    """Whether the last pattern that fits a path, or a directory above it, leaves it out."""
    found = False
    for pattern in known:
        back, plain = pattern.startswith("!"), pattern.lstrip("!")
        if _fits(path, plain):
            found = not back
    return found


def _fits(path: str, pattern: str) -> bool:
    only_directory, body = pattern.endswith("/"), pattern.strip("/")
    parts = PurePosixPath(path).parts
    anchored = "/" in pattern.rstrip("/")
    for end in range(1, len(parts) + (not only_directory)):
        whole, name = "/".join(parts[:end]), parts[end - 1]
        as_deep = "**" in body or body.count("/") == end - 1
        if anchored and as_deep and fnmatch.fnmatchcase(whole, body.replace("**/", "*")):
            return True
        if not anchored and fnmatch.fnmatchcase(name, body):
            return True
    return False
