"""A registrar for builds where no crew runs, and builds with it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from engine.crew.builder.agent_base import AgentFolderError, BuiltAgent, open_agent, read_agent
from engine.crew.builder.builder import Builder
from engine.crew.builder.findings import BuildResult, PendingBuild
from engine.crew.builder.proof import CLEAR_PROBLEM
from engine.crew.builder.registration import BuildPaths, Proof
from engine.crew.builder.skill_folder import SkillFolder
from engine.crew.builder.tools import WorkspaceTools
from engine.crew.ontology.context import HandoffContext
from engine.crew.ontology.kinds import AgentType, ErrorCode
from engine.crew.ontology.results import HandoffResult
from engine.crew.ontology.spec import AgentSpec
from engine.sandbox.policy import SandboxPolicy


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

    async def e2e(self, spec: AgentSpec, folder: Path, *, live: bool) -> Proof:
        """A handoff to the agent's folder with a scripted worker; there is no manager and no queue here."""
        if live:
            return Proof(False, "a live proof needs the cockpit's manager and a model")
        try:
            agent = await asyncio.to_thread(open_agent, folder)
        except AgentFolderError as error:
            return Proof(False, str(error))
        refusals = 0
        turns = 2 if spec.type in (AgentType.ROLE, AgentType.GUIDED) else 1
        for turn in range(turns):
            context = agent.create_handoff_context(f"Prove that you answer, turn {turn + 1}", CLEAR_PROBLEM)
            if refused := agent.refusal(context):
                return Proof(False, f"it refuses a clear problem: {refused}")
            result = await agent.process_handoff(context, _scripted)
            gated = result.error_code is ErrorCode.QUALITY_GATE
            if not result.success and not gated:
                return Proof(False, str(result.error))
            refusals += gated
        by_its_own = f"; its own checks refused {refusals} of them" if refusals else ""
        return Proof(True, f"{turns} scripted handoffs came back, without a manager{by_its_own}")


async def _scripted(context: HandoffContext, agent: BuiltAgent) -> HandoffResult:
    return HandoffResult(
        handoff_id=context.handoff_id,
        from_agent=agent.spec.id,
        to_agent=context.return_to,
        success=True,
        output="A scripted answer.",
    )


def builder_of(workspace: Path, *, registrar: Any = None, tools: Any = None) -> Builder:
    """A builder of a workspace without a crew."""
    policy = SandboxPolicy()
    return Builder(
        workspace,
        registrar=registrar or FolderRegistrar(BuildPaths(workspace.absolute())),
        tools=tools or WorkspaceTools(workspace, workspace / "sandbox", policy),
        policy=policy,
    )


async def build(workspace: Path, folder: Path, *, registrar: Any = None, **options: Any) -> BuildResult:
    """Build an agent of a skill's folder."""
    return await builder_of(workspace, registrar=registrar).build(PendingBuild(folder, **options))


def from_text(text: str | bytes) -> SkillFolder:
    """A skill that is nothing but its SKILL.md."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return SkillFolder(None, {"SKILL.md": data}, source="text")


async def no_agent(_agent_id: str) -> AgentSpec | None:
    """Resolves nothing: no agent is registered."""
    return None
