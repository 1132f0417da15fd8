"""The trees of snapshots, without the workspace: the part that was asked for, what differs between two, and
clearing away the objects that no snapshot names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from engine.sandbox.snapshots import entry as stored
from engine.sandbox.snapshots.store import SnapshotStore


@dataclass(slots=True)
class Selection:
    """A directory or file that was asked for, or that leads to one."""

    whole: bool = False
    """Everything from here on was asked for."""
    below: dict[str, Selection] = field(default_factory=dict)
    """By escaped name; empty when `whole`."""
    found: bool = False
    """Whether the snapshot or the workspace has it."""

    def at(self, name: str) -> Selection | None:
        """What was asked for of an escaped name."""
        return EVERYTHING if self.whole else self.below.get(name)

    def unmatched(self) -> Iterator[str]:
        """Paths that were asked for and not found."""
        waiting = [("", self)]
        while waiting:
            path, here = waiting.pop()
            if here.whole and not here.found and path:
                yield path
            waiting += [(f"{path}/{name}" if path else name, below) for name, below in here.below.items()]


EVERYTHING = Selection(whole=True)


def selection_of(paths: Collection[str] | None) -> Selection:
    """The selection of some paths, or of everything when there is None.

    Args:
        paths: relative to the root, escaped; `.` is the root.

    Raises:
        SnapshotError: a path is empty, absolute, leaves the root or is not escaped as snapshots do it.
    """
    if paths is None:
        return EVERYTHING
    root = Selection()
    for path in paths:
        here = root
        for name in _names(path):
            if not here.whole:
                here = here.below.setdefault(name, Selection())
        here.whole = True
        here.below.clear()
    return root


def _names(path: str) -> list[str]:
    if path == ".":
        return []
    names = path.split("/")
    for name in names:
        if name in ("", ".", "..") or "\0" in name or stored.escape(stored.unescape(name)) != name:
            raise stored.SnapshotError(
                f"{path!r} is not a path as snapshots write them: relative to the root, without '..', with "
                "backslashes doubled and control characters as \\xNN."
            )
    return names


Load = Callable[[str], stored.Directory]
"""A directory by its digest."""


class Trail(NamedTuple):
    """A place in a tree; paths are only put together when they are read."""

    parent: Trail | None
    name: str

    def path(self) -> str:
        """The escaped path; `.` for the root."""
        names = []
        here: Trail | None = self
        while here is not None and here.parent is not None:
            names.append(here.name)
            here = here.parent
        return "/".join(reversed(names)) or "."


ROOT = Trail(None, "")


def entries_below(digest: str, load: Load, trail: Trail = ROOT) -> Iterator[tuple[Trail, stored.Entry]]:
    """Every entry of a tree; a directory comes before what is in it."""
    waiting = [(trail, digest)]
    while waiting:
        parent, tree = waiting.pop()
        for entry in load(tree).entries:
            here = Trail(parent, entry.name)
            yield here, entry
            if entry.kind is stored.Kind.DIRECTORY:
                waiting.append((here, entry.digest))


class Comparison:
    """What differs between two snapshots; whole directories that are the same are passed over."""

    def __init__(self, load: Load, checkpoint: Callable[[], None]) -> None:
        self._load, self._checkpoint = load, checkpoint
        self._lists = {name: stored.PathList() for name in ("added", "removed", "changed", "mode_changed")}
        self._added, self._removed, self._changed, self._mode = self._lists.values()
        self._waiting: list[tuple[Trail, str, str]] = []

    def run(self, item: stored.Manifest, other: stored.Manifest) -> stored.Changes:
        """The changes that lead from one to the other."""
        if item.mode != other.mode:
            self._mode.note(ROOT.path)
        self._waiting.append((ROOT, item.tree, other.tree))
        while self._waiting:
            self._checkpoint()
            trail, before, after = self._waiting.pop()
            if before != after:
                self._directory(trail, before, after)
        more = sum(paths.more for paths in self._lists.values())
        return stored.Changes(**{name: paths.sorted() for name, paths in self._lists.items()}, more=more)

    def _directory(self, trail: Trail, before: str, after: str) -> None:
        old, new = self._load(before), self._load(after)
        result = {entry.name: entry for entry in new.entries}
        if old.unlisted != new.unlisted:
            self._changed.note(trail.path)
        for entry in old.entries:
            here = Trail(trail, entry.name)
            then = result.pop(entry.name, None)
            if then is None:
                self._whole(here, entry, self._removed)
            elif then != entry:
                self._entry(here, entry, then)
        for entry in result.values():
            self._whole(Trail(trail, entry.name), entry, self._added)

    def _entry(self, here: Trail, before: stored.Entry, after: stored.Entry) -> None:
        if before.mode != after.mode and before.kind == after.kind:
            self._mode.note(here.path)
        if before.kind is stored.Kind.DIRECTORY and after.kind is stored.Kind.DIRECTORY:
            self._waiting.append((here, before.digest, after.digest))
        elif _content(before) != _content(after):
            self._changed.note(here.path)
            self._below(here, before, self._removed)
            self._below(here, after, self._added)

    def _whole(self, here: Trail, entry: stored.Entry, paths: stored.PathList) -> None:
        paths.note(here.path)
        self._below(here, entry, paths)

    def _below(self, here: Trail, entry: stored.Entry, paths: stored.PathList) -> None:
        if entry.kind is stored.Kind.DIRECTORY:
            for trail, _ in entries_below(entry.digest, self._load, here):
                self._checkpoint()
                paths.note(trail.path)


def _content(entry: stored.Entry) -> tuple[object, ...]:
    """All but the mode; of a directory only that it is one."""
    return (entry.kind, entry.digest, entry.target, entry.size, entry.why)


_Named = tuple[str, Literal["manifest", "directory", "content"]]
"""The digest of an object that a snapshot names, and what it holds."""


def _named_by(holds: str, data: bytes) -> list[_Named]:
    """What a manifest or a directory names in its turn."""
    if holds == "manifest":
        return [(stored.Manifest.decoded(data).tree, "directory")]
    return [
        (digest, "directory" if kind == stored.Kind.DIRECTORY else "content")
        for digest, kind in stored.Directory.digests(data)
    ]


class ObjectCollection:
    """Forgets the oldest snapshots until the rest fits, and removes what nothing names.

    It can be interrupted between any two objects, so that no action waits for it: who drives it has the
    store for writing while `go_on` runs, and snapshots may be taken between two calls. These are kept.

    Args:
        store: what is cleared.
        budget: bytes of objects; the newest snapshot stays even if it alone is larger.
        most: how many snapshots may stay.
        keep: ids that are not forgotten whatever they take.
    """

    def __init__(self, store: SnapshotStore, budget: int, most: int, keep: Collection[str]) -> None:
        self._store, self._budget, self._most, self._keep = store, budget, most, frozenset(keep)
        self._sizes: dict[str, int] = {}
        self._live: set[str] = set()
        self._known: set[str] = set()
        """Names of the records that were looked at."""
        self._forgotten: list[str] = []
        self._total = self._kept = 0
        self._interrupted = False
        self._cleared: stored.CollectionResult | None = None
        self._work = self._steps()

    def go_on(self, due: Callable[[], bool]) -> stored.CollectionResult | None:
        """Clear until all is done, or until it is `due` to let others have the store: then None.

        Raises:
            SnapshotError: a record or a directory cannot be read, so that nothing is certain to be unneeded.
        """
        self._interrupted = True
        for _ in self._work:
            if due():
                return None
        return self._cleared

    def _steps(self) -> Iterator[None]:
        for digest, size in self._store.objects.all():
            self._sizes[digest] = size
            yield
        names = self._store.names()
        self._known.update(names.values())
        newest = next(iter(names), "")
        for snapshot, name in names.items():
            if snapshot in self._keep or snapshot == newest:
                yield from self._take_in(name)
        for snapshot, name in names.items():
            if snapshot not in self._keep and snapshot != newest:
                yield from self._weigh(snapshot, name)
        self._look_again()
        here = self._store.names()
        self._store.forget(here.keys() & self._forgotten)
        yield from self._sweep()

    def _weigh(self, snapshot: str, name: str) -> Iterator[None]:
        """Keep the next older snapshot if it fits."""
        if not self._forgotten and self._kept < self._most:
            more = yield from self._reach(name)
            if self._total + self._size(more) <= self._budget:
                self._admit(more)
                return
        self._forgotten.insert(0, snapshot)

    def _look_again(self) -> None:
        """Take in what was snapshotted while others had the store.

        At one go, or a busy agent would never let it end; its snapshots took longer than this takes.
        """
        if not self._interrupted:
            return
        self._interrupted = False
        for snapshot, name in self._store.names().items():
            if name not in self._known:
                self._known.add(name)
                if snapshot in self._forgotten:
                    self._forgotten.remove(snapshot)
                for _ in self._take_in(name):
                    pass

    def _take_in(self, name: str) -> Iterator[None]:
        self._admit((yield from self._reach(name)))

    def _admit(self, more: set[str]) -> None:
        self._total += self._size(more)
        self._kept += 1
        self._live |= more

    def _size(self, more: set[str]) -> int:
        return sum(self._sizes.get(digest, 0) for digest in more - self._live)

    def _reach(self, name: str) -> Generator[None, None, set[str]]:
        """Digests of all objects of a snapshot that are not known to live already."""
        result: set[str] = set()
        waiting: list[_Named] = [(name[13:], "manifest")]
        # A record that cannot be read names no times; the snapshot itself is named by its file.
        with suppress(stored.SnapshotDamaged):
            record = self._store.read(name)
            if record is None:
                return result  # taken again or forgotten meanwhile
            waiting.insert(0, (record.times, "content"))
        try:
            while waiting:
                yield
                digest, holds = waiting.pop()
                if digest in self._live or digest in result:
                    continue
                result.add(digest)
                if holds != "content":
                    waiting += _named_by(holds, self._store.objects.read(digest))
        except (stored.SnapshotMissing, stored.SnapshotDamaged) as error:
            raise stored.SnapshotDamaged(
                f"Snapshot {name[13:]} is damaged, so nothing was cleared away: forget it first. {error}"
            ) from error
        return result

    def _sweep(self) -> Iterator[None]:
        removed = 0
        kept = sum(self._sizes.values())
        for digest, size in self._sizes.items():
            self._look_again()
            if digest not in self._live:
                self._store.objects.remove(digest)
                removed += 1
                kept -= size
            yield
        self._cleared = stored.CollectionResult(tuple(self._forgotten), removed, kept, self._kept)
