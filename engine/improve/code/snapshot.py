"""`basegen`: a tree and the contents of its files as one Markdown text, within limits.

Files that are no text, that look as if they held a secret, or that git, run in the jail, ignores are named
and left out. A fence is always longer than any run of its sign in the contents, so that no file can break out
of it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from engine.core.text import clean, clean_line
from engine.improve.code.analysis import directory_beneath
from engine.improve.code.projects import HistoryError, find_repository, run_git
from engine.improve.code.source import SkippedFiles, read_bytes, walk_files
from engine.improve.judge.box import Boxes

_AT_ONCE = 1000


async def ignored_paths(
    boxes: Boxes | None, root: Path, top: Path, paths: Sequence[str]
) -> tuple[frozenset[str], str]:
    """Those of some paths that git ignores, and in words how that was found out.

    Args:
        boxes: have the jail that holds git.
        root: a repository above it does not count.
        top: the directory that the paths count from.
        paths: files.
    """
    place = find_repository(top, root)
    if place is None or boxes is None:
        return frozenset(), "nothing: there is no git repository of its own here, or no jail for git"
    try:
        return await _by_git(boxes, place, top, paths), "git check-ignore"
    except HistoryError as error:
        return frozenset(), f"nothing: git could not be asked: {error}"


async def _by_git(boxes: Boxes, place: Path, top: Path, paths: Sequence[str]) -> frozenset[str]:
    below = top.relative_to(place).as_posix()
    lead = "" if below == "." else f"{below}/"
    ignored: set[str] = set()
    for start in range(0, len(paths), _AT_ONCE):
        some = [f"{lead}{path}" for path in paths[start : start + _AT_ONCE]]
        words = ["ls-files", "-z", "-o", "-i", "--exclude-standard", "--", *some]
        output = await run_git(boxes, place, words)
        ignored |= {path.removeprefix(lead) for path in output.split("\0") if path}
    return frozenset(ignored)


_SECRET_NAMES = re.compile(
    r"^\.env(\..+)?$|^\.?(netrc|pgpass|htpasswd|pypirc|npmrc)$|^id_(rsa|dsa|ecdsa|ed25519)$"
    r"|\.(pem|key|p12|pfx|jks|keystore|kdbx|asc|gpg|ppk)$|(^|[._-])(secrets?|credentials?|passwords?)([._-]|$)",
    re.IGNORECASE,
)
_SECRET_WORDS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}\b"
    r"|\bsk-[A-Za-z0-9_-]{32,}"
)
_LANGUAGES = {
    ".py": "python",
    ".md": "markdown",
    ".js": "javascript",
    ".ts": "typescript",
    ".yml": "yaml",
    **{f".{name}": name for name in ("toml", "json", "yaml", "sh", "html", "css", "c")},
}


@dataclass(frozen=True, slots=True)
class SnapshotLimits:
    """How much a snapshot takes in."""

    file_bytes: int = 200_000
    """A larger file is named only."""
    all_bytes: int = 8_000_000
    """Contents in all; what comes after is named only."""
    files: int = 5_000


@dataclass(frozen=True, slots=True)
class SnapshotReport:
    """What a snapshot took in and what it left out."""

    path: str
    files_included: int
    bytes_included: int
    left_out: tuple[str, ...] = ()
    """Reasons with counts and examples."""
    ignored_by: str = ""
    """How it was told what git ignores."""

    def as_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


async def snapshot_markdown(
    root: Path,
    path: str = ".",
    *,
    boxes: Boxes | None = None,
    limits: SnapshotLimits | None = None,
) -> tuple[str, SnapshotReport]:
    """The Markdown of a directory, and what is in it.

    Args:
        root: nothing outside of it is read.
        path: the directory, from the root.
        boxes: what holds git, which knows best what is ignored.
        limits: how much is taken in.

    Raises:
        AnalysisError: there is no such directory beneath the root.
    """
    top = directory_beneath(root, path)
    limits = limits or SnapshotLimits()
    left = SkippedFiles()
    paths = await asyncio.to_thread(lambda: list(walk_files(top, left, hidden=True, most=limits.files)))
    gone, how = await ignored_paths(boxes, root, top, paths)
    for reason in sorted(gone):
        left.add("ignored by git", reason)
    kept = [path for path in paths if path not in gone]
    return await asyncio.to_thread(_written, str(PurePosixPath(path)), top, kept, left, limits, how)


def _written(
    path: str, top: Path, paths: Sequence[str], left: SkippedFiles, limits: SnapshotLimits, how: str
) -> tuple[str, SnapshotReport]:
    parts: list[str] = []
    taken = count = 0
    named: list[tuple[str, str]] = []
    for file_path in paths:
        text, why = _contents(top, file_path, limits, limits.all_bytes - taken)
        named.append((file_path, why))
        if why:
            left.add(why, clean_line(file_path, limit=200))
            continue
        taken, count = taken + len(text.encode()), count + 1
        parts.append(
            f"## {_inline(file_path)}\n\n{fenced(text, _LANGUAGES.get(PurePosixPath(file_path).suffix, ''))}"
        )
    title = top.name if path == "." else path
    head = [f"# {clean_line(title, limit=200)}", f"{count} files, {taken:,} bytes of text."]
    head.append(f"## Tree\n\n{fenced(_tree(named), 'text')}")
    if left.counts:
        head.append("## Left out\n\n" + "\n".join(f"- {_escaped(line)}" for line in left.lines()))
    report = SnapshotReport(path, count, taken, tuple(left.lines()), how)
    return "\n\n".join([*head, *parts]) + "\n", report


def _contents(top: Path, path: str, limits: SnapshotLimits, room: int) -> tuple[str, str]:
    """A file's text, or why it is left out."""
    if _SECRET_NAMES.search(PurePosixPath(path).name):
        return "", "may hold a secret, by its name"
    try:
        size = (top / path).lstat().st_size
        if size > limits.file_bytes:
            return "", f"larger than {limits.file_bytes:,} bytes"
        if size > room:
            return "", f"beyond {limits.all_bytes:,} bytes in all"
        data = read_bytes(top / path, limits.file_bytes, beneath=top)
    except OSError as error:
        return "", error.strerror or "unreadable"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return "", "no text in UTF-8"
    if "\0" in text:
        return "", "no text"
    if _SECRET_WORDS.search(text):
        return "", "may hold a secret, by its contents"
    return clean(text, limit=limits.file_bytes + 1), ""


def fenced(text: str, language: str = "") -> str:
    """A text between fences that it cannot break out of."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    body = text if text.endswith("\n") or not text else text + "\n"
    return f"{fence}{language}\n{body}{fence}"


def _inline(path: str) -> str:
    """A path as code in a line, whatever is in it."""
    words = clean_line(path, limit=400)
    mark = "`" * (max((len(run) for run in re.findall(r"`+", words)), default=0) + 1)
    return f"{mark} {words} {mark}" if "`" in words else f"`{words}`"


def _escaped(line: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", clean_line(line, limit=600))


def _tree(named: Sequence[tuple[str, str]]) -> str:
    """The files as a tree, those that are left out with the reason."""
    lines: list[str] = []
    above: tuple[str, ...] = ()
    for path, why in named:
        *directories, name = PurePosixPath(path).parts
        for depth, directory in enumerate(directories):
            if above[: depth + 1] != tuple(directories[: depth + 1]):
                lines.append(f"{'  ' * depth}{clean_line(directory, limit=200)}/")
        above = tuple(directories)
        note = f"  ({why})" if why else ""
        lines.append(f"{'  ' * len(directories)}{clean_line(name, limit=200)}{note}")
    return "\n".join(lines)
