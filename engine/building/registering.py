"""Phase 7: stage, swap by rename, register, prove; any failure brings the former version back (spec §2.8).

What is under way stands in `.builds/ID.registering.json` from before the first rename to after the proof, so
that a process that dies in between is repaired at the next start.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engine.agents.spec import AgentSpec
from engine.building.agent_base import AgentFolderError, read_agent
from engine.building.architecture import version_key
from engine.building.staging import KEPT_VERSIONS, Places, intact, read_build, remove_tree
from engine.sandbox.completion import to_the_end

if TYPE_CHECKING:
    from engine.selection.graph import FrameworkGraph

_RECORD = ".registering.json"


class RegistrationError(Exception):
    """An agent could not be registered; the message says why."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What came of a real handoff to a newly registered agent."""

    passed: bool
    message: str


class Registrar(Protocol):
    """Who knows the agents of a workspace: the manager of handoffs, or the folders themselves."""

    @property
    def graph(self) -> FrameworkGraph:
        """The selection graph that its agents stand in."""

    async def resolve(self, agent_id: str) -> AgentSpec | None:
        """The version of an agent that new handoffs get; None for one that is not registered."""

    async def register(self, spec: AgentSpec, folder: Path) -> None:
        """Put in or replace an agent with its graph rows, all or nothing, and announce it.

        Raises:
            RegistrationError: it was not; nothing changed.
        """

    async def remove(self, agent_id: str) -> None:
        """Take an agent away; its history stays."""

    async def e2e(self, spec: AgentSpec, folder: Path, *, live: bool) -> Proof:
        """Delegate to the agent for real: admission, run, result; scripted unless `live`."""


async def swap_in(
    staged: Path, spec: AgentSpec, places: Places, registrar: Registrar, *, live: bool = False
) -> Proof:
    """Put a staged folder in the place of an agent and register it.

    Raises:
        RegistrationError: it failed; the former version is back, and answers.
        OSError: likewise.
        asyncio.CancelledError: likewise.
    """
    record = places.builds / f"{spec.id}{_RECORD}"
    try:
        await to_the_end(asyncio.to_thread(_swap, staged, spec, places, record))
        proof = await _proven(spec, places.agent(spec.id), registrar, live=live)
    except BaseException:
        await to_the_end(_undo(spec.id, staged, places, registrar, record))
        raise
    await to_the_end(asyncio.to_thread(_done, spec.id, places, record))
    return proof


async def _proven(spec: AgentSpec, folder: Path, registrar: Registrar, *, live: bool) -> Proof:
    await registrar.register(spec, folder)
    found = await registrar.resolve(spec.id)
    if found is None or found.version != spec.version:
        said = "nothing" if found is None else found.version
        raise RegistrationError(f"{spec.id} resolves to {said} and not to {spec.version}")
    proof = await registrar.e2e(spec, folder, live=live)
    if not proof.passed:
        raise RegistrationError(f"the first handoff failed: {proof.message}")
    return proof


def _swap(staged: Path, spec: AgentSpec, places: Places, record: Path) -> None:
    agent = places.agent(spec.id)
    former = read_build(agent)
    kept = ""
    if agent.exists():
        kept = _version_name(former.version, former.spec_sha256) if former else "unknown"
    said = {"agent": spec.id, "version": spec.version, "staged": str(staged), "kept": kept}
    _write_whole(record, json.dumps(said))
    if kept:
        target = places.versions(spec.id) / kept
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_tree(target)
        agent.rename(target)
    places.agents.mkdir(parents=True, exist_ok=True)
    staged.rename(agent)


def _version_name(version: str, sha256: str) -> str:
    return f"{version}-{sha256[:8]}"


async def _undo(agent_id: str, staged: Path, places: Places, registrar: Registrar, record: Path) -> None:
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


def _swap_back(agent_id: str, staged: Path, places: Places, record: Path) -> bool:
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


def _done(agent_id: str, places: Places, record: Path) -> None:
    record.unlink(missing_ok=True)
    for old in versions_of(places, agent_id)[KEPT_VERSIONS:]:
        remove_tree(old.folder)


async def repair(places: Places, registrar: Registrar) -> tuple[str, ...]:
    """Finish or undo what a process that died was registering; a line each."""
    told = []
    for record in await asyncio.to_thread(_records, places):
        said = await asyncio.to_thread(_read_record, record)
        agent_id, staged = str(said.get("agent", "")), Path(str(said.get("staged", "")))
        if not agent_id or staged.parent != places.builds:
            await asyncio.to_thread(record.unlink, missing_ok=True)
        elif await _stands(agent_id, str(said.get("version")), staged, places, registrar):
            await asyncio.to_thread(_done, agent_id, places, record)
            told.append(f"{agent_id} {said['version']}: its registration was finished")
        else:
            await _undo(agent_id, staged, places, registrar, record)
            now = await asyncio.to_thread(read_build, places.agent(agent_id))
            left = f"{now.version} is back" if now else "it is gone"
            told.append(f"{agent_id}: its registration was undone; {left}")
    return tuple(told)


async def _stands(agent_id: str, version: str, staged: Path, places: Places, registrar: Registrar) -> bool:
    """Whether a version is in its place, whole, registered, and answers."""
    agent = places.agent(agent_id)

    def whole() -> bool:
        build = read_build(agent)
        return not staged.exists() and build is not None and build.version == version and intact(agent, build)

    spec = await registrar.resolve(agent_id)
    if spec is None or spec.version != version or not await asyncio.to_thread(whole):
        return False
    return (await registrar.e2e(spec, agent, live=False)).passed


def pending(places: Places) -> frozenset[str]:
    """The agents that a process was registering when it died, or is; blocking."""
    return frozenset(path.name.removesuffix(_RECORD) for path in _records(places))


def _records(places: Places) -> list[Path]:
    return sorted(places.builds.glob(f"*{_RECORD}"))


def _read_record(record: Path) -> dict[str, Any]:
    try:
        said = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


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


def versions_of(places: Places, agent_id: str) -> list[Version]:
    """Earlier versions of an agent, newest first; blocking."""
    found = []
    with suppress(FileNotFoundError):
        for folder in places.versions(agent_id).iterdir():
            if (build := read_build(folder)) is not None:
                found.append(Version(build.version, build.built_at, folder))
    return sorted(found, key=lambda one: (version_key(one.version), one.built_at), reverse=True)


async def remove_agent(agent_id: str, places: Places, registrar: Registrar) -> bool:
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


async def roll_back(agent_id: str, version: str, places: Places, registrar: Registrar) -> AgentSpec:
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
    wanted = [one for one in known if not version or version in (one.version, one.name)]
    if not wanted:
        there = ", ".join(one.name for one in known) or "none"
        raise RegistrationError(f"{agent_id} has no earlier version {version}; there are: {there}")
    staged = places.builds / f"b-back-{wanted[0].name}"
    await asyncio.to_thread(_staged_again, wanted[0].folder, staged)
    try:
        spec = await asyncio.to_thread(read_agent, staged)
        await swap_in(staged, spec, places, registrar)
    except BaseException:
        await asyncio.to_thread(_laid_back, staged, wanted[0].folder)
        raise
    return spec


def _laid_back(staged: Path, folder: Path) -> None:
    if staged.exists():
        staged.rename(folder)


def _staged_again(folder: Path, staged: Path) -> None:
    staged.parent.mkdir(parents=True, exist_ok=True)
    remove_tree(staged)
    folder.rename(staged)
