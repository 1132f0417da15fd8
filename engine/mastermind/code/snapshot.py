"""`basegen`: a tree and the contents of its files as one Markdown text, within limits.

Files that are no text, that look as if they held a secret, or that git ignores are named and left out. A
fence is always longer than any run of its sign in the contents, so that no file can break out of it.
Source: mindX spec §1.2 (`basegen`), §6.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from engine.domain.text import clean, clean_line
from engine.mastermind.code.analysis import directory_beneath
from engine.mastermind.code.box import Workshop
from engine.mastermind.code.ignoring import ignored
from engine.mastermind.code.tree import LeftOut, read_bytes, walk

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
    ".toml": "toml",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".js": "javascript",
    ".ts": "typescript",
    ".sh": "sh",
    ".html": "html",
    ".css": "css",
    ".c": "c",
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
    workshop: Workshop | None = None,
    limits: SnapshotLimits | None = None,
) -> tuple[str, SnapshotReport]:
    """The Markdown of a directory, and what is in it.

    Args:
        root: nothing outside of it is read.
        path: the directory, from the root.
        workshop: what holds git, which knows best what is ignored.
        limits: how much is taken in.

    Raises:
        AnalysisError: there is no such directory beneath the root.
    """
    top = directory_beneath(root, path)
    limits = limits or SnapshotLimits()
    left = LeftOut()
    paths = await asyncio.to_thread(lambda: list(walk(top, left, hidden=True, most=limits.files)))
    gone, how = await ignored(workshop, root, top, paths)
    for one in sorted(gone):
        left.add("ignored by git", one)
    kept = [one for one in paths if one not in gone]
    return await asyncio.to_thread(_written, str(PurePosixPath(path)), top, kept, left, limits, how)


def _written(
    path: str, top: Path, paths: Sequence[str], left: LeftOut, limits: SnapshotLimits, how: str
) -> tuple[str, SnapshotReport]:
    parts: list[str] = []
    taken = count = 0
    named: list[tuple[str, str]] = []
    for one in paths:
        text, why = _contents(top, one, limits, limits.all_bytes - taken)
        named.append((one, why))
        if why:
            left.add(why, clean_line(one, limit=200))
            continue
        taken, count = taken + len(text.encode()), count + 1
        parts.append(f"## {_inline(one)}\n\n{fenced(text, _LANGUAGES.get(PurePosixPath(one).suffix, ''))}")
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
