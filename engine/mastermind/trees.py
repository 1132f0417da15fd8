"""Candidates as trees: a proposal laid over a copy, and the difference that it really makes."""

from __future__ import annotations

import difflib
import hashlib
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.journal.event import canonical
from engine.mastermind.files import FILE_BYTES, LEFT_OUT, checked
from engine.mastermind.parts import JobRefused

DIFF_LINES = 20_000
"""Lines of a difference that are kept."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What one tree has that another has not."""

    files: Mapping[str, bytes | None]
    """The new contents by path; None where it is gone."""
    before: Mapping[str, bytes | None]
    text: str
    """As a unified diff."""
    added: int
    removed: int


def laid(base: Path, target: Path, files: Mapping[str, str | None]) -> None:
    """Copy a tree and lay files over it; blocking.

    Raises:
        JobRefused: a path leads out of the tree, or a file is too large.
    """
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(base, target, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for path, text in files.items():
        there = target / checked(path)
        if text is None:
            there.unlink(missing_ok=True)
            continue
        data = text.encode("utf-8", "surrogateescape")
        if len(data) > FILE_BYTES:
            raise JobRefused(f"{path}: {len(data):,} bytes are more than a file may have")
        try:
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes(data)
        except OSError as error:
            raise JobRefused(f"{path}: {error.strerror}") from error


def contents(root: Path) -> dict[str, bytes]:
    """All files of a tree by path; blocking."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and not path.is_symlink()
        and not LEFT_OUT.intersection(path.parts[len(root.parts) :])
    }


def digest_of(files: Mapping[str, bytes]) -> str:
    """One hash over the files of a tree."""
    listed = [[path, hashlib.sha256(files[path]).hexdigest()] for path in sorted(files)]
    return hashlib.sha256(canonical(listed).encode("utf-8", "surrogatepass")).hexdigest()


def difference(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Difference:
    """The real difference of two trees."""
    paths = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    lines: list[str] = []
    for path in paths:
        lines += _unified(path, before.get(path), after.get(path))
    added = sum(line.startswith("+") and not line.startswith("+++ ") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("--- ") for line in lines)
    more = len(lines) - DIFF_LINES
    text = "".join(lines[:DIFF_LINES]) + (f"… {more:,} more lines\n" if more > 0 else "")
    old = {path: before.get(path) for path in paths}
    return Difference({path: after.get(path) for path in paths}, old, text, added, removed)


def _unified(path: str, before: bytes | None, after: bytes | None) -> Iterable[str]:
    if any(b"\0" in content for content in (before, after) if content is not None):
        yield f"--- {path}\n+++ {path}\nbinary files differ\n"
        return
    one, other = _lines(before), _lines(after)
    old = path if before is not None else "/dev/null"
    new = path if after is not None else "/dev/null"
    for line in difflib.unified_diff(one, other, old, new):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", "replace").splitlines(keepends=True)
