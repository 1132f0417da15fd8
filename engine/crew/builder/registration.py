"""Phase 7 of a build: stages, swaps by rename and registers; a failure restores the former version.

`.builds/ID.registering.json` records the registration from before the first rename until it is over, so
that a process that dies in between is repaired at the next start.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from engine.crew.builder.agent_files import AgentFolderError, read_agent
from engine.crew.builder.architecture import version_key
from engine.crew.ontology.spec import KEBAB, AgentSpec
from engine.sandbox.completion import run_to_completion
from engine.value import dataclass

BUILD = "BUILD.json"
KEPT_VERSIONS = 5
KEPT_STAGING_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class BuildPaths:
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
    source: str
    type: str = ""
    """The type, where an operator chose it."""


def read_build(folder: Path) -> Build | None:
    """The record of a folder's build; None where it has none that can be read. Blocking."""
    try:
        fields = json.loads((folder / BUILD).read_text(encoding="utf-8"))
        texts = ("version", "builder_version", "source_sha256", "overrides_sha256", "spec_sha256", "built_at")
        named = {name: str(fields[name]) for name in texts}
        files = {str(path): str(sha) for path, sha in fields["files"].items()}
        decided = fields["type"]
        chosen = str(decided["type"]) if decided["rule"] == "override" else ""
        return Build(**named, files=files, source=str(fields["source"]), type=chosen)
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


def clear_old(places: BuildPaths, now: float) -> None:
    """Take away staging that is older than a day; blocking."""
    with suppress(FileNotFoundError):
        for path in places.builds.iterdir():
            if path.name.startswith("b-") and now - path.stat().st_mtime > KEPT_STAGING_S:
                remove_tree(path)


_RECORD = ".registering.json"


class RegistrationError(Exception):
    """An agent could not be registered; the message says why."""


class Registrar(Protocol):
    """Who knows the agents of a workspace: the manager of handoffs, or the folders themselves."""

    async def resolve(self, agent_id: str) -> AgentSpec | None:
        """The version of an agent that new handoffs get; None for one that is not registered."""

    async def register(self, spec: AgentSpec, folder: Path) -> None:
        """Put in or replace an agent and announce it.

        Raises:
            RegistrationError: it was not; nothing changed.
        """

    async def remove(self, agent_id: str) -> None:
        """Take an agent away; its history stays."""


async def swap_in(staged: Path, spec: AgentSpec, places: BuildPaths, registrar: Registrar) -> None:
    """Put a staged folder in the place of an agent and register it.

    Raises:
        RegistrationError: it failed; the former version is back, and answers.
        OSError: likewise.
        asyncio.CancelledError: likewise.
    """
    record = places.builds / f"{spec.id}{_RECORD}"
    try:
        await run_to_completion(asyncio.to_thread(_swap, staged, spec, places, record))
        await _registered(spec, places.agent(spec.id), registrar)
    except BaseException:
        await run_to_completion(_undo(spec.id, staged, places, registrar, record))
        raise
    await run_to_completion(asyncio.to_thread(_done, spec.id, places, record))


async def _registered(spec: AgentSpec, folder: Path, registrar: Registrar) -> None:
    await registrar.register(spec, folder)
    registered = await registrar.resolve(spec.id)
    if registered is None or registered.version != spec.version:
        resolved = "nothing" if registered is None else registered.version
        raise RegistrationError(f"{spec.id} resolves to {resolved} and not to {spec.version}")


def _swap(staged: Path, spec: AgentSpec, places: BuildPaths, record: Path) -> None:
    agent = places.agent(spec.id)
    former = read_build(agent)
    kept = ""
    if agent.exists():
        kept = _version_name(former.version, former.spec_sha256) if former else "unknown"
    fields = {"agent": spec.id, "version": spec.version, "staged": str(staged), "kept": kept}
    _write_whole(record, json.dumps(fields))
    if kept:
        _move_aside(agent, places.versions(spec.id) / kept)
    places.agents.mkdir(parents=True, exist_ok=True)
    staged.rename(agent)


def _version_name(version: str, sha256: str) -> str:
    return f"{version}-{sha256[:8]}"


async def _undo(agent_id: str, staged: Path, places: BuildPaths, registrar: Registrar, record: Path) -> None:
    """Bring the former version back, in the folder and with the registrar."""
    kept = await asyncio.to_thread(_swap_back, agent_id, staged, places, record)
    if kept:
        with suppress(AgentFolderError):
            await registrar.register(
                await asyncio.to_thread(read_agent, places.agent(agent_id)), places.agent(agent_id)
            )
    else:
        await registrar.remove(agent_id)
    await asyncio.to_thread(record.unlink, missing_ok=True)


def _swap_back(agent_id: str, staged: Path, places: BuildPaths, record: Path) -> bool:
    """Undo what was done of a swap, however far it came; says whether there is a former version."""
    agent = places.agent(agent_id)
    kept = str(_read_record(record).get("kept", ""))
    former = places.versions(agent_id) / kept
    if staged.exists():
        # The second rename was not done: the agent's place is empty, or was not touched at all.
        if kept and former.exists() and not agent.exists():
            former.rename(agent)
        return agent.exists()
    if agent.exists():
        agent.rename(staged)
    if kept and former.exists():
        former.rename(agent)
    return agent.exists()


