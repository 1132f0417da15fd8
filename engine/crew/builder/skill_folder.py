"""Reads the files of a skill's folder.

Files are read by descriptors: nothing outside is touched, no link is followed, and the bytes that are hashed
are the bytes that are kept, so that nothing can change them in between.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from engine.crew.builder.findings import Findings
from engine.value import dataclass, field

MOST_FILES = 500
MOST_BYTES = 20 * 1024 * 1024
MOST_DEPTH = 16
SKILL_FILES = ("SKILL.md", "skill.md")
LEFT_OUT = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", ".DS_Store"})
"""Never part of a skill."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class SkillFolder:
    """A skill's files, in memory."""

    name: str | None
    """The folder's name; None for a skill that came as text."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """By path with `/`, sorted."""
    executable: frozenset[str] = frozenset()
    source: str = ""

    @property
    def skill_file(self) -> str:
        """`SKILL.md`, or `skill.md`; empty where there is none."""
        return next((name for name in SKILL_FILES if name in self.files), "")

    @property
    def sha256(self) -> str:
        """Of all files with their names, whatever order they lie in."""
        whole = hashlib.sha256()
        for path, data in self.files.items():
            mark = "x" if path in self.executable else "-"
            whole.update(f"{mark}{path}\0{hashlib.sha256(data).hexdigest()}\n".encode())
        return whole.hexdigest()

    @property
    def scripts(self) -> tuple[str, ...]:
        """The programs beside SKILL.md."""
        return tuple(path for path in self.files if path.startswith("scripts/") or path in self.executable)


def read_folder(source: Path, findings: Findings) -> SkillFolder | None:
    """Read a skill's folder, or the folder of a SKILL.md; blocking. None when it is not to be read.

    What is unsafe or too big is an error each, and then nothing is built.
    """
    folder = source.parent if source.name in SKILL_FILES and not source.is_dir() else source
    walk = _Walk(findings)
    try:
        top = os.open(folder.resolve(strict=True), _DIRECTORY)
    except OSError as error:
        findings.error(
            "NO_SKILL_MD", f"{folder} cannot be read: {_why(error)}", hint="name a folder with a SKILL.md"
        )
        return None
    try:
        walk.directory(top, "", 0)
    finally:
        os.close(top)
    name = folder.resolve().name
    files = dict(sorted(walk.files.items()))
    return SkillFolder(name, files, frozenset(walk.executable), str(folder))


class _Walk:
    """Takes in files until there are too many."""

    def __init__(self, findings: Findings) -> None:
        self.files: dict[str, bytes] = {}
        self.executable: set[str] = set()
        self._found = findings
        self._bytes = 0
        self._full = False

    def directory(self, place: int, path: str, depth: int) -> None:
        """Take in everything below a descriptor."""
        if depth > MOST_DEPTH:
            self._found.error("TOO_BIG", f"folders lie more than {MOST_DEPTH} deep", path)
            return
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            if self._full:
                return
            if name not in LEFT_OUT:
                self._entry(place, f"{path}{name}", name, depth)

    def _entry(self, place: int, path: str, name: str, depth: int) -> None:
        if not name.isprintable():
            self._found.error("UNSAFE_FILE", "a name holds characters that cannot be shown", ascii(path))
            return
        try:
            mode = os.stat(name, dir_fd=place, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                below = os.open(name, _DIRECTORY, dir_fd=place)
                try:
                    self.directory(below, f"{path}/", depth + 1)
                finally:
                    os.close(below)
            elif stat.S_ISREG(mode):
                self._file(place, path, name)
            else:
                kind = "a symbolic link" if stat.S_ISLNK(mode) else "no regular file"
                self._found.error("UNSAFE_FILE", f"is {kind}", path, "put a copy of the file in its place")
        except OSError as error:
            self._found.error("UNSAFE_FILE", f"cannot be read: {_why(error)}", path)

    def _file(self, place: int, path: str, name: str) -> None:
        with open(os.open(name, _FILE, dir_fd=place), "rb") as file:  # noqa: PTH123
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "it is no regular file any more")
            data = file.read(MOST_BYTES - self._bytes + 1)
        self._bytes += len(data)
        if self._bytes > MOST_BYTES or len(self.files) >= MOST_FILES:
            self._full = True
            self._found.error(
                "TOO_BIG",
                f"the folder has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB",
                path,
                "a skill's folder holds the skill only",
            )
            return
        self.files[path] = data
        if status.st_mode & stat.S_IXUSR:
            self.executable.add(path)


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def hashes(files: Iterable[tuple[str, bytes]]) -> dict[str, str]:
    """SHA-256 of each file, by path."""
    return {path: hashlib.sha256(data).hexdigest() for path, data in sorted(files)}
