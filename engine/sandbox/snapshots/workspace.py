"""Snapshots of a workspace: taken before each mutating action, so that it can be brought back.

Content-addressed and incremental: a snapshot of an unchanged tree reads only names and times, and adds
nothing to the store. Kept are the content of files, permission bits, links, named pipes and empty
directories; times come back with files that are rewritten. Owners, extended attributes, set-id bits of files
and the sharing of hard links do not.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from engine.sandbox.completion import run_to_completion
from engine.sandbox.snapshots import entry as stored
from engine.sandbox.snapshots.objects import sync_file_system
from engine.sandbox.snapshots.restore import Restore
from engine.sandbox.snapshots.store import SnapshotStore
from engine.sandbox.snapshots.tree import Comparison, ObjectCollection, entries_below, selection_of
from engine.sandbox.snapshots.walk import SnapshotPolicy, Walk

T = TypeVar("T")
Checkpoint = Callable[[], None]
COLLECTING_S = 0.05
"""How long `collect` has the store before it lets others have it."""


class Snapshots:
    """The snapshots of one workspace.

    Each operation runs in one worker thread, one at a time, and can be cancelled between any two files: then
    nothing of a `take` counts, and a `restore` has left each file whole, in its old or its new state.

    Args:
        root_dir: the workspace. It is opened anew each time and must not be a link.
        store_dir: made when missing. No agent may reach it; below the root it must lie under a name that the
            policy protects.
        policy: what is kept, and the limits.

    Raises:
        SnapshotError: from the constructor, when the store would lie where agents work; from every method,
            when it was not done.
    """

    def __init__(self, root_dir: Path, store_dir: Path, policy: SnapshotPolicy | None = None) -> None:
        self.policy = policy or SnapshotPolicy()
        self._root = root_dir.absolute()
        place = Path(os.path.realpath(store_dir))
        self._store = SnapshotStore(place, self.policy.floor_bytes)
        self._busy = asyncio.Lock()
        root = Path(os.path.realpath(root_dir))
        if place == root or (
            place.is_relative_to(root) and not self.policy.protects(place.relative_to(root).parts[0])
        ):
            raise stored.SnapshotError(
                f"The snapshot store {store_dir} lies in the workspace; choose another place."
            )

    def beside(self, root_dir: Path, name: str) -> Snapshots:
        """Snapshots of another workspace in the same store, one operation at a time with these.

        Args:
            root_dir: the other workspace.
            name: by which it is known here; a file name.
        """
        other = copy(self)
        other._root, other._store = root_dir.absolute(), self._store.beside(name)
        return other

    async def take(self, *, label: str = "") -> stored.SnapshotInfo:
        """Take a snapshot; if an equal one exists, that one gets the label and becomes the newest.

        Raises:
            SnapshotError: the root cannot be read, the disk refused, or another process uses the store;
                nothing half-written counts.
        """
        return await self._run(lambda checkpoint: self._take(label, checkpoint))

    async def diff(self, a: str, b: str) -> stored.Changes:
        """What happened from one snapshot to another, by their ids.

        Raises:
            SnapshotMissing: there is no such snapshot.
            SnapshotDamaged: something that it names is damaged.
        """

        def compare(checkpoint: Checkpoint) -> stored.Changes:
            comparison = Comparison(self._store.tree, checkpoint)
            return comparison.run(self._store.manifest(a), self._store.manifest(b))

        return await self._run(compare)

    async def restore(
        self,
        id: str,  # noqa: A002
        *,
        paths: Collection[str] | None = None,
        dry_run: bool = False,
    ) -> stored.Restoration:
        """Bring the workspace, or some paths of it, back to a snapshot; with `dry_run`, only say how.

        Args:
            id: of the snapshot.
            paths: escaped and relative to the root; None is everything. A path that the snapshot does not
                have is removed.
            dry_run: change nothing.

        Raises:
            SnapshotMissing: there is no such snapshot.
            SnapshotDamaged: one of its directories cannot be read; nothing was changed.
            SnapshotError: a path is malformed, or the root cannot be read.
        """
        return await self._run(lambda checkpoint: self._restore(id, paths, dry_run, checkpoint))

    async def collect(self, *, keep: Collection[str] = ()) -> stored.CollectionResult:
        """Remove what no snapshot needs; while the store is over its budget, forget the oldest snapshots.

        Other operations come in between: none waits for it longer than a moment.

        Args:
            keep: ids that are not forgotten whatever they take.

        Raises:
            SnapshotDamaged: a snapshot cannot be read, so that nothing is certain to be unneeded.
        """
        work = ObjectCollection(self._store, self.policy.store_bytes, self.policy.snapshots, keep)

        def go_on(checkpoint: Checkpoint) -> stored.CollectionResult | None:
            end = time.monotonic() + COLLECTING_S

            def due() -> bool:
                checkpoint()
                return time.monotonic() > end

            with self._store.writing():
                return work.go_on(due)

        while (cleared := await self._run(go_on)) is None:
            pass
        return cleared

    async def _run(self, work: Callable[[Checkpoint], T]) -> T:
        stop = threading.Event()

        def checkpoint() -> None:
            if stop.is_set():
                raise stored.SnapshotStopped("The snapshot operation was cancelled.")

        async with self._busy:
            return await run_to_completion(asyncio.to_thread(work, checkpoint), stop.set)

    @contextmanager
    def _opened_root(self) -> Iterator[int]:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            root = os.open(self._root, flags)
        except OSError as error:
            raise stored.SnapshotError(
                f"The workspace {self._root} cannot be opened ({error.strerror}); it must be a directory "
                "and not a link."
            ) from error
        try:
            yield root
        except OSError as error:
            raise stored.SnapshotError(
                f"The workspace {self._root} cannot be read ({error.strerror})."
            ) from error
        finally:
            os.close(root)

    def _take(self, label: str, checkpoint: Checkpoint) -> stored.SnapshotInfo:
        begin = time.perf_counter()
        with self._opened_root() as root, self._store.writing():
            walked = Walk(root, self.policy, self._store.cache, self._store.objects, checkpoint)
            manifest = walked.run()
            snapshot = self._store.objects.put(manifest.encoded())
            times = self._store.put_times(walked.times)
            checkpoint()
            self._store.objects.flush()
            info = stored.SnapshotInfo(
                id=snapshot,
                label=label,
                number=0,
                files=walked.files,
                directories=manifest.directories,
                bytes=walked.bytes,
                new_bytes=self._store.objects.new_bytes,
                skipped=walked.skipped.listed(),
                skipped_more=walked.skipped.more,
                duration_ms=round((time.perf_counter() - begin) * 1000, 3),
            )
            info = self._store.keep(info, times)
            self._store.cache.settle()
        return info

    def _restore(
        self, snapshot: str, paths: Collection[str] | None, dry_run: bool, checkpoint: Checkpoint
    ) -> stored.Restoration:
        with self._opened_root() as root, self._store.writing():
            manifest = self._store.manifest(snapshot)
            times = self._store.times(self._store.record(snapshot).times)
            for _ in entries_below(manifest.tree, self._store.tree):
                checkpoint()  # a damaged directory is found before anything is changed

            def go(act: bool) -> stored.Restoration:
                return Restore(
                    root,
                    self._store,
                    manifest,
                    times,
                    self.policy,
                    selection_of(paths),
                    act=act,
                    checkpoint=checkpoint,
                ).run(snapshot)

            done = go(act=not dry_run)
            if dry_run:
                return done
            sync_file_system(root)
            again = go(act=False)
            return replace(done, verified=not (again.steps or again.failed or done.failed))
