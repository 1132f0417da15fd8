"""The built-in agents: skills of the package, read by the builder's first five phases, in memory.

Nothing is written for them but the event that registers each, once; one whose skill is another by now is
registered anew. An agent of the workspace goes first. Source: ontology spec §5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.agents.spec import AgentSpec
from engine.building.findings import Findings, Mode
from engine.building.folders import FolderRegistrar
from engine.building.phases import PHASES, Surroundings, Work
from engine.building.request import BUILDER_VERSION, BUILT_IN
from engine.building.resources import read_folder
from engine.building.staging import Places
from engine.building.workspace_tools import WorkspaceTools
from engine.crew.builds.registrar import whole
from engine.library import shipped_agents
from engine.sandbox import SandboxPolicy

if TYPE_CHECKING:
    from engine.crew.crew import Crew


class ShippedError(Exception):
    """A skill of the package makes no agent; the message says why. It is a fault of ours."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """A built-in agent."""

    spec: AgentSpec
    """With its whole text."""
    source: str
    """`built-in`, and the hash of its skill."""


class _Tools(WorkspaceTools):
    """Tools of no workspace: whether servers are up is asked when a handoff is admitted."""

    async def lacks(self, server: str, tools: Sequence[str]) -> str:
        """See `ToolsAt.lacks`."""
        return ""


async def shipped(folder: Path) -> Shipped:
    """The agent of a shipped skill.

    Raises:
        ShippedError: it makes none.
    """
    nowhere = Path("/nonexistent")
    around = Surroundings(_Tools(nowhere, nowhere, SandboxPolicy()), FolderRegistrar(Places(nowhere)))
    work = Work(folder, Mode.LENIENT, {}, False, around)
    for name, phase in PHASES:
        found = Findings()
        checks = await phase(work, found)
        if found.errors or not all(one.passed for one in checks):
            said = "; ".join(map(str, found.errors)) or "its checkpoint does not pass"
            raise ShippedError(f"{folder.name}: {name}: {said}")
    assert work.spec is not None
    assert work.skill is not None
    spec = whole(work.spec, work.skill.body.decode("utf-8"))
    spec = spec.model_copy(update={"metadata": spec.metadata.model_copy(update={"source": BUILT_IN})})
    return Shipped(spec, _source(work.skill.source_sha256))


def _source(sha256: str) -> str:
    return f"{BUILT_IN} {BUILDER_VERSION}-{sha256[:16]}"


class ShippedAgents:
    """The built-in agents of the package."""

    def __init__(self) -> None:
        self._made: dict[str, Shipped] = {}
        self._folders: dict[str, Path] = {}

    async def ids(self) -> tuple[str, ...]:
        """Their ids: the names of their folders."""
        if not self._folders:
            found = await asyncio.to_thread(shipped_agents)
            self._folders = {folder.name: folder for folder in found}
        return tuple(self._folders)

    async def folder(self, agent_id: str) -> Path | None:
        """Where the skill of one of them lies."""
        await self.ids()
        return self._folders.get(agent_id)

    async def get(self, agent_id: str) -> Shipped | None:
        """One of them; None for an id that none has.

        Raises:
            ShippedError: its skill makes no agent.
        """
        if agent_id in await self.ids() and agent_id not in self._made:
            self._made[agent_id] = await shipped(self._folders[agent_id])
        return self._made.get(agent_id)

    async def register(self, crew: Crew, taken: Collection[str]) -> None:
        """Register those that are not registered as their skills are now; no other skill is built.

        Args:
            crew: with whom.
            taken: ids that the workspace has agents of its own for.

        Raises:
            JournalError: it could not be recorded.
            ShippedError: a skill makes no agent.
        """
        for name in await self.ids():
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
