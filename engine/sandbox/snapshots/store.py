"""The directory in which snapshots are kept: objects, one record a snapshot, a lock.

A snapshot exists when its record does. The record is written last, so that a process killed while it takes a
snapshot leaves at most objects that nothing names, for the next collection.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import time
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from engine.core.store.places import clear, is_regular
from engine.sandbox.snapshots import entry as stored
from engine.sandbox.snapshots.file_reader import StatCache
from engine.sandbox.snapshots.objects import ObjectStore, sync_all
from engine.value import dataclass, replace


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept of a snapshot beside its objects."""

    info: stored.SnapshotInfo
    times: str
    """Digest of the object with the times of its files."""


@cache
def _records() -> TypeAdapter[Record]:
    return TypeAdapter(Record)


LOST = "its record was damaged"
"""The label of a snapshot whose own is lost."""
_NAME = re.compile(r"[0-9]{12}-[0-9a-f]{64}")
"""Files of records: number, then id."""
_UNKNOWN: tuple[int, dict[str, str]] = (0, {})
TICK_NS = 100_000_000
"""Longer than the file system's clock stands still, in nanoseconds."""


class SnapshotStore:
    """Objects and records below one directory, which no agent may reach.

    Blocking; for one thread at a time.
    """

    def __init__(self, directory: Path, floor_bytes: int = 0) -> None:
        self.directory = directory
        self.objects = ObjectStore(directory, floor_bytes)
        self.cache = StatCache(directory / "stat-cache", directory / "passing")
        self._snapshots = directory / "snapshots"
        self._known = [_UNKNOWN]
        """When the directory was changed last, and what `names` found then; shared with stores beside it."""

    def beside(self, name: str) -> SnapshotStore:
        """The same store for another tree, of whose files it is remembered apart what they held."""
        other = copy(self)
        other.cache = StatCache(self.directory / f"stat-cache-{name}", self.directory / "passing")
        return other

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The right to change the store, for one process at a time.

        Raises:
            SnapshotError: another process has it, or the directory cannot be used.
        """
        try:
            self._snapshots.mkdir(mode=0o700, parents=True, exist_ok=True)
            place = self.directory / "lock"
            if not is_regular(place):
                clear(place)
            lock = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise stored.SnapshotError(
                f"The snapshot store {self.directory} cannot be opened ({error.strerror}): check who may "
                "write there."
            ) from error
        try:
            self._take(lock)
            self.objects.begin()
            try:
                yield
            finally:
                with suppress(OSError):  # the failure that brought us here says more
                    self.objects.discard()
        finally:
            # Closing alone would not do: a child forked meanwhile has it open until it becomes a program.
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)

    def _take(self, lock: int) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise stored.SnapshotError(
                f"The snapshot store {self.directory} is in use by another process ({error.strerror}); "
                "wait until it is done."
            ) from error

    def record(self, snapshot: str) -> Record:
        """What is kept of one snapshot.

        Where its record is damaged the snapshot is there all the same: its files come back, and only when
        they were changed, and what the snapshot was called, is lost.

        Raises:
            SnapshotMissing: there is none with this id.
            SnapshotDamaged: its record and its manifest cannot be read.
        """
        name = self.names().get(snapshot) or self._listed().get(snapshot)
        try:
            record = self.read(name) if name else None
        except stored.SnapshotDamaged:
            record = self._rebuilt(snapshot, int(name[:12]) if name else 0)
        if record is None:
            raise stored.SnapshotMissing(
                f"There is no snapshot {snapshot[:80]!r}: it was never taken, or was forgotten."
            )
        return record

    def _rebuilt(self, snapshot: str, number: int) -> Record:
        directories = stored.Manifest.decoded(self.objects.read(snapshot)).directories
        return Record(stored.SnapshotInfo(snapshot, LOST, number, 0, directories, 0, 0), "")

    def keep(self, info: stored.SnapshotInfo, times: str) -> stored.SnapshotInfo:
        """Make the snapshot exist, with the next number, and its objects durable.

        Args:
            info: of the snapshot; its number counts for nothing.
            times: digest of its times.

        Raises:
            SnapshotError: the disk refused.
        """
        names = self.names()
        info = replace(info, number=int(next(iter(names.values()), "0")[:12]) + 1)
        self.keep_as(names.get(info.id), Record(info, times))
        return info

    def keep_as(self, older: str | None, record: Record) -> None:
        """Write a record, and remove an older one by the name of its file.

        Raises:
            SnapshotError: the disk refused.
        """
        info = record.info
        names, self._known[0] = self.names(), _UNKNOWN
        path = self._snapshots / f"{info.number:012d}-{info.id}"
        part = self.directory / "passing" / secrets.token_hex(8)
        try:
            part.write_bytes(_records().dump_json(record))
            self.objects.commit(part)
            part.replace(path)
            sync_all([self._snapshots], self.directory)
            if older is not None and older != path.name:
                (self._snapshots / older).unlink(missing_ok=True)
            self._note(path.name, names)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise stored.SnapshotError(
                f"Snapshot {info.id} could not be written down ({error.strerror}): check the room on the "
                f"disk of {self.directory} and who may write there."
            ) from error

    def forget(self, snapshots: Collection[str]) -> None:
        """Remove the records of snapshots; their objects stay until they are collected.

        Raises:
            SnapshotMissing: there is none with one of the ids; nothing was removed.
            SnapshotError: the disk refused.
        """
        names = self.names()
        for snapshot in snapshots:
            if snapshot not in names:
                raise stored.SnapshotMissing(f"There is no snapshot {snapshot[:80]!r} to forget.")
        self._known[0] = _UNKNOWN
        try:
            for path in self._snapshots.iterdir():
                if _NAME.fullmatch(path.name) and path.name[13:] in snapshots:
                    path.unlink()
            if snapshots:  # before any object goes: no record may come back whose objects are gone
                sync_all([self._snapshots], self.directory)
        except OSError as error:
            raise stored.SnapshotError(f"Snapshots cannot be removed ({error.strerror}).") from error

    def names(self) -> dict[str, str]:
        """The records' files by snapshot, newest first; a kill may have left an older one of the same.

        They are listed where the directory was changed since: each snapshot asks for all of them.
        """
        try:
            changed, names = self._known[0]
            if changed == self._snapshots.stat().st_mtime_ns:
                return names
        except OSError:
            self._known[0] = _UNKNOWN
        return self._listed()

    def _listed(self) -> dict[str, str]:
        try:
            changed = self._snapshots.stat().st_mtime_ns
            with os.scandir(self._snapshots) as entries:
                result = [entry.name for entry in entries if _NAME.fullmatch(entry.name)]
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise stored.SnapshotError(f"{self._snapshots} cannot be read ({error.strerror}).") from error
        names: dict[str, str] = {}
        for name in sorted(result, reverse=True):
            names.setdefault(name[13:], name)
        # What changes within one tick of the file system's clock has one time.
        self._known[0] = (changed, names) if time.time_ns() - changed > TICK_NS else _UNKNOWN
        return names

    def _note(self, name: str, names: dict[str, str]) -> None:
        """Take up the newest record beside those known, so that not all are listed for it."""
        if name > next(iter(names.values()), ""):
            names = {snapshot: known for snapshot, known in names.items() if snapshot != name[13:]}
            self._known[0] = (self._snapshots.stat().st_mtime_ns, {name[13:]: name, **names})

    def read(self, name: str) -> Record | None:
        """The record in a file, None when it is gone. Raises SnapshotDamaged."""
        path = self._snapshots / name
        try:
            return _records().validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            raise stored.SnapshotDamaged(
                f"The record of snapshot {name[13:]} cannot be read: restore {path} from a backup, "
                "or remove it."
            ) from error

    def manifest(self, snapshot: str) -> stored.Manifest:
        """The top of a snapshot. Raises SnapshotMissing or SnapshotDamaged."""
        self.record(snapshot)
        return stored.Manifest.decoded(self.objects.read(snapshot))

    def tree(self, digest: str) -> stored.Directory:
        """One directory. Raises SnapshotMissing or SnapshotDamaged."""
        return stored.Directory.decoded(self.objects.read(digest))

    def text(self, snapshot: str, path: str, limit: int) -> str | None:
        """The text of a file in a snapshot; None where there is none, or it has more bytes than the limit.

        Raises:
            SnapshotMissing, SnapshotDamaged: see `tree`.
            UnicodeDecodeError: the file is no text.
        """
        tree = self.manifest(snapshot).tree
        *above, last = map(stored.escape, path.split("/"))
        for name in above:
            entries = {entry.name: entry for entry in self.tree(tree).entries}
            if name not in entries or entries[name].kind is not stored.Kind.DIRECTORY:
                return None
            tree = entries[name].digest
        file = next((entry for entry in self.tree(tree).entries if entry.name == last), None)
        if file is None or file.kind is not stored.Kind.FILE or file.size > limit:
            return None
        return self.objects.read(file.digest).decode()

    def put_times(self, times: list[list[int]]) -> str:
        """Keep the times of a snapshot's entries and answer the object's digest."""
        return self.objects.put(zlib.compress(stored.canonical(times), 1))

    def times(self, digest: str) -> list[list[int]]:
        """Times in nanoseconds: a list a directory, parents first, in the order of its entries; none for ''.

        Raises:
            SnapshotMissing: they are gone.
            SnapshotDamaged: they are not what they were.
        """
        if not digest:
            return []
        try:
            result: list[list[int]] = json.loads(zlib.decompress(self.objects.read(digest)))
        except (zlib.error, ValueError) as error:
            raise stored.SnapshotDamaged(f"Object {digest} of the snapshot store holds no times.") from error
        return result


def store_status(directory: Path) -> stored.StoreStatus:
    """What a store holds, looked at without a lock: others may be writing.

    Raises:
        SnapshotError: it cannot be read.
    """
    store = SnapshotStore(directory)
    names = store.names()
    newest = store.read(next(iter(names.values()))) if names else None
    blocks = 0
    for path in directory.rglob("*"):
        with suppress(FileNotFoundError):
            blocks += path.lstat().st_blocks
    return stored.StoreStatus(len(names), blocks * 512, newest.info if newest else None)
