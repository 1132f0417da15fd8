"""Bringing a workspace back to a snapshot, or saying what that would take.

The snapshot's tree and the workspace are gone through side by side, and each name is decided on as it is
found, so that a preview and a restoration cannot disagree but by what happened in between. What the snapshot
does not hold is left alone; what it does not know is removed.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.sandbox.snapshots import cursor as hands
from engine.sandbox.snapshots import entry as stored
from engine.sandbox.snapshots.cursor import Cursor
from engine.sandbox.snapshots.file_reader import HashingSink, content_digest
from engine.sandbox.snapshots.store import SnapshotStore
from engine.sandbox.snapshots.tree import ROOT, Selection, Trail
from engine.sandbox.snapshots.walk import CACHE_OMITTED, CHANGING, SnapshotPolicy, listed_digest

_AGAIN = CHANGING | {errno.EEXIST, errno.ENOTEMPTY, errno.EISDIR}
_SINK = HashingSink()


@dataclass(slots=True)
class _Wanted:
    """An entry of the snapshot, and what is known of it beside."""

    entry: stored.Entry
    mtime_ns: int
    number: int
    """Of a directory: its place in the list of times."""


@dataclass(slots=True)
class _Frame:
    """A directory that is being restored."""

    trail: Trail
    pending: list[_Wanted]
    chosen: Selection
    mode: int
    """Permission bits it gets when all in it is done."""
    there: bool
    """Whether the cursor stands in it; in a preview, a directory may have to be made first."""
    depth: int
    """Of the cursor in it."""
    extras: stored.Directory | None
    """What the snapshot has in it, until everything else is removed."""


class Restore:
    """One restoration, or the preview of one; used once.

    Args:
        root: descriptor of the workspace's root.
        store: where the snapshot is kept.
        manifest: its top.
        times: of its entries.
        policy: protected names, and how often to try.
        chosen: the part of the tree to restore.
        act: False for a preview.
        checkpoint: called between any two names; may raise to end the work.
    """

    def __init__(
        self,
        root: int,
        store: SnapshotStore,
        manifest: stored.Manifest,
        times: list[list[int]],
        policy: SnapshotPolicy,
        chosen: Selection,
        *,
        act: bool,
        checkpoint: Callable[[], None],
    ) -> None:
        self._cursor = Cursor(root)
        self._store, self._manifest, self._times = store, manifest, times
        self._now = time.time_ns()
        self._policy, self._chosen = policy, chosen
        self._act, self._checkpoint = act, checkpoint
        self._frames: list[_Frame] = []
        self._lists = {name: stored.PathList() for name in ("written", "made", "removed", "mode_changed")}
        self._written, self._made, self._removed, self._modes = self._lists.values()
        self._left, self._failed = stored.PathList(), stored.PathList()

    def run(self, snapshot: str) -> stored.Restoration:
        """Do it, or find out what is to be done.

        Raises:
            SnapshotError: a directory of the snapshot cannot be read; nothing was done below it.
            OSError: the root cannot be read.
        """
        try:
            status = os.fstat(self._cursor.fd)
            if self._act:
                hands.unlock(self._cursor.fd, status)
            before = stat.S_IMODE(status.st_mode) & stored.DIRECTORY_MODE
            mode = self._manifest.mode if self._chosen.whole else before
            if mode != before:
                self._modes.note(ROOT.path)
            tree = self._store.tree(self._manifest.tree)
            self._push(ROOT, tree, 0, self._chosen, mode, there=True)
            while self._frames:
                self._checkpoint()
                frame = self._frames[-1]
                if frame.extras is not None:
                    self._remove_extras(frame, frame.extras)
                elif frame.pending:
                    self._visit(frame, frame.pending.pop())
                else:
                    self._leave(self._frames.pop())
        finally:
            while self._frames:  # cut short: what was made writable for the work is put right
                self._leave(self._frames.pop())
            self._cursor.close()
        return self._report(snapshot)

    def _report(self, snapshot: str) -> stored.Restoration:
        changes: dict[str, Any] = {name: paths.sorted() for name, paths in self._lists.items()}
        return stored.Restoration(
            id=snapshot,
            applied=self._act,
            **changes,
            more=sum(paths.more for paths in self._lists.values()),
            left=self._left.listed(),
            failed=self._failed.listed(),
            unmatched=tuple(sorted(self._chosen.unmatched())),
        )

    def _push(
        self, trail: Trail, tree: stored.Directory, number: int, chosen: Selection, mode: int, *, there: bool
    ) -> None:
        """Begin with a directory, in which the cursor stands if it is there."""
        times = self._times[number] if 0 <= number < len(self._times) else []
        pending = []
        below = number + 1
        for at, entry in enumerate(tree.entries):
            if chosen.at(entry.name) is not None:
                pending.append(_Wanted(entry, times[at] if at < len(times) else self._now, below))
            if entry.kind is stored.Kind.DIRECTORY:
                below += entry.size
        known = {entry.name for entry in tree.entries}
        for name in chosen.below.keys() - known:
            if not chosen.below[name].whole:  # leads to something that is no more in the snapshot
                pending.append(_Wanted(stored.Entry(name, stored.Kind.DIRECTORY), 0, -1))
        extras = tree if there else None
        depth = self._cursor.depth
        self._frames.append(_Frame(trail, pending[::-1], chosen, mode, there, depth, extras))

    def _leave(self, frame: _Frame) -> None:
        if not frame.there:
            return
        self._cursor.climb(frame.depth)
        try:
            if self._act:
                status = os.fstat(self._cursor.fd)
                if stat.S_IMODE(status.st_mode) & stored.DIRECTORY_MODE != frame.mode:
                    os.fchmod(self._cursor.fd, frame.mode)
        except OSError as error:
            self._failed.note(frame.trail.path, f"its mode could not be set: {error.strerror}")
        if self._frames:
            self._cursor.leave()

    def _remove_extras(self, frame: _Frame, tree: stored.Directory) -> None:
        """Remove what the snapshot does not have, before anything is written: that makes room."""
        frame.extras = None
        if tree.unlisted:
            self._left.note(frame.trail.path, tree.unlisted)
            return
        known = {entry.name for entry in tree.entries}
        try:
            with os.scandir(self._cursor.fd) as entries:
                for result in entries:
                    self._checkpoint()
                    name = stored.escape(result.name)
                    selected = frame.chosen.at(name)
                    if name in known or selected is None or not selected.whole:
                        continue
                    if frame.trail is ROOT and self._policy.protects(result.name):
                        continue
                    selected.found = True
                    here = Trail(frame.trail, name)
                    if result.is_dir(follow_symlinks=False) and self._is_cache(here):
                        self._left.note(here.path, CACHE_OMITTED)
                    else:
                        self._remove(here, result.name)
        except OSError as error:
            self._failed.note(frame.trail.path, f"could not be listed: {error.strerror}")

    def _is_cache(self, here: Trail) -> bool:
        """Whether it is a directory that every snapshot leaves out, though this one was taken before it."""
        paths = self._policy.cache_paths
        return any(path.rpartition("/")[2] == here.name and path == here.path() for path in paths)

    def _remove(self, here: Trail, name: str) -> None:
        try:
            if self._act:
                hands.remove(self._cursor, name, self._checkpoint)
            self._removed.note(here.path)
        except OSError as error:
            self._failed.note(here.path, f"could not be removed: {error.strerror}")

    def _visit(self, frame: _Frame, target: _Wanted) -> None:
        """Bring one name to what the snapshot says."""
        here = Trail(frame.trail, target.entry.name)
        chosen = frame.chosen.at(target.entry.name) or Selection()
        chosen.found = target.number >= 0
        depth, why = self._cursor.depth, ""
        for _ in range(self._policy.attempts):
            try:
                self._bring(frame, here, target, chosen)
            except stored.FileChanged:
                why = "kept changing"
            except (stored.SnapshotMissing, stored.SnapshotDamaged) as error:
                why = str(error)
                break
            except OSError as error:
                self._cursor.climb(depth)  # it may have got into a directory, and no further
                why = f"could not be restored: {error.strerror}"
                if error.errno not in _AGAIN:
                    break
            else:
                return
        self._failed.note(here.path, why)

    def _bring(self, frame: _Frame, here: Trail, target: _Wanted, chosen: Selection) -> None:
        entry, name = target.entry, stored.unescape(target.entry.name)
        status = self._status(name) if frame.there else None
        if entry.kind is stored.Kind.DIRECTORY:
            self._directory(here, target, name, status, chosen)
        elif entry.kind not in stored.KEPT:
            self._let_be(here, entry, name, status)
        elif not chosen.whole:
            self._directory(
                here, _Wanted(stored.Entry(entry.name, stored.Kind.DIRECTORY), 0, -1), name, status, chosen
            )
        elif not self._is(entry, name, status, here):
            if self._act:
                self._place(target, name)
            self._written.note(here.path)

    def _status(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self._cursor.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _directory(
        self, here: Trail, target: _Wanted, name: str, status: os.stat_result | None, chosen: Selection
    ) -> None:
        """Step into a directory, which is made if it is not there.

        Where the snapshot has none (a negative number) only what was asked for is looked for in it.
        """
        entry = target.entry
        tree = self._store.tree(entry.digest) if target.number >= 0 else stored.Directory()
        if status is not None and stat.S_ISDIR(status.st_mode):
            there = self._enter(name)
            before = stat.S_IMODE(status.st_mode) & stored.DIRECTORY_MODE
            mode = entry.mode if chosen.whole else before
        elif target.number < 0:
            return
        else:
            there, mode = self._act, entry.mode
            if self._act:
                if status is not None:
                    os.unlink(name, dir_fd=self._cursor.fd)
                os.mkdir(name, 0o700, dir_fd=self._cursor.fd)
                self._cursor.enter(name)
            before = mode
        self._push(here, tree, target.number, chosen, mode, there=there)
        if status is None or not stat.S_ISDIR(status.st_mode):
            self._made.note(here.path)
        elif before != mode:
            self._modes.note(here.path)

    def _enter(self, name: str) -> bool:
        """Step into a directory; False when a preview may not look into it."""
        if self._act:
            hands.enter_to_change(self._cursor, name)
            return True
        try:
            self._cursor.enter(name)
        except PermissionError:
            return False
        return True

    def _is(self, entry: stored.Entry, name: str, status: os.stat_result | None, here: Trail) -> bool:
        """Whether this is what stands there, its mode set right if only that differs."""
        if status is None:
            return False
        if entry.kind is stored.Kind.LINK:
            return (
                stat.S_ISLNK(status.st_mode)
                and stored.escape(os.readlink(name, dir_fd=self._cursor.fd)) == entry.target
            )
        same_mode = stat.S_IMODE(status.st_mode) & stored.FILE_MODE == entry.mode
        if entry.kind is stored.Kind.FIFO:
            return stat.S_ISFIFO(status.st_mode) and same_mode
        if not stat.S_ISREG(status.st_mode) or status.st_size != entry.size:
            return False
        try:
            digest = content_digest(self._cursor.fd, name, status, self._store.cache, _SINK)
        except PermissionError:
            return False
        if digest != entry.digest or (not same_mode and status.st_nlink > 1):
            return False  # another name shares this file, and its mode is not ours to change
        if not same_mode:
            if self._act:
                hands.change_mode(self._cursor.fd, name, entry.mode, stat.S_ISREG)
            self._modes.note(here.path)
        return True

    def _place(self, target: _Wanted, name: str) -> None:
        entry = target.entry
        if entry.kind is stored.Kind.FILE:
            chunks = self._store.objects.chunks(entry.digest)
            hands.place_file(self._cursor, name, chunks, entry.mode, target.mtime_ns)
        elif entry.kind is stored.Kind.LINK:
            hands.place_link(self._cursor, name, stored.unescape(entry.target), target.mtime_ns)
        else:
            hands.place_fifo(self._cursor, name, entry.mode)

    def _let_be(self, here: Trail, entry: stored.Entry, name: str, status: os.stat_result | None) -> None:
        """Leave what the snapshot does not hold, and say so unless it is known to be the same."""
        if entry.kind is stored.Kind.LISTED and status is not None and stat.S_ISDIR(status.st_mode):
            if listed_digest(self._cursor, name) == entry.digest:
                return
            self._left.note(here.path, f"{entry.why}; it is not what it was")
        else:
            self._left.note(here.path, entry.why if status is not None else f"{entry.why}; it is gone")
