"""A journal as one file that another machine can read, verify and replay.

The file is a gzipped tar of the journal and its blobs as they lie in a workspace, so that everything that
reads a workspace reads it.
"""

from __future__ import annotations

import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath

from engine.journal.store import DATA_DIRECTORY, DATABASE

UNPACKED_LIMIT = 4 * 1024**3
"""Bytes that an export may hold."""
BLOBS = "blobs"


class ExportError(ValueError):
    """A file that cannot be written or read; the message says why and what to do."""


def export(workspace: Path, target: Path) -> int:
    """Write the journal and its blobs to a new file; gives the file's bytes. Also while an engine runs.

    Raises:
        ExportError: there is no journal, or the file cannot be written, or it exists.
    """
    data = workspace / DATA_DIRECTORY
    if not (data / DATABASE).is_file():
        raise ExportError(f"{workspace}: there is no journal here")
    try:
        with tempfile.TemporaryDirectory() as room, target.open("xb") as file:
            copy = Path(room) / DATABASE
            _copy_database(data / DATABASE, copy)
            with tarfile.open(fileobj=file, mode="w:gz") as archive:
                archive.add(copy, f"{DATA_DIRECTORY}/{DATABASE}")
                for blob in sorted((data / BLOBS).rglob("*")):
                    if blob.is_file() and not blob.is_symlink():
                        archive.add(blob, f"{DATA_DIRECTORY}/{BLOBS}/{blob.relative_to(data / BLOBS)}")
        return target.stat().st_size
    except FileExistsError:
        raise ExportError(f"{target} exists already: choose another name") from None
    except (OSError, sqlite3.Error) as error:
        target.unlink(missing_ok=True)
        raise ExportError(f"{target} cannot be written: {error}") from None


def _copy_database(source: Path, target: Path) -> None:
    with (
        closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new)


@contextmanager
def unpacked(source: Path) -> Iterator[Path]:
    """An exported journal as a workspace, for as long as the block runs.

    Raises:
        ExportError: the file is none, holds what an export does not hold, or is too large.
    """
    with tempfile.TemporaryDirectory() as room:
        try:
            with tarfile.open(source, mode="r:gz") as archive:
                total = 0
                for member in archive:
                    total += member.size
                    if total > UNPACKED_LIMIT or not _belongs(member):
                        raise ExportError(f"{source}: {member.name[:80]} does not belong in an export")
                    archive.extract(member, room, filter="data")
        except (OSError, EOFError, tarfile.TarError) as error:
            raise ExportError(f"{source} is no export of a journal: {error}") from None
        (Path(room) / DATA_DIRECTORY / BLOBS).mkdir(parents=True, exist_ok=True)
        yield Path(room)


def _belongs(member: tarfile.TarInfo) -> bool:
    parts = PurePosixPath(member.name).parts
    inside = parts[:1] == (DATA_DIRECTORY,) and ".." not in parts
    return member.isfile() and inside and (parts[1:] == (DATABASE,) or parts[1:2] == (BLOBS,))
