"""Comparing and following the trees of snapshots, without the workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from engine.snapshots.entry import Directory, Entry, Kind, Manifest
from engine.snapshots.report import Changes, PathList

Load = Callable[[str], Directory]
"""A directory by its digest."""


class Trail(NamedTuple):
    """A place in a tree; paths are only put together when somebody wants to read them."""

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


def entries_below(digest: str, load: Load, trail: Trail = ROOT) -> Iterator[tuple[Trail, Entry]]:
    """Every entry of a tree; a directory comes before what is in it."""
    waiting = [(trail, digest)]
    while waiting:
        parent, tree = waiting.pop()
        for entry in load(tree).entries:
            here = Trail(parent, entry.name)
            yield here, entry
            if entry.kind is Kind.DIRECTORY:
                waiting.append((here, entry.digest))


class Comparison:
    """What differs between two snapshots; whole directories that are the same are passed over."""

    def __init__(self, load: Load, checkpoint: Callable[[], None]) -> None:
        self._load, self._checkpoint = load, checkpoint
        self._added, self._removed, self._changed, self._mode = PathList(), PathList(), PathList(), PathList()
        self._waiting: list[tuple[Trail, str, str]] = []

    def run(self, one: Manifest, other: Manifest) -> Changes:
        """The changes that lead from one to the other."""
        if one.mode != other.mode:
            self._mode.note(ROOT.path)
        self._waiting.append((ROOT, one.tree, other.tree))
        while self._waiting:
            self._checkpoint()
            trail, before, after = self._waiting.pop()
            if before != after:
                self._directory(trail, before, after)
        return Changes(
            added=self._added.sorted(),
            removed=self._removed.sorted(),
            changed=self._changed.sorted(),
            mode_changed=self._mode.sorted(),
            more=self._added.more + self._removed.more + self._changed.more + self._mode.more,
        )

    def _directory(self, trail: Trail, before: str, after: str) -> None:
        old, new = self._load(before), self._load(after)
        found = {entry.name: entry for entry in new.entries}
        if old.unlisted != new.unlisted:
            self._changed.note(trail.path)
        for entry in old.entries:
            here = Trail(trail, entry.name)
            then = found.pop(entry.name, None)
            if then is None:
                self._whole(here, entry, self._removed)
            elif then != entry:
                self._entry(here, entry, then)
        for entry in found.values():
            self._whole(Trail(trail, entry.name), entry, self._added)

    def _entry(self, here: Trail, before: Entry, after: Entry) -> None:
        if before.mode != after.mode and before.kind == after.kind:
            self._mode.note(here.path)
        if before.kind is Kind.DIRECTORY and after.kind is Kind.DIRECTORY:
            self._waiting.append((here, before.digest, after.digest))
        elif _content(before) != _content(after):
            self._changed.note(here.path)
            self._below(here, before, self._removed)
            self._below(here, after, self._added)

    def _whole(self, here: Trail, entry: Entry, paths: PathList) -> None:
        paths.note(here.path)
        self._below(here, entry, paths)

    def _below(self, here: Trail, entry: Entry, paths: PathList) -> None:
        if entry.kind is Kind.DIRECTORY:
            for trail, _ in entries_below(entry.digest, self._load, here):
                self._checkpoint()
                paths.note(trail.path)


def _content(entry: Entry) -> tuple[object, ...]:
    """All but the mode; of a directory only that it is one."""
    return (entry.kind, entry.digest, entry.target, entry.size, entry.why)
