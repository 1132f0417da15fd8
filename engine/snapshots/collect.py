"""Which objects snapshots stand on, whether these are whole, and clearing away the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection
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


def collect(store: SnapshotStore, budget: int, keep: Collection[str], checkpoint: Checkpoint) -> Cleared:
    """Forget the oldest snapshots until the rest fits the budget, and remove what nothing names.

    Args:
        store: opened for writing.
        budget: bytes of objects; the newest snapshot stays even if it alone is larger.
        keep: ids that are not forgotten whatever they take.
        checkpoint: see `Checkpoint`.

    Raises:
        SnapshotError: a record or a directory cannot be read, so that nothing is certain to be unneeded.
    """
    sizes = dict(store.objects.all())
    records = store.records()
    live: set[str] = set()
    for record in records:
        if record.info.id in keep:
            live |= _reach(store, record, live, checkpoint)
    total = sum(sizes.get(digest, 0) for digest in live)
    forgotten: list[str] = []
    for record in reversed(records):
        if record.info.id in keep:
            continue
        more = _reach(store, record, live, checkpoint)
        size = sum(sizes.get(digest, 0) for digest in more)
        if forgotten or (total + size > budget and record is not records[-1]):
            forgotten.insert(0, record.info.id)
        else:
            live |= more
            total += size
    store.forget(forgotten)
    return _sweep(store, sizes, live, forgotten, checkpoint)


def _sweep(
    store: SnapshotStore, sizes: dict[str, int], live: set[str], forgotten: list[str], checkpoint: Checkpoint
) -> Cleared:
    removed = freed = 0
    for digest, size in sizes.items():
        checkpoint()
        if digest not in live:
            store.objects.remove(digest)
            removed += 1
            freed += size
    return Cleared(tuple(forgotten), removed, freed, sum(sizes.values()) - freed)


def _reach(store: SnapshotStore, record: Record, live: set[str], checkpoint: Checkpoint) -> set[str]:
    """Digests of all objects of a snapshot that are not known to live already."""
    found: set[str] = set()
    waiting = _top(record)
    try:
        while waiting:
            checkpoint()
            named = waiting.pop()
            if named.digest in live or named.digest in found:
                continue
            found.add(named.digest)
            if named.holds != "content":
                waiting += _names(named, store.objects.read(named.digest))
    except (SnapshotMissing, SnapshotDamaged) as error:
        raise SnapshotDamaged(
            f"Snapshot {record.info.id} is damaged, so nothing was cleared away: forget it first. {error}"
        ) from error
    return found
