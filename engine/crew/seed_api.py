"""The names of the seed over the crew: its examples run as they stand (ontology spec §1.16, seed §7.2, §7.3).

`with using(crew):` says which crew is meant; everything goes through its manager, as all handoffs do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from engine.agents.clarity import ProblemClarity, clarity_from
from engine.agents.context import HandoffContext
from engine.agents.methods.role import RoleState
from engine.agents.result import HandoffResult
from engine.agents.spec import AgentSpec
from engine.building.agent_base import BuiltAgent, at_work
from engine.building.findings import BuildResult
from engine.crew.builds.builds import Wanted as WantedBuild
from engine.crew.contexts import Wanted
from engine.crew.crew import Crew
from engine.crew.synthesis import synthesized
from engine.domain.running import ROLE

_crew: ContextVar[Crew] = ContextVar("the crew of the seed's names")


@contextmanager
def using(crew: Crew) -> Iterator[Crew]:
    """Mean this crew by the seed's names, and have it work for agents that are used directly."""
    token = _crew.set(crew)
    try:
        with at_work(handoff_manager):
            yield crew
    finally:
        _crew.reset(token)


def crew_in_use() -> Crew:
    """The crew that is meant.

    Raises:
        LookupError: none is; say `with using(await engine.crew()):`.
    """
    try:
        return _crew.get()
    except LookupError:
        raise LookupError("no crew is in use: with using(await engine.crew()): …") from None


class AgentBuilder:
    """The seed's builder, by the crew that is in use."""

    async def build_from_skill(self, path: str | Path) -> BuildResult:
        """Build an agent of a skill's folder; the result has `success`, `output_path`, `code_files`.

        Raises:
            LookupError: no crew is in use, or it builds nothing.
        """
        builds = crew_in_use().builds
        if builds is None:
            raise LookupError("nobody builds agents in the crew that is in use")
        return await builds.build(WantedBuild(Path(path)))


class HandoffManager:
    """The seed's manager, by the crew that is in use."""

    def __init__(self) -> None:
        self._of_crew: WeakKeyDictionary[Crew, dict[str, AgentSpec]] = WeakKeyDictionary()

    @property
    def _named(self) -> dict[str, AgentSpec]:
        """What was registered for the crew that is in use, by the names given."""
        return self._of_crew.setdefault(crew_in_use(), {})

    def register_agent(self, name: str, agent: AgentSpec | BuiltAgent) -> None:
        """Know an agent under a name; the crew has it from the first handoff on."""
        self._named[name] = agent.whole if isinstance(agent, BuiltAgent) else agent

    async def work(self, agent: BuiltAgent, context: HandoffContext) -> HandoffResult:
        """See `engine.building.agent_base.House`."""
        await self.registered(agent.whole)
        return await self.execute(context)

    async def clarified(self, agent: BuiltAgent, context: HandoffContext) -> ProblemClarity:
        """See `engine.building.agent_base.House`."""
        await self.work(agent, context)
        held = crew_in_use().state.handoffs[context.handoff_id].progress.get(ROLE)
        return RoleState.loaded(held)[0].clarity if held else context.problem_clarity

    async def registered(self, spec: AgentSpec) -> None:
        """Have the crew know an agent."""
        known = crew_in_use().state.agents.get(spec.id)
        if known is None or known.spec != spec:
            await crew_in_use().registry.register(spec)

    def create_delegation(
        self,
        from_agent: str,
        to_agent: str,
        task: str,
        problem_clarity: Mapping[str, Any] | ProblemClarity | None = None,
        **more: Any,
    ) -> HandoffContext:
        """A delegation; names are those that agents were registered under, or their ids.

        Raises:
            InvalidError: it is none.
        """
        said = {
            "from_agent": self._id(from_agent),
            "to_agent": self._id(to_agent),
            "task_description": task,
            "problem_clarity": clarity_from(problem_clarity).to_dict(),
        }
        return HandoffContext.read(said | more, "handoff")

    async def execute(self, context: HandoffContext) -> HandoffResult:
        """What comes of one handoff."""
        (wanted,) = await self._wanted([context])
        return (await crew_in_use().handoffs.conduct(wanted))[1]

    async def execute_sequential(self, contexts: Sequence[HandoffContext]) -> list[HandoffResult]:
        """One after the other, each told what those before it found."""
        return list((await crew_in_use().groups.sequential(await self._wanted(contexts))).results)

    async def execute_parallel(self, contexts: Sequence[HandoffContext]) -> list[HandoffResult]:
        """All at once; results in the order given."""
        return list((await crew_in_use().groups.parallel(await self._wanted(contexts))).results)

    async def execute_debate(self, context: HandoffContext) -> HandoffResult:
        """A motion, argued and judged by the debate agent that it goes to."""
        return await self.execute(context)

    async def synthesize(self, results: Sequence[HandoffResult], context: HandoffContext) -> str:
        """What results say together, with every source and every missing one named."""
        good = [one for one in results if one.success]
        missing = [one.from_agent for one in results if not one.success]
        crew = crew_in_use()
        return (await synthesized(crew.handoffs, good, missing, context, actor="operator")).output

    def _id(self, name: str) -> str:
        return self._named[name].id if name in self._named else name

    async def _wanted(self, contexts: Sequence[HandoffContext]) -> list[Wanted]:
        for spec in self._named.values():
            await self.registered(spec)
        return [Wanted(context, actor="operator") for context in contexts]


handoff_manager = HandoffManager()
"""The seed's one manager."""
