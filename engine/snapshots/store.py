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
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from engine.snapshots.entry import Directory, Manifest, canonical
from engine.snapshots.errors import SnapshotDamaged, SnapshotError, SnapshotMissing
from engine.snapshots.objects import ObjectStore, sync_all
from engine.snapshots.report import SnapshotInfo
from engine.snapshots.stat_cache import StatCache


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept of a snapshot beside its objects."""

    info: SnapshotInfo
    times: str
    """Digest of the object with the times of its files."""


_records = TypeAdapter(Record)
_NAME = re.compile(r"[0-9]{12}-[0-9a-f]{64}")
"""Files of records: number, then id."""


class SnapshotStore:
    """Objects and records below one directory, which no agent may reach.

    Blocking; for one thread at a time.
    """

    def __init__(self, directory: Path, floor_bytes: int = 0) -> None:
        self.directory = directory
        self.objects = ObjectStore(directory, floor_bytes)
        self.cache = StatCache(directory / "stat-cache", directory / "passing")
        self._snapshots = directory / "snapshots"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The right to change the store, for one process at a time.

        Raises:
            SnapshotError: another process has it, or the directory cannot be used.
        """
        try:
            self._snapshots.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SnapshotError(
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
            os.close(lock)

    def _take(self, lock: int) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SnapshotError(
                f"The snapshot store {self.directory} is in use by another process ({error.strerror}); "
                "wait until it is done."
            ) from error

    def records(self) -> list[Record]:
        """All snapshots, oldest first.

        Raises:
            SnapshotDamaged: a record cannot be read.
        """
        return [self._read(path) for path in sorted(self._paths().values(), key=_number)]

    def record(self, snapshot: str) -> Record:
        """What is kept of one snapshot.

        Raises:
            SnapshotMissing: there is none with this id.
            SnapshotDamaged: its record cannot be read.
        """
        path = self._paths().get(snapshot)
        if path is None:
            raise SnapshotMissing(
                f"There is no snapshot {snapshot[:80]!r}: it was never taken, or was forgotten."
            )
        return self._read(path)

    def next_number(self) -> int:
        """One more than the newest snapshot's."""
        return max(map(_number, self._paths().values()), default=0) + 1

    def keep(self, record: Record) -> None:
        """Make the snapshot exist; its objects must be committed.

        Raises:
            SnapshotError: the disk refused.
        """
        info = record.info
        path = self._snapshots / f"{info.number:012d}-{info.id}"
        part = self.directory / "passing" / secrets.token_hex(8)
        older = self._paths().get(info.id)
        try:
            part.write_bytes(_records.dump_json(record))
            sync_all([part], self.directory)
            part.replace(path)
            sync_all([self._snapshots], self.directory)
            if older is not None:
                older.unlink()
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise SnapshotError(
                f"Snapshot {info.id} could not be written down ({error.strerror}): check the room on the "
                f"disk of {self.directory} and who may write there."
            ) from error

    def forget(self, snapshots: Collection[str]) -> None:
        """Remove the records of snapshots; their objects stay until they are collected.

        Raises:
            SnapshotMissing: there is none with one of the ids; nothing was removed.
            SnapshotError: the disk refused.
        """
        paths = self._paths()
        for snapshot in snapshots:
            if snapshot not in paths:
                raise SnapshotMissing(f"There is no snapshot {snapshot[:80]!r} to forget.")
        try:
            for snapshot in snapshots:
                for path in self._snapshots.glob(f"*-{snapshot}"):
                    path.unlink()
            if snapshots:  # before any object goes: no record may come back that stands on nothing
                sync_all([self._snapshots], self.directory)
        except OSError as error:
            raise SnapshotError(f"Snapshots cannot be removed ({error.strerror}).") from error

    def _paths(self) -> dict[str, Path]:
        """The records' files by snapshot; a kill may have left an older one of the same snapshot."""
        try:
            found = [path for path in self._snapshots.iterdir() if _NAME.fullmatch(path.name)]
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SnapshotError(f"{self._snapshots} cannot be read ({error.strerror}).") from error
        return {path.name[13:]: path for path in sorted(found, key=_number)}

    def _read(self, path: Path) -> Record:
        try:
            return _records.validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise SnapshotDamaged(
                f"The record of snapshot {path.name[13:]} cannot be read: restore {path} from a backup, "
                "or remove it."
            ) from error

    def manifest(self, snapshot: str) -> Manifest:
        """The top of a snapshot. Raises SnapshotMissing or SnapshotDamaged."""
        self.record(snapshot)
        return Manifest.decoded(self.objects.read(snapshot))

    def tree(self, digest: str) -> Directory:
        """One directory. Raises SnapshotMissing or SnapshotDamaged."""
        return Directory.decoded(self.objects.read(digest))

    def put_times(self, times: list[list[int]]) -> str:
        """Keep the times of a snapshot's entries and answer the object's digest."""
        return self.objects.put(zlib.compress(canonical(times), 1))

    def times(self, digest: str) -> list[list[int]]:
        """Times in nanoseconds: a list a directory, parents first, in the order of its entries.

        Raises:
            SnapshotMissing: they are gone.
            SnapshotDamaged: they are not what they were.
        """
        try:
            found: list[list[int]] = json.loads(zlib.decompress(self.objects.read(digest)))
        except (zlib.error, ValueError) as error:
            raise SnapshotDamaged(f"Object {digest} of the snapshot store holds no times.") from error
        return found


def _number(path: Path) -> int:
    """The number that a record's file name begins with."""
    return int(path.name[:12])
