"""Where builds and agents lie in a workspace, and how their files come there (ontology spec §2.0)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.agents.spec import KEBAB

BUILD = "BUILD.json"
KEPT_VERSIONS = 5
KEPT_STAGING_S = 24 * 3600.0
KEPT_TRIAL_S = 600.0
"""A trial takes at most a minute; what is older was left by a process that died."""


@dataclass(frozen=True, slots=True)
class Places:
    """The directories of a workspace."""

    workspace: Path

    @property
    def builds(self) -> Path:
        """Staging; nothing outside is touched before the last phase."""
        return self.workspace / ".builds"

    @property
    def agents(self) -> Path:
        """The agents that are registered."""
        return self.workspace / "agents"

    @staticmethod
    def names(agent_id: str) -> bool:
        """Whether a text can be an agent's id, and so a folder's name here."""
        return re.fullmatch(KEBAB, agent_id) is not None

    def agent(self, agent_id: str) -> Path:
        """An agent's folder."""
        return self.agents / agent_id

    def versions(self, agent_id: str) -> Path:
        """Earlier versions of an agent."""
        return self.agents / ".versions" / agent_id

    def ids(self) -> tuple[str, ...]:
        """The agents that have a folder; blocking."""
        try:
            names = sorted(path.name for path in self.agents.iterdir() if path.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return ()
        return tuple(name for name in names if not name.startswith("."))


@dataclass(frozen=True, slots=True)
class Build:
    """What BUILD.json says."""

    version: str
    builder_version: str
    source_sha256: str
    overrides_sha256: str
    spec_sha256: str
    files: Mapping[str, str]
    built_at: str
    scope: str
    source: str
    type: str = ""
    """The type, where an operator chose it."""


def read_build(folder: Path) -> Build | None:
    """The record of a folder's build; None where it has none that can be read. Blocking."""
    try:
        said = json.loads((folder / BUILD).read_text(encoding="utf-8"))
        texts = ("version", "builder_version", "source_sha256", "overrides_sha256", "spec_sha256", "built_at")
        named = {name: str(said[name]) for name in texts}
        files = {str(path): str(sha) for path, sha in said["files"].items()}
        decided = said["type"]
        chosen = str(decided["type"]) if decided["rule"] == "override" else ""
        return Build(**named, files=files, scope=str(said["scope"]), source=str(said["source"]), type=chosen)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def intact(folder: Path, build: Build) -> bool:
    """Whether the folder's files are those that were built, no more and no less; blocking."""
    there = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if not path.is_dir() and path.name != BUILD and "__pycache__" not in path.parts
    }
    if there != set(build.files):
        return False
    return all(sha_of(folder / path) == sha for path, sha in build.files.items())


def sha_of(path: Path) -> str:
    """SHA-256 of a file; empty for one that cannot be read or is a link."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def write_files(folder: Path, files: Mapping[str, bytes], executable: Iterable[str] = ()) -> None:
    """Write files beneath a directory, which is made; blocking.

    Args:
        folder: where.
        files: contents by path; the paths are ours or were read from a folder entry by entry.
        executable: those that may be run.

    Raises:
        OSError: something could not be written.
        ValueError: a path leads out of the folder.
    """
    run = frozenset(executable)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    for path, data in files.items():
        if path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"{path!r} leads out of the folder")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(0o755 if path in run else 0o644)


def set_read_only(folder: Path) -> None:
    """Take the right to write from everything below a directory; blocking."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)


def remove_tree(folder: Path) -> None:
    """Take a directory away, read-only parts as well; one that is not there is no matter. Blocking."""
    for path, directories, _ in os.walk(folder):
        for name in (".", *directories):
            with suppress(OSError):
                os.chmod(Path(path, name), 0o700)  # noqa: PTH101
    shutil.rmtree(folder, ignore_errors=True)


def read_files(folder: Path) -> dict[str, str]:
    """The generated text files of an agent's folder, the skill apart; blocking."""
    names = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    paths = {path.relative_to(folder).as_posix(): path for path in names}
    return {
        name: path.read_text(encoding="utf-8")
        for name, path in paths.items()
        if not name.startswith("skill/") and "__pycache__" not in name
    }


def clear_old(places: Places, now: float) -> None:
    """Take away staging that nobody has looked at for a day; blocking."""
    with suppress(FileNotFoundError):
        for path in places.builds.iterdir():
            kept = {"b": KEPT_STAGING_S, "try": KEPT_TRIAL_S}.get(path.name.partition("-")[0])
            if kept is not None and now - path.stat().st_mtime > kept:
                remove_tree(path)
