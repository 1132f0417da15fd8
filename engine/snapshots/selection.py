"""The part of a tree that the operator asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from engine.snapshots.entry import escape, unescape
from engine.snapshots.errors import SnapshotError


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
        if name in ("", ".", "..") or "\0" in name or escape(unescape(name)) != name:
            raise SnapshotError(
                f"{path!r} is not a path as snapshots write them: relative to the root, without '..', with "
                "backslashes doubled and control characters as \\xNN."
            )
    return names