def _done(agent_id: str, places: BuildPaths, record: Path) -> None:
    record.unlink(missing_ok=True)
    for old in versions_of(places, agent_id)[KEPT_VERSIONS:]:
        remove_tree(old.folder)


async def repair(places: BuildPaths, registrar: Registrar) -> tuple[str, ...]:
    """Finish or undo what a process that died was registering; a line each."""
    lines = []
    for record in await asyncio.to_thread(_records, places):
        fields = await asyncio.to_thread(_read_record, record)
        agent_id, staged = str(fields.get("agent", "")), Path(str(fields.get("staged", "")))
        if not agent_id or staged.parent != places.builds:
            await asyncio.to_thread(record.unlink, missing_ok=True)
        elif await _stands(agent_id, str(fields.get("version")), staged, places, registrar):
            await asyncio.to_thread(_done, agent_id, places, record)
            lines.append(f"{agent_id} {fields['version']}: its registration was finished")
        else:
            await _undo(agent_id, staged, places, registrar, record)
            now = await asyncio.to_thread(read_build, places.agent(agent_id))
            left = f"{now.version} is back" if now else "it is gone"
            lines.append(f"{agent_id}: its registration was undone; {left}")
    return tuple(lines)


async def _stands(
    agent_id: str, version: str, staged: Path, places: BuildPaths, registrar: Registrar
) -> bool:
    """Whether a version is in its place, whole and registered."""
    agent = places.agent(agent_id)

    def whole() -> bool:
        build = read_build(agent)
        return not staged.exists() and build is not None and build.version == version and intact(agent, build)

    spec = await registrar.resolve(agent_id)
    return spec is not None and spec.version == version and await asyncio.to_thread(whole)


def pending(places: BuildPaths) -> frozenset[str]:
    """The agents that a process was registering when it died, or is; blocking."""
    return frozenset(path.name.removesuffix(_RECORD) for path in _records(places))


def _records(places: BuildPaths) -> list[Path]:
    return sorted(places.builds.glob(f"*{_RECORD}"))


def _read_record(record: Path) -> dict[str, Any]:
    try:
        fields = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _write_whole(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all, also after the power went."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


@dataclass(frozen=True, slots=True)
class Version:
    """An earlier version of an agent."""

    version: str
    built_at: str
    folder: Path

    @property
    def name(self) -> str:
        """`1.0.0-0123abcd`, the folder's name."""
        return self.folder.name


def versions_of(places: BuildPaths, agent_id: str) -> list[Version]:
    """Earlier versions of an agent, newest first; blocking."""
    versions = []
    with suppress(FileNotFoundError):
        for folder in places.versions(agent_id).iterdir():
            if (build := read_build(folder)) is not None:
                versions.append(Version(build.version, build.built_at, folder))
    return sorted(
        versions, key=lambda version: (version_key(version.version), version.built_at), reverse=True
    )


async def remove_agent(agent_id: str, places: BuildPaths, registrar: Registrar) -> bool:
    """Undo an agent's registration; its folder goes to the versions. Says whether there was one."""
    agent = places.agent(agent_id)
    build = await asyncio.to_thread(read_build, agent)
    known = await registrar.resolve(agent_id) is not None
    if build is None and not known:
        return False
    await registrar.remove(agent_id)
    if build is not None:
        target = places.versions(agent_id) / _version_name(build.version, build.spec_sha256)
        await asyncio.to_thread(_move_aside, agent, target)
    return True


def _move_aside(agent: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_tree(target)
    agent.rename(target)


async def roll_back(agent_id: str, version: str, places: BuildPaths, registrar: Registrar) -> AgentSpec:
    """Make an earlier version the one that answers; the present one goes to the versions.

    Args:
        agent_id: whose.
        version: `1.0.0`, or the folder's name; empty for the newest earlier one.
        places: the workspace's.
        registrar: who knows the agents.

    Raises:
        RegistrationError: there is no such version, or it could not be registered.
    """
    known = await asyncio.to_thread(versions_of, places, agent_id)
    matches = [
        known_version
        for known_version in known
        if not version or version in (known_version.version, known_version.name)
    ]
    if not matches:
        there = ", ".join(known_version.name for known_version in known) or "none"
        raise RegistrationError(f"{agent_id} has no earlier version {version}; there are: {there}")
    staged = places.builds / f"b-back-{matches[0].name}"
    await asyncio.to_thread(_move_aside, matches[0].folder, staged)
    try:
        spec = await asyncio.to_thread(read_agent, staged)
        await swap_in(staged, spec, places, registrar)
    except BaseException:
        if staged.exists():
            await asyncio.to_thread(staged.rename, matches[0].folder)
        raise
    return spec
