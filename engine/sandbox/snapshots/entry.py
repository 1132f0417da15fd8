"""What a snapshot writes down: entries of directories, as canonical JSON named by its SHA-256.

A directory is one object that lists its entries and names the objects of its sub-directories; the manifest
names the root's object. Unchanged directories are therefore shared between snapshots, and a tree as deep as
an agent cares to make it takes no more than one object a level. The manifest's digest is the snapshot's id:
equal trees, taken under equal policies, have equal ids. Times and owners are no part of it, and set-id bits
of files are dropped.

What can go wrong with a snapshot, each with a message fit for the operator; and what operations answer, as
values. Paths in answers are relative to the root, `/` between names that are escaped as `escape` does it, and
`.` for the root. Lists are bounded, because a hostile tree can make them as long as it likes; how many were
left off is said beside them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from engine.value import dataclass, field

# As with the journal's errors, the names say what happened, which reads better than `…Error`.
# ruff: noqa: N818


class SnapshotError(Exception):
    """A snapshot that was not taken, read or restored; the message says why and what to do."""


class SnapshotMissing(SnapshotError):
    """There is no snapshot with this id, or an object of it is gone."""


class SnapshotDamaged(SnapshotError):
    """Something in the store does not hold what its name says."""


class SnapshotStopped(SnapshotError):
    """The caller was cancelled; raised between two files, in the worker thread only."""


class FileChanged(Exception):
    """A file that is not what it was a moment ago; it is looked at again."""


FORMAT = 1
FILE_MODE = 0o777
DIRECTORY_MODE = 0o3777
"""Sticky and set-group bits of directories are harmless and kept."""

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\\\\\udc80-\udcff]")
_ESCAPED = re.compile(r"\\(\\|x[0-9a-f]{2})")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def escape(name: str) -> str:
    r"""A name as text that any screen, file or JSON parser takes, without loss.

    Control characters and bytes that are no UTF-8 become `\xNN`, a backslash is doubled.

    Args:
        name: as `os.fsdecode` gives it.
    """
    return _UNSAFE.sub(_escaped, name)


def _escaped(match: re.Match[str]) -> str:
    if match[0] == "\\":
        return "\\\\"
    return "".join(f"\\x{byte:02x}" for byte in match[0].encode("utf-8", "surrogateescape"))


def unescape(text: str) -> str:
    """The name, as `os.fsdecode` gives it, that `escape` made this text of."""
    if "\\" not in text:
        return text
    parts = _ESCAPED.split(text)
    raw = b"".join(
        (b"\\" if part == "\\" else bytes([int(part[1:], 16)]))
        if at % 2
        else part.encode("utf-8", "surrogateescape")
        for at, part in enumerate(parts)
    )
    return raw.decode("utf-8", "surrogateescape")


class Kind(StrEnum):
    """What stands at a name."""

    FILE = "file"
    DIRECTORY = "dir"
    LINK = "link"
    FIFO = "fifo"
    SOCKET = "socket"
    DEVICE = "device"
    LISTED = "listed"
    """A directory of which only a list was kept."""
    OMITTED = "omitted"
    """Something that was not kept."""


KEPT = frozenset({Kind.FILE, Kind.DIRECTORY, Kind.LINK, Kind.FIFO})
"""What a snapshot can bring back."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory."""

    name: str
    """Escaped."""
    kind: Kind
    mode: int = 0
    """Permission bits; 0 for links and for what was not kept."""
    size: int = 0
    """Bytes of a file; for a directory, how many directories it is, with all below."""
    digest: str = ""
    """SHA-256 in hex: of a file's content, a directory's object, a list."""
    target: str = ""
    """Where a link points, escaped."""
    why: str = ""
    """Why something was not kept or only listed."""
    mtime_ns: int = field(default=0, compare=False)
    """Last change of content, nanoseconds; no part of the snapshot's id."""

    def row(self) -> dict[str, Any]:
        """Its part of the directory's object; what is empty is left out."""
        row: dict[str, Any] = {"kind": self.kind, "name": self.name}
        for key in ("mode", "size", "digest", "target", "why"):
            if value := getattr(self, key):
                row[key] = value
        return row


@dataclass(frozen=True, slots=True)
class Directory:
    """The entries of one directory, sorted by escaped name."""

    entries: tuple[Entry, ...] = ()
    unlisted: str = ""
    """Why there may have been more names than these; nothing else is removed there then."""

    def encoded(self) -> bytes:
        """The directory's object."""
        return canonical(
            {"entries": [entry.row() for entry in self.entries], "format": FORMAT, "unlisted": self.unlisted}
        )

    @classmethod
    def decoded(cls, data: bytes) -> Directory:
        """The directory of an object.

        Raises:
            SnapshotDamaged: it is none, or a name in it would lead somewhere else.
        """
        body = _parsed(data)
        try:
            entries = tuple(
                Entry(**{**row, "kind": Kind(row["kind"]), "name": _checked(row["name"])})
                for row in body["entries"]
            )
            return cls(entries, str(body["unlisted"]))
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotDamaged(f"An object of the snapshot store is not a directory: {error}.") from error

    @staticmethod
    def digests(data: bytes) -> list[tuple[str, str]]:
        """Digests that the entries of a directory's object have, each with its kind; quicker than `decoded`.

        Raises:
            SnapshotDamaged: it is none.
        """
        try:
            return [(row["digest"], row["kind"]) for row in _parsed(data)["entries"] if "digest" in row]
        except (KeyError, TypeError) as error:
            raise SnapshotDamaged(f"An object of the snapshot store is not a directory: {error}.") from error


