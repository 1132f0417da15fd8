"""A registrar where no manager runs: the agents of a workspace are the folders beneath `agents/`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from engine.agents.context import HandoffContext
from engine.agents.kinds import AgentType, ErrorCode
from engine.agents.result import HandoffResult
from engine.agents.spec import AgentSpec
from engine.building.agent_base import AgentFolderError, BuiltAgent, open_agent, read_agent
from engine.building.registering import Proof, RegistrationError
from engine.building.staging import Places
from engine.selection.errors import GraphFault
from engine.selection.memory_graph import MemoryGraph
from engine.selection.registering import register

if TYPE_CHECKING:
    from engine.selection.graph import FrameworkGraph

CLEAR = {
    slot: value
    for name, text in (
        ("what", "Support answers tickets four hours late"),
        ("who", "Shops with fewer than ten agents"),
        ("success", "Every ticket is answered within one hour"),
    )
    for slot, value in ((name, text), (f"{name}_clarity", 1.0))
}
"""A problem that every agent admits."""


class FolderRegistrar:
    """Keeps no list of its own: what has a folder is registered, and the graph is made of the folders.

    Args:
        places: the workspace's.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._graph = MemoryGraph()
        self._known: dict[str, AgentSpec] | None = None

    @property
    def graph(self) -> FrameworkGraph:
        """See `Registrar.graph`."""
        return self._graph

    async def agents(self) -> dict[str, AgentSpec]:
        """All agents by id, as they were when it was first asked and as it registered them since.

        Folders that cannot be read are left out.
        """
        if self._known is None:
            self._known = {}
            for agent_id in await asyncio.to_thread(self._places.ids):
                try:
                    spec = await asyncio.to_thread(read_agent, self._places.agent(agent_id))
                    await register(self._graph, spec)
                except (AgentFolderError, GraphFault):
                    continue
                self._known[agent_id] = spec
        return self._known

    async def resolve(self, agent_id: str) -> AgentSpec | None:
        """See `Registrar.resolve`."""
        try:
            return await asyncio.to_thread(read_agent, self._places.agent(agent_id))
        except AgentFolderError:
            return None

    async def register(self, spec: AgentSpec, folder: Path) -> None:
        """See `Registrar.register`."""
        known = await self.agents()
        try:
            async with self._graph.transaction() as graph:
                await register(graph, spec)
        except GraphFault as error:
            raise RegistrationError(str(error)) from error
        known[spec.id] = spec

    async def remove(self, agent_id: str) -> None:
        """See `Registrar.remove`."""
        (await self.agents()).pop(agent_id, None)
        await self._graph.remove(agent_id)

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
            context = agent.create_handoff_context(f"Prove that you answer, turn {turn + 1}", CLEAR)
            if refused := agent.refusal(context):
                return Proof(False, f"it refuses a clear problem: {refused}")
            result = await agent.process_handoff(context, _scripted)
            gated = result.error_code is ErrorCode.QUALITY_GATE
            if not result.success and not gated:
                return Proof(False, str(result.error))
            refusals += gated
        await self.agents()
        node = next((one for one in await self._graph.nodes() if one.id == spec.id), None)
        if node is None:
            return Proof(False, "the selection graph does not have it")
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
