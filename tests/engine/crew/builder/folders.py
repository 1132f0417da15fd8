"""A registrar for builds where no crew runs, and builds with it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from engine.crew.builder.builder import Builder
from engine.crew.builder.findings import BuildResult, PendingBuild
from engine.crew.builder.registration import AgentFolderError, BuildPaths, read_agent
from engine.crew.builder.skill import SkillFolder
from engine.crew.ontology.spec import AgentSpec
from engine.crew.ports import no_servers


class FolderRegistrar:
    """Keeps no list of its own: what has a folder is registered.

    Args:
        places: the workspace's.
    """

    def __init__(self, places: BuildPaths) -> None:
        self._places = places

    async def resolve(self, agent_id: str) -> AgentSpec | None:
        """See `Registrar.resolve`."""
        try:
            return await asyncio.to_thread(read_agent, self._places.agent(agent_id))
        except AgentFolderError:
            return None

    async def register(self, spec: AgentSpec, folder: Path) -> None:
        """See `Registrar.register`."""

    async def remove(self, agent_id: str) -> None:
        """See `Registrar.remove`."""


def builder_of(workspace: Path, *, registrar: Any = None, lacks: Any = no_servers) -> Builder:
    """A builder of a workspace without a crew."""
    return Builder(
        workspace, registrar=registrar or FolderRegistrar(BuildPaths(workspace.absolute())), lacks=lacks
    )


async def build(workspace: Path, folder: Path, *, registrar: Any = None, **options: Any) -> BuildResult:
    """Build an agent of a skill's folder."""
    return await builder_of(workspace, registrar=registrar).build(PendingBuild(folder, **options))


def from_text(text: str | bytes) -> SkillFolder:
    """A skill that is nothing but its SKILL.md."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return SkillFolder(None, {"SKILL.md": data}, source="text")
