"""The files of a data directory: what stands in their places, and whether they are as they were closed.

A workspace may come from a stranger, and its files may be damaged. So nothing is written through a link, what
stands in the place of a cache gives way, and a file that was changed since it was closed in good order is
known by its inode, size and times: programs can set the mtime of a file but not its ctime.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from engine.core.journal import JournalError

BESIDE = ("", "-wal", "-shm", "-journal")
"""What SQLite keeps beside a database, and the database itself."""
NOTED = ".noted"
"""The end of the name of the note that says whether a database is open, or how it was closed."""
TRACES = (
    f"journal.db{NOTED}",
    "journal.db-wal",
    "memory.db",
    "index.db",
    "blobs/.pilothouse/blobs/*/*",
    "snapshots/snapshots/*",
)
"""What is in a data directory only when it has, or had, a journal."""


def is_plain(path: Path) -> bool:
    """Whether there is a regular file, or nothing, at the path and beside it where SQLite would write."""
    return all(is_regular(path.with_name(path.name + ending)) for ending in BESIDE)


def is_regular(path: Path) -> bool:
    """Whether there is a regular file, or nothing, at the path."""
    return _kind(path) in (0, stat.S_IFREG)


def _kind(path: Path) -> int:
    """What stands at a path, as in a file's mode; 0 for nothing."""
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except OSError:
        return 0


def open_plain(path: Path, *, links: bool = True) -> BinaryIO:
    """A plain file, opened for reading; links are followed as those follow them who use it, or not. Blocking.

    Raises:
        OSError: it cannot be read, or is no plain file: a pipe or a device might never end.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW))
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "no plain file", str(path))
    return os.fdopen(number, "rb")


def read_plain(path: Path, limit: int) -> bytes:
    """A plain file's content. Blocking.

    Raises:
        OSError: as `open_plain`, or it is larger.
    """
    with open_plain(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes", str(path))
    return content


def remove_cache(path: Path) -> None:
    """Remove a database that is a cache, with what is beside it, whatever stands there.

    Raises:
        OSError: it cannot be removed.
    """
    for ending in (*BESIDE, NOTED):
        place = path.with_name(path.name + ending)
        clear(place)


def clear(place: Path) -> None:
    """Make a place free: a file or link is removed, a directory gets another name.

    Raises:
        OSError: that cannot be done.
    """
    if _kind(place) == stat.S_IFDIR:
        set_aside(place)
    else:
        place.unlink(missing_ok=True)


def set_aside(path: Path) -> Path:
    """Give a file another name beside its place; the name.

    Raises:
        OSError: it cannot be renamed.
    """
    aside = path.with_name(f"{path.name}.aside-{secrets.token_hex(4)}")
    path.rename(aside)
    return aside


def lost_journal(path: Path) -> str:
    """Why there is no journal where one was; empty where there is one, or never was any.

    Looked at before SQLite looks, which removes the log of an empty database.
    """
    kind = _kind(path)
    if kind not in (0, stat.S_IFREG):
        return "there is a link or a directory in its place"
    if kind and path.lstat().st_size:
        return "" if is_plain(path) else "there is a link or a directory in the place of a file beside it"
    if any(is_regular(place) for trace in TRACES for place in path.parent.glob(trace)):
        return f"it is {'empty' if kind else 'missing'}, and other data of this workspace is here"
    return ""


def tidy_data_directory(data: Path, names: tuple[str, ...]) -> list[str]:
    """Set aside what stands in the place of directories and is none, such as a link; what was, in sentences.

    Raises:
        JournalError: it cannot be set aside.
    """
    notes = []
    for name in names:
        place = data / name
        if _kind(place) not in (0, stat.S_IFDIR):
            try:
                aside = set_aside(place)
            except OSError as error:
                raise JournalError(
                    f"{place} is no directory, and cannot be renamed ({error.strerror})."
                ) from error
            notes.append(f"{name} was no directory: it is {aside.name} now, and {name} begins empty")
    return notes


# ------------------------------------------------------------------ closed in good order


def _status(path: Path) -> list[int]:
    status = os.stat(path, follow_symlinks=False)  # noqa: PTH116
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _has_log(path: Path) -> bool:
    """Whether something is in a database's log that is not in the database."""
    try:
        return path.with_name(f"{path.name}-wal").lstat().st_size > 0
    except OSError:
        return False


def note_closed(path: Path) -> None:
    """Note how a database is that is closed now in good order; a disk that refuses is no error."""
    with suppress(OSError):
        if is_plain(path) and not _has_log(path):
            _note(path, _status(path))


def note_open(path: Path) -> None:
    """Note that a database is written to from now on, so that its log belongs to it.

    Raises:
        OSError: it cannot be noted.
    """
    clear(path.with_name(path.name + NOTED))
    _note(path, "open")


def _note(path: Path, noted: object) -> None:
    note = path.with_name(path.name + NOTED)
    fresh = path.with_name(f".{note.name}.{secrets.token_hex(4)}")
    fresh.write_text(json.dumps(noted))
    fresh.replace(note)


def _noted(path: Path) -> object:
    """What is noted of a database; None where nothing is."""
    try:
        return json.loads(read_plain(path.with_name(path.name + NOTED), 65_536))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        return "damaged"


def is_untouched(path: Path) -> bool | None:
    """Whether a database is as it was closed; None where it was not closed in good order, as by a kill."""
    noted = _noted(path)
    if noted is None or noted == "open":
        return None
    try:
        return noted == _status(path) and not _has_log(path)
    except OSError:
        return False


def lacks_log(path: Path) -> bool:
    """Whether the log of a database is gone that was not closed in good order."""
    return _noted(path) == "open" and not os.path.lexists(path.with_name(f"{path.name}-wal"))
