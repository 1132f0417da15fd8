"""Phase 7 of a build: writes the agent's folder, swaps it by rename and registers it.

The folder has agent.yaml and instructions.md, with a read-only copy of the skill; its bytes are the same for
the same input. A failure restores the former version: while an agent is swapped its former folder lies in
`.builds/ID.former`, and what a process that died was swapping is repaired at the next start.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from engine.core.text import clean_line
from engine.crew.builder.skill import SkillFolder
from engine.crew.builder.yaml_text import YamlError, read_mapping, write_mapping
from engine.crew.ontology.kinds import InvalidError
from engine.crew.ontology.spec import KEBAB, AgentSpec
from engine.crew.ontology.spec_parser import parse_spec
from engine.sandbox.completion import run_to_completion
from engine.sandbox.files import remove_directory
from engine.value import dataclass

SPEC = "agent.yaml"
INSTRUCTIONS = "instructions.md"
SKILL = "skill"
"""Directory of the agent's folder that holds the skill as it was, read-only."""


class AgentFolderError(Exception):
    """A folder holds no agent; the message says what is wrong with it."""


def read_agent(folder: Path) -> AgentSpec:
    """The spec of an agent's folder; blocking.

    Raises:
        AgentFolderError: there is none that can be read.
    """
    try:
        return parse_spec(read_mapping((folder / SPEC).read_text(encoding="utf-8"), typed=True)[0])
    except (OSError, UnicodeDecodeError, YamlError, InvalidError) as error:
        raise AgentFolderError(f"{folder.name}/{SPEC}: {clean_line(str(error), limit=500)}") from error


def read_instructions(folder: Path, spec: AgentSpec) -> str:
    """The instructions of an agent, as they stand; blocking.

    Raises:
        AgentFolderError: they cannot be read, or lie outside the folder.
    """
    name = spec.instructions.system_file
    if not name:
        return spec.instructions.system
    if "/" in name or name in (".", ".."):
        raise AgentFolderError(f"{folder.name}: instructions are a file of the folder, not {name!r}")
    try:
        return (folder / name).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AgentFolderError(f"{folder.name}/{name}: {error}") from error


def spec_text(spec: AgentSpec) -> str:
    """agent.yaml of a spec; what is as usual for everybody is left out."""
    fields: dict[str, Any] = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    # Defaults differ by type, so the parts in which they do are said in full.
    fields |= {"type": spec.type.value, "version": spec.version}
    fields["handoff"] = spec.handoff.model_dump(mode="json", by_alias=True)
    fields["model"] = spec.model.model_dump(mode="json")
    return write_mapping(fields)


def spec_sha256(spec: AgentSpec) -> str:
    """SHA-256 of agent.yaml."""
    return hashlib.sha256(spec_text(spec).encode()).hexdigest()


def agent_files(spec: AgentSpec, body: bytes, folder: SkillFolder) -> dict[str, bytes]:
    """Every file of the agent's folder but BUILD.json, by path.

    Args:
        spec: the agent.
        body: the skill's instructions, byte for byte.
        folder: the skill.
    """
    copies = {f"{SKILL}/{path}": data for path, data in folder.files.items()}
    return {SPEC: spec_text(spec).encode(), INSTRUCTIONS: body, **copies}


BUILD = "BUILD.json"
_FORMER = ".former"
KEPT_STAGING_S = 24 * 3600.0
"""How long what a failed build made is kept for inspection."""


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

    def former(self, agent_id: str) -> Path:
        """Where an agent's folder lies while it is replaced."""
        return self.builds / f"{agent_id}{_FORMER}"

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


def read_build(folder: Path) -> Build | None:
    """The record of a folder's build; None where it has none that can be read. Blocking."""
    try:
        fields = json.loads((folder / BUILD).read_text(encoding="utf-8"))
        texts = ("version", "builder_version", "source_sha256", "overrides_sha256", "spec_sha256")
        named = {name: str(fields[name]) for name in texts}
        files = {str(path): str(sha) for path, sha in fields["files"].items()}
        return Build(**named, files=files)
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


def clear_old(places: BuildPaths, now: float) -> None:
    """Take away staging that is older than a day; blocking."""
    for path in places.builds.glob("b-*"):
        if now - path.stat().st_mtime > KEPT_STAGING_S:
            remove_directory(path)


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
    agent, former = places.agent(spec.id), places.former(spec.id)
    try:
        await run_to_completion(asyncio.to_thread(_swap, staged, agent, former))
        await registrar.register(spec, agent)
    except BaseException:
        await run_to_completion(_undo(spec.id, staged, places, registrar))
        raise
    await run_to_completion(asyncio.to_thread(remove_directory, former))


def _swap(staged: Path, agent: Path, former: Path) -> None:
    agent.parent.mkdir(parents=True, exist_ok=True)
    if agent.exists():
        remove_directory(former)
        agent.rename(former)
    staged.rename(agent)


async def _undo(agent_id: str, staged: Path, places: BuildPaths, registrar: Registrar) -> None:
    """Bring the former version back, in the folder and with the registrar."""
    agent = places.agent(agent_id)
    if await asyncio.to_thread(_swap_back, staged, agent, places.former(agent_id)):
        with suppress(AgentFolderError):
            await registrar.register(await asyncio.to_thread(read_agent, agent), agent)
    else:
        await registrar.remove(agent_id)


def _swap_back(staged: Path, agent: Path, former: Path) -> bool:
    """Undo what was done of a swap, however far it came; says whether there is a former version."""
    if not staged.exists() and agent.exists():
        agent.rename(staged)
    if former.exists():
        former.rename(agent)
    return agent.exists()


def repair(places: BuildPaths) -> None:
    """Put right what a process that died was swapping: a new version that is in its place stays. Blocking."""
    for former in places.builds.glob(f"*{_FORMER}"):
        agent = places.agent(former.name.removesuffix(_FORMER))
        if agent.exists():
            remove_directory(former)
        else:
            former.rename(agent)


async def remove_agent(agent_id: str, places: BuildPaths, registrar: Registrar) -> bool:
    """Undo an agent's registration and take its folder away. Says whether there was one."""
    agent = places.agent(agent_id)
    built = await asyncio.to_thread(read_build, agent) is not None
    if not built and await registrar.resolve(agent_id) is None:
        return False
    await registrar.remove(agent_id)
    if built:
        await asyncio.to_thread(remove_directory, agent)
    return True
