"""A backup of a workspace's data as one file, and opening sessions that came as one.

A backup is a gzipped tar of the journal, its blobs and the snapshots of files as they lie in a workspace, and
says which head it has.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
from contextlib import closing, suppress
from pathlib import Path, PurePosixPath

from engine.api.archiving import ArchiveError
from engine.api.closed_workspace import recorded
from engine.api.portable import import_session
from engine.core.ports import Ports
from engine.core.store.blobs import ARCHIVES, BlobStore
from engine.core.store.opening import journal_file
from engine.core.store.origin import first_hash
from engine.core.store.port import DATA_DIRECTORY, DATABASE
from engine.core.store.repair import check_rows, connect_rows, write_journal
from engine.core.store.schema import COLUMNS
from engine.core.store.verify import Verification, verify
from engine.core.trust import FolderTrust

LIMIT = 64 * 1024**3
"""Bytes that a file may hold."""
PARTS = ("blobs", ARCHIVES, "snapshots/snapshots", "snapshots/objects")
"""Of the snapshots what names others stands first, so that what it names is in the file too."""
ABOUT = "backup.json"
"""The first member of a backup: its head."""


class ExportError(ValueError):
    """A file that cannot be written or read; the message says why and what to do."""


def write_backup(workspace: Path, target: Path, trust: FolderTrust | None = None) -> tuple[Verification, int]:
    """Write journal, blobs and snapshots to a new file, also while agents run: what it has, and its bytes.

    Where the journal is the user's own the file says so under the user's seal.

    Raises:
        ExportError: the journal is not sound, or the file cannot be written, or it exists.
    """
    data = workspace / DATA_DIRECTORY
    if not journal_file(workspace).is_file():
        raise ExportError(f"{workspace}: there is no journal here")
    try:
        with tempfile.TemporaryDirectory() as room, target.open("xb") as file:
            copy = Path(room) / DATABASE
            check = _sound_copy(data / DATABASE, copy)
            with tarfile.open(fileobj=file, mode="w:gz") as archive:
                seal = trust.seal_copy(check.head, first_hash(copy)) if trust is not None else ""
                _add_head(archive, check, seal)
                archive.add(copy, f"{DATA_DIRECTORY}/{DATABASE}")
                for part in PARTS:
                    _add_all(archive, data, part)
            file.flush()
            os.fsync(file.fileno())
            return check, file.tell()
    except FileExistsError:
        raise ExportError(f"{target} exists already: choose another name") from None
    except (ExportError, OSError, sqlite3.Error) as error:
        target.unlink(missing_ok=True)
        if isinstance(error, ExportError):
            raise
        raise ExportError(f"{target} cannot be written: {error}") from None


def _add_head(archive: tarfile.TarFile, check: Verification, seal: str) -> None:
    about = json.dumps({"head": check.head, "events": check.events, "seal": seal}).encode()
    member = tarfile.TarInfo(ABOUT)
    member.size = len(about)
    archive.addfile(member, io.BytesIO(about))


def _add_all(archive: tarfile.TarFile, data: Path, part: str) -> None:
    for path in sorted((data / part).rglob("*")):
        # what is cleared away meanwhile was needed by nothing that is in the file
        with suppress(FileNotFoundError):
            if path.is_file() and not path.is_symlink():
                archive.add(path, f"{DATA_DIRECTORY}/{path.relative_to(data)}")


def _sound_copy(source: Path, target: Path) -> Verification:
    with closing(connect_rows(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
    if not (check := check_rows(target)).ok:
        raise ExportError(f"the journal is not sound at {check.first_bad}: {check.reason}")
    return check


def unpack_session(source: Path, room: Path) -> Verification:
    """Make the data of a workspace of an exported session, in a directory that has none. Blocking.

    Raises:
        ExportError: the file is none, is damaged, or holds what an export does not hold.
    """
    if source.is_file() and tarfile.is_tarfile(source):  # as `sessions export` wrote them up to 0.2
        _unpack(source, room)
        database = room / DATA_DIRECTORY / DATABASE
        if not (check := check_rows(database)).ok:
            raise ExportError(f"{source} is not sound at {check.first_bad}: {check.reason}")
        _keep_events_alone(database)
        return check
    try:
        return import_session(source, room, Ports().clock.now())
    except ArchiveError as error:
        raise ExportError(str(error)) from None


def _unpack(source: Path, room: Path) -> None:
    try:
        with tarfile.open(source, mode="r:gz") as archive:
            total = 0
            for member in archive:
                total += member.size
                if total > LIMIT or not _belongs(member):
                    raise ExportError(f"{source}: {member.name[:80]} does not belong in an export")
                archive.extract(member, room, filter="data")
    except (OSError, EOFError, tarfile.TarError) as error:
        raise ExportError(f"{source} is no export of a journal: {error}") from None


def _belongs(member: tarfile.TarInfo) -> bool:
    names = PurePosixPath(member.name).parts
    if not member.isfile() or ".." in names:
        return False
    places = [(ABOUT,), (DATA_DIRECTORY, DATABASE)]
    folders = [(DATA_DIRECTORY, *part.split("/")) for part in PARTS]
    return names in places or any(names[: len(folder)] == folder != names for folder in folders)


async def restore_backup(source: Path, workspace: Path, trust: FolderTrust | None = None) -> Verification:
    """Make a workspace of a backup, once all of it is verified.

    Args:
        source: the file.
        workspace: a directory that has no data of a workspace yet.
        trust: gets the journal as the user's own, where it was when this user's backup was written.

    Raises:
        ExportError: the file is no backup or is damaged, or there is data; nothing was changed.
        JournalError: its journal cannot be read.
    """
    room, head, seal = await asyncio.to_thread(_laid_out, source, workspace)
    try:
        async with recorded(room) as store:
            check = await verify(store, BlobStore(room / DATA_DIRECTORY / "blobs"))
        if not check.ok or head != check.head:
            raise ExportError(f"{source} is damaged ({check.reason or 'it has another head'})")
        database = room / DATA_DIRECTORY / DATABASE
        first = await asyncio.to_thread(first_hash, database)
        await asyncio.to_thread(_keep_events_alone, database)
        await asyncio.to_thread(_move_in, room / DATA_DIRECTORY, workspace / DATA_DIRECTORY)
        if trust is not None:
            await asyncio.to_thread(trust.take_copy, seal, head, first)
        return check
    finally:
        await asyncio.to_thread(shutil.rmtree, room, ignore_errors=True)


def _laid_out(source: Path, workspace: Path) -> tuple[Path, str, str]:
    """A backup unpacked below a workspace that has no data yet, the head it says it has, and its seal."""
    target = workspace / DATA_DIRECTORY
    if os.path.lexists(target):
        raise ExportError(f"{target} is there already: restore into another directory")
    workspace.mkdir(parents=True, exist_ok=True)
    room = Path(tempfile.mkdtemp(dir=workspace, prefix=".restoring-"))
    try:
        _unpack(source, room)
        about = json.loads((room / ABOUT).read_bytes())
        return room, str(about["head"]), str(about.get("seal", ""))
    except (OSError, ValueError, KeyError, TypeError) as error:
        shutil.rmtree(room, ignore_errors=True)
        if isinstance(error, ExportError):
            raise
        raise ExportError(f"{source} is no backup: it does not say which head it has") from None


def _keep_events_alone(database: Path) -> None:
    """Copy the events into a new database: nothing else in the file is under its head, as kept states."""
    with closing(connect_rows(database)) as old:
        rows = old.execute(f"select {COLUMNS} from events order by seq")
        fresh, _ = write_journal(database, Ports().clock.now(), old, rows)
    fresh.replace(database)


def _move_in(data: Path, target: Path) -> None:
    for path in data.glob(f"{DATABASE}-*"):
        path.unlink()
    data.chmod(0o700)
    data.rename(target)
