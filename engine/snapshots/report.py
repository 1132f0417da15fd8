"""What snapshot operations answer: values only.

Paths are relative to the root, `/` between names that are escaped as `entry.escape` does it, and `.`
for the root. Lists are bounded, because a hostile tree can make them as long as it likes; how many were left
off is said beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

LISTED_ITEMS = 10_000
LISTED_CHARACTERS = 4 * 1024 * 1024
"""Of all paths in one list: one path below 3,000 levels has up to 768,000."""


class Bounded(Generic[T]):
    """A list that stops growing and counts on."""

    def __init__(self, items: int = LISTED_ITEMS, characters: int = LISTED_CHARACTERS) -> None:
        self._items: list[T] = []
        self._room, self._characters = items, characters
        self.more = 0
        """How many were left off."""

    def __len__(self) -> int:
        return len(self._items) + self.more

    def add(self, path: Callable[[], str], make: Callable[[str], T]) -> None:
        """Take in one item; its path is only put together while there is room."""
        if self._room > 0 and self._characters > 0:
            text = path()
            if len(text) <= self._characters:
                self._room -= 1
                self._characters -= len(text)
                self._items.append(make(text))
                return
            self._room = 0  # long paths are not put together again and again only to be left off
        self.more += 1

    def listed(self) -> tuple[T, ...]:
        """The items that found room."""
        return tuple(self._items)


class PathList(Bounded[str]):
    """Paths."""

    def note(self, path: Callable[[], str]) -> None:
        """Take in one path."""
        self.add(path, str)

    def sorted(self) -> tuple[str, ...]:
        """The paths that found room, sorted."""
        return tuple(sorted(self._items))


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that was left out or left alone."""

    path: str
    why: str


class SkippedList(Bounded[Skipped]):
    """Paths with reasons."""

    def note(self, path: Callable[[], str], why: str) -> None:
        """Take in one path and its reason."""
        self.add(path, lambda text: Skipped(text, why))


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
    collisions: tuple[str, ...] = ()
    """Paths that differ only in upper and lower case from a sibling."""
    hard_links: int = 0
    """Files with more than one name; restoring gives each name a file of its own."""
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
    identical: bool = False
    """The tree's id afterwards is the snapshot's; false as well where `left` names what differs."""

    @property
    def steps(self) -> int:
        """How many changes there are."""
        return len(self.written) + len(self.made) + len(self.removed) + len(self.mode_changed) + self.more


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether all that a snapshot names is there and holds what it held."""

    id: str
    ok: bool
    objects: int
    """Objects read."""
    bytes: int
    problems: tuple[Skipped, ...] = ()
    """Paths that cannot be restored."""
    problems_more: int = 0


@dataclass(frozen=True, slots=True)
class Cleared:
    """What was cleared away."""

    forgotten: tuple[str, ...]
    """Snapshots given up for the size budget, oldest first."""
    objects: int
    """Objects removed."""
    freed_bytes: int
    kept_bytes: int
    """Size of the store afterwards."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a store holds."""

    kept: int
    """Snapshots."""
    bytes: int
    """Room that the store takes on the disk."""
    newest: SnapshotInfo | None = None
