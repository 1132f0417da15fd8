"""The registrar of an open workspace: agents are registered by events, and proved through the manager."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from engine.agents.spec import AgentSpec
from engine.building.agent_base import AgentFolderError, read_agent, read_instructions
from engine.building.registering import Proof, RegistrationError
from engine.crew.builds.proving import ACTOR, Prover
from engine.crew.desk import BUILT
from engine.crew.parts import HandoffError
from engine.crew.state import Registered
from engine.selection import GraphFault, register
from engine.selection.memory_graph import MemoryGraph

if TYPE_CHECKING:
    from engine.crew.builds.shipped import ShippedAgents
    from engine.crew.crew import Crew
    from engine.selection import FrameworkGraph

BEFORE_BUILT_IN = "it goes before the built-in agent of this id"


def source_of(agent_id: str) -> str:
    """What an agent of the workspace is registered as."""
    return f"{BUILT}{agent_id}"


def whole(spec: AgentSpec, text: str) -> AgentSpec:
    """A spec with the text of its file in it, so that what counts stands in the journal."""
    return spec.model_copy(update={"instructions": spec.instructions.model_copy(update={"system": text})})


def as_built(spec: AgentSpec) -> AgentSpec:
    """A registered spec as agent.yaml says it, whose text is a file."""
    return whole(spec, "") if spec.instructions.system_file else spec


class CrewRegistrar:
    """Registers agents with a crew (`engine.building.registering.Registrar`).

    Args:
        crew: the crew.
        prover: proves them.
        shipped: the built-in agents, which are there again where the workspace's own one goes.
    """

    def __init__(self, crew: Crew, prover: Prover, shipped: ShippedAgents) -> None:
        self._crew, self._prover, self._shipped = crew, prover, shipped
        self._memory = MemoryGraph()
        self._former: dict[str, Registered] = {}
        """What an agent was that has no folder and is being replaced."""

    @property
    def graph(self) -> FrameworkGraph:
        """See `Registrar.graph`."""
        return self._crew.graph or self._memory

    async def ready(self) -> None:
        """Let the graph hold what is registered.

        Raises:
            JournalError: the journal cannot be read.
        """
        if self._crew.graph is not None:
            await self._crew.graph_caught_up()
            return
        for one in self._crew.state.agents.values():
            await register(self._memory, one.spec)

    async def resolve(self, agent_id: str) -> AgentSpec | None:
        """See `Registrar.resolve`."""
        found = self._crew.state.agents.get(agent_id)
        return as_built(found.spec) if found is not None else None

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
                whole(spec, text), source=source, actor=ACTOR, warnings=warnings
            )
            if self._crew.graph is not None:
                await self._crew.graph_caught_up()
            else:
                await register(self._memory, spec)
        except (AgentFolderError, HandoffError, GraphFault) as error:
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

    async def e2e(self, spec: AgentSpec, folder: Path, *, live: bool) -> Proof:
        """See `Registrar.e2e`; what comes back is the manager's, and the graph has to have it."""
        try:
            if await asyncio.to_thread(read_agent, folder) != spec:
                return Proof(False, f"{folder.name}/agent.yaml says something else")
        except AgentFolderError as error:
            return Proof(False, str(error))
        proof = await self._prover.prove(spec, live=live)
        if proof.passed:
            self._former.pop(spec.id, None)
            if spec.id not in [node.id for node in await self.graph.nodes()]:
                return Proof(False, "the selection graph does not have it")
        return proof
