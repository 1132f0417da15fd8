"""Registers agents with the crew by events, and the built-in agents among them.

A built-in agent is a skill of the package, read in memory by the first five phases of a build. Nothing is
written for it but the event that registers it; it is registered anew when its skill has changed. An agent of
the workspace with the same id takes precedence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.crew.builder.agent_files import AgentFolderError, read_instructions
from engine.crew.builder.findings import BUILDER_VERSION, BUILT_IN, Findings, PendingBuild
from engine.crew.builder.phases import PHASES, BuildEnvironment, BuildState
from engine.crew.builder.registration import RegistrationError
from engine.crew.builder.skill_folder import read_folder
from engine.crew.builder.tools import WorkspaceTools
from engine.crew.crew import Crew
from engine.crew.ontology.spec import AgentSpec
from engine.crew.ports import HandoffError
from engine.crew.run_service import BUILT
from engine.crew.state import Registered
from engine.planning.library.plan_library import shipped_agents
from engine.sandbox.policy import SandboxPolicy

ACTOR = "builder"
BEFORE_BUILT_IN = "it goes before the built-in agent of this id"


def source_of(agent_id: str) -> str:
    """What an agent of the workspace is registered as."""
    return f"{BUILT}{agent_id}"


def with_file_text(spec: AgentSpec, text: str) -> AgentSpec:
    """A spec with the text of its file in it, so that what counts stands in the journal."""
    return spec.model_copy(update={"instructions": spec.instructions.model_copy(update={"system": text})})


def without_file_text(spec: AgentSpec) -> AgentSpec:
    """A registered spec as agent.yaml says it, whose text is a file."""
    return with_file_text(spec, "") if spec.instructions.system_file else spec


class CrewRegistrar:
    """Registers agents with a crew (`engine.crew.builder.registration.Registrar`).

    Args:
        crew: the crew.
        shipped: the built-in agents, which are there again where the workspace's own one goes.
    """

    def __init__(self, crew: Crew, shipped: BuiltInAgents) -> None:
        self._crew, self._shipped = crew, shipped
        self._former: dict[str, Registered] = {}
        """What an agent was that has no folder and is being replaced."""

    async def resolve(self, agent_id: str) -> AgentSpec | None:
        """See `Registrar.resolve`."""
        entry = self._crew.state.agents.get(agent_id)
        return without_file_text(entry.spec) if entry is not None else None

    async def register(self, spec: AgentSpec, folder: Path) -> None:
        """See `Registrar.register`."""
        source = source_of(spec.id)
        before = self._crew.state.agents.get(spec.id)
        if before is not None and before.source != source:
            self._former[spec.id] = before
        warnings = (BEFORE_BUILT_IN,) if spec.id in await self._shipped.ids() else ()
        try:
            text = await asyncio.to_thread(read_instructions, folder, spec)
            await self._crew.registry.register(
                with_file_text(spec, text), source=source, actor=ACTOR, warnings=warnings
            )
        except (AgentFolderError, HandoffError) as error:
            raise RegistrationError(str(error)) from error

    async def remove(self, agent_id: str) -> None:
        """See `Registrar.remove`; what was there before the agent had a folder is there again."""
        former = self._former.pop(agent_id, None)
        now = self._crew.state.agents.get(agent_id)
        if now is None:
            return
        if former is not None:
            await self._crew.registry.register(former.spec, source=former.source, actor=ACTOR)
        elif now.source == source_of(agent_id) and (built_in := await self._shipped.get(agent_id)):
            await self._crew.registry.register(built_in.spec, source=built_in.source, actor=ACTOR)
        else:
            await self._crew.registry.remove(agent_id, reason="its registration was undone", actor=ACTOR)


class BuiltInAgentError(Exception):
    """A skill of the package makes no agent; the message says why. It is a fault of ours."""


@dataclass(frozen=True, slots=True)
class BuiltInAgent:
    """A built-in agent."""

    spec: AgentSpec
    """With its whole text."""
    source: str
    """`built-in`, and the hash of its skill."""


class _Tools(WorkspaceTools):
    """Tools of no workspace: whether servers are up is asked when a handoff is admitted."""

    async def lacks(self, server: str, tools: Sequence[str]) -> str:
        """See `WorkspaceTools.lacks`."""
        return ""


_MADE: dict[tuple[Path, str], BuiltInAgent] = {}
"""Agents by the folder and the hash of their skill: they are the same for every crew of the process."""


async def built_in_agent(folder: Path) -> BuiltInAgent:
    """The agent of a shipped skill; made once as long as the skill stays the same.

    Raises:
        BuiltInAgentError: it makes none.
    """
    files = await asyncio.to_thread(read_folder, folder, Findings())
    key = (folder, files.sha256 if files is not None else "")
    if key not in _MADE:
        _MADE[key] = await _made(folder)
    return _MADE[key]


async def _no_agent(_agent_id: str) -> AgentSpec | None:
    return None


async def _made(folder: Path) -> BuiltInAgent:
    nowhere = Path("/nonexistent")
    around = BuildEnvironment(_Tools(nowhere, nowhere, SandboxPolicy()), _no_agent)
    work = BuildState(PendingBuild(folder), around)
    for name, phase in PHASES:
        findings = Findings()
        checks = await phase(work, findings)
        if findings.errors or not all(outcome.passed for outcome in checks):
            message = "; ".join(map(str, findings.errors)) or "its checkpoint does not pass"
            raise BuiltInAgentError(f"{folder.name}: {name}: {message}")
    assert work.spec is not None
    assert work.skill is not None
    spec = with_file_text(work.spec, work.skill.body.decode("utf-8"))
    spec = spec.model_copy(update={"metadata": spec.metadata.model_copy(update={"source": BUILT_IN})})
    return BuiltInAgent(spec, _source(work.skill.source_sha256))


def _source(sha256: str) -> str:
    return f"{BUILT_IN} {BUILDER_VERSION}-{sha256[:16]}"


class BuiltInAgents:
    """The built-in agents of the package."""

    def __init__(self) -> None:
        self._folders: dict[str, Path] = {}

    async def ids(self) -> tuple[str, ...]:
        """Their ids: the names of their folders."""
        if not self._folders:
            folders = await asyncio.to_thread(shipped_agents)
            self._folders = {folder.name: folder for folder in folders}
        return tuple(self._folders)

    async def get(self, agent_id: str) -> BuiltInAgent | None:
        """One of them; None for an id that none has.

        Raises:
            BuiltInAgentError: its skill makes no agent.
        """
        return await built_in_agent(self._folders[agent_id]) if agent_id in await self.ids() else None

    async def register(self, crew: Crew, taken: Collection[str]) -> None:
        """Register those that are not registered as their skills are now; no other skill is built.

        Args:
            crew: with whom.
            taken: ids that the workspace has agents of its own for.

        Raises:
            JournalError: it could not be recorded.
            BuiltInAgentError: a skill makes no agent.
        """
        ids = await self.ids()
        for name, entry in list(crew.state.agents.items()):
            if entry.source.startswith(BUILT_IN) and name not in ids:
                await crew.registry.remove(name, reason="it is no longer shipped")
        for name in ids:
            known, removed = crew.state.agents.get(name), crew.state.removed.get(name, "")
            others = known is not None and not known.source.startswith(BUILT_IN)
            if name in taken or others or removed.startswith(BUILT_IN):
                continue
            files = await asyncio.to_thread(read_folder, self._folders[name], Findings())
            now = _source(files.sha256) if files is not None else ""
            if known is None or known.source != now:
                made = await self.get(name)
                assert made is not None
                await crew.registry.register(made.spec, source=made.source, expected=self._folders)