@dataclass(frozen=True, slots=True)
class Manifest:
    """The top of a snapshot."""

    mode: int
    """Permission bits of the root."""
    tree: str
    """Digest of the root's directory object."""
    directories: int
    """How many directories there are, the root included."""

    def encoded(self) -> bytes:
        """The manifest's object; its SHA-256 is the snapshot's id."""
        return canonical(
            {"directories": self.directories, "format": FORMAT, "mode": self.mode, "tree": self.tree}
        )

    @classmethod
    def decoded(cls, data: bytes) -> Manifest:
        """The manifest of an object.

        Raises:
            SnapshotDamaged: it is none, or of a format this version does not know.
        """
        body = _parsed(data)
        try:
            return cls(int(body["mode"]), str(body["tree"]), int(body["directories"]))
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotDamaged(f"An object of the snapshot store is not a manifest: {error}.") from error


def canonical(value: Any) -> bytes:
    """Canonical JSON: sorted keys, no white space, ASCII."""
    return _encode(value).encode()


def digest_of(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def is_digest(text: str) -> bool:
    """Whether the text has the form of a digest or of a snapshot's id."""
    return _DIGEST.fullmatch(text) is not None


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except ValueError as error:
        raise SnapshotDamaged(f"An object of the snapshot store is not JSON: {error}.") from error
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise SnapshotDamaged(
            f"An object of the snapshot store is not of format {FORMAT}; a newer version may have made it."
        )
    return body


def _checked(text: str) -> str:
    """The text, if it is one name and escaped as this module does it."""
    name = unescape(text)
    if name in ("", ".", "..") or "/" in name or "\0" in name or escape(name) != text:
        raise ValueError(f"{text!r} is no file name")
    os.fsencode(name)
    return text


LISTED_ITEMS = 10_000
LISTED_CHARACTERS = 4 * 1024 * 1024
"""Of all paths in one list: one path below 3,000 levels has up to 768,000."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that was left out or left alone."""

    path: str
    why: str


class PathList:
    """Paths, perhaps with reasons: a list that stops growing and counts on."""

    def __init__(self, items: int = LISTED_ITEMS) -> None:
        self._items: list[Skipped] = []
        self._room, self._characters = items, LISTED_CHARACTERS
        self.more = 0
        """How many were left off."""

    def note(self, path: Callable[[], str], why: str = "") -> None:
        """Take in one path; it is only put together while there is room."""
        if self._room > 0 and self._characters > 0:
            text = path()
            if len(text) <= self._characters:
                self._room -= 1
                self._characters -= len(text)
                self._items.append(Skipped(text, why))
                return
            self._room = 0  # long paths are not put together again and again only to be left off
        self.more += 1

    def listed(self) -> tuple[Skipped, ...]:
        """The paths that found room, with their reasons."""
        return tuple(self._items)

    def sorted(self) -> tuple[str, ...]:
        """The paths that found room, sorted."""
        return tuple(sorted(item.path for item in self._items))


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """One snapshot."""

    id: str
    """SHA-256 of its manifest, in hex; equal trees have equal ids."""
    label: str
    """What the caller of the newest `take` called it."""
    number: int
    """Grows with every `take`; orders snapshots by age."""
    files: int
    """Files whose content is kept."""
    directories: int
    bytes: int
    """Content of these files."""
    new_bytes: int
    """Bytes that this `take` added to the store, lists included; 0 when nothing had changed."""
    skipped: tuple[Skipped, ...] = ()
    """What the snapshot cannot bring back, and why."""
    skipped_more: int = 0
    """How many of these are not listed."""
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened between two snapshots."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    """Other content, link target or kind."""
    mode_changed: tuple[str, ...]
    """Other permission bits, whatever else changed."""
    more: int = 0
    """Paths that found no room in the lists."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.mode_changed or self.more)


@dataclass(frozen=True, slots=True)
class Restoration:
    """What a restoration did, or would do."""

    id: str
    applied: bool
    """False for a preview."""
    written: tuple[str, ...] = ()
    """Files, links and pipes made or replaced."""
    made: tuple[str, ...] = ()
    """Directories."""
    removed: tuple[str, ...] = ()
    """What was not in the snapshot; a directory stands for all it held."""
    mode_changed: tuple[str, ...] = ()
    more: int = 0
    """Paths that found no room in the lists above."""
    left: tuple[Skipped, ...] = ()
    """What the snapshot does not hold and was therefore left as it is."""
    failed: tuple[Skipped, ...] = ()
    """What could not be done; each file is whole, in its old or its new state."""
    unmatched: tuple[str, ...] = ()
    """Paths asked for that neither the snapshot nor the workspace has."""
    verified: bool = False
    """A second look by content found nothing left to do. Always false for a preview."""

    @property
    def steps(self) -> int:
        """How many changes there are."""
        return len(self.written) + len(self.made) + len(self.removed) + len(self.mode_changed) + self.more


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """What was cleared away."""

    forgotten: tuple[str, ...]
    """Snapshots given up for the size budget, oldest first."""
    objects: int
    """Objects removed."""
    kept_bytes: int
    """Size of the store afterwards."""
    kept: int
    """Snapshots afterwards."""


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What a store holds."""

    kept: int
    """Snapshots."""
    bytes: int
    """Room that the store takes on the disk."""
    newest: SnapshotInfo | None = None
