"""Which objects snapshots stand on, whether these are whole, and clearing away the rest."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from collections.abc import Collection as Ids
from typing import Literal, NamedTuple

from engine.snapshots.entry import Directory, Kind, Manifest
from engine.snapshots.errors import SnapshotDamaged, SnapshotMissing
from engine.snapshots.report import Cleared, SkippedList, Verification
from engine.snapshots.store import Record, SnapshotStore
from engine.snapshots.tree import ROOT, Trail

Checkpoint = Callable[[], None]
"""Called between any two objects; may raise to end the work."""


class _Named(NamedTuple):
    """An object that a snapshot names."""

    trail: Trail
    digest: str
    holds: Literal["manifest", "directory", "content"]


def _top(record: Record) -> list[_Named]:
    return [_Named(ROOT, record.times, "content"), _Named(ROOT, record.info.id, "manifest")]


def _names(named: _Named, data: bytes) -> list[_Named]:
    """What a manifest or a directory names in its turn."""
    if named.holds == "manifest":
        return [_Named(named.trail, Manifest.decoded(data).tree, "directory")]
    return [
        _Named(
            Trail(named.trail, entry.name),
            entry.digest,
            "directory" if entry.kind is Kind.DIRECTORY else "content",
        )
        for entry in Directory.decoded(data).entries
        if entry.digest
    ]


def verify(store: SnapshotStore, snapshot: str, checkpoint: Checkpoint) -> Verification:
    """Read everything a snapshot stands on and check it.

    Raises:
        SnapshotMissing: there is no such snapshot.
        SnapshotDamaged: its record is damaged.
    """
    problems, seen, size = SkippedList(), set[str](), 0
    waiting = _top(store.record(snapshot))
    while waiting:
        checkpoint()
        named = waiting.pop()
        if named.digest in seen:
            continue
        seen.add(named.digest)
        try:
            if named.holds == "content":
                size += sum(map(len, store.objects.chunks(named.digest)))
            else:
                data = store.objects.read(named.digest)
                size += len(data)
                waiting += _names(named, data)
        except (SnapshotMissing, SnapshotDamaged) as error:
            problems.note(named.trail.path, str(error))
    return Verification(snapshot, len(problems) == 0, len(seen), size, problems.listed(), problems.more)


class Collection:
    """Forgets the oldest snapshots until the rest fits, and removes what nothing names.

    It can be interrupted between any two objects, so that no action waits for it: who drives it has the
    store for writing while `go_on` runs, and snapshots may be taken between two calls. These are kept.

    Args:
        store: what is cleared.
        budget: bytes of objects; the newest snapshot stays even if it alone is larger.
        most: how many snapshots may stay.
        keep: ids that are not forgotten whatever they take.
    """

    def __init__(self, store: SnapshotStore, budget: int, most: int, keep: Ids[str]) -> None:
        self._store, self._budget, self._most, self._keep = store, budget, most, frozenset(keep)
        self._sizes: dict[str, int] = {}
        self._live: set[str] = set()
        self._known: set[str] = set()
        """Names of the records that were looked at."""
        self._forgotten: list[str] = []
        self._total = self._kept = 0
        self._interrupted = False
        self._cleared: Cleared | None = None
        self._work = self._steps()

    def go_on(self, due: Callable[[], bool]) -> Cleared | None:
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
        record = self._store.read(name)
        found: set[str] = set()
        if record is None:
            return found  # taken again or forgotten meanwhile
        waiting = _top(record)
        try:
            while waiting:
                yield
                named = waiting.pop()
                if named.digest in self._live or named.digest in found:
                    continue
                found.add(named.digest)
                if named.holds != "content":
                    waiting += _names(named, self._store.objects.read(named.digest))
        except (SnapshotMissing, SnapshotDamaged) as error:
            raise SnapshotDamaged(
                f"Snapshot {record.info.id} is damaged, so nothing was cleared away: forget it first. {error}"
            ) from error
        return found

    def _sweep(self) -> Iterator[None]:
        removed = freed = 0
        for digest, size in self._sizes.items():
            self._look_again()
            if digest not in self._live:
                self._store.objects.remove(digest)
                removed += 1
                freed += size
            yield
        kept = sum(self._sizes.values()) - freed
        self._cleared = Cleared(tuple(self._forgotten), removed, freed, kept)
