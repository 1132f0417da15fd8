"""A crew of agents for Python programs: build an agent, hand work over, debate, put answers together.

`with using(crew):` says which crew is meant; everything goes through its handoff manager, so it is recorded
and limited as a handoff of the cockpit is. A program that runs as it stands (without a
model the answer is the error that says so):

    import asyncio
    from pathlib import Path

    from engine.api.crew import handoff_manager, using
    from engine.api.engine import Engine

    async def main() -> None:
        engine = await Engine.open(Path("workspace"))
        try:
            with using(await engine.crew()):
                context = handoff_manager.create_delegation("operator", "minto-pyramid", "Should we cache?")
                result = await handoff_manager.execute(context)
                print(result.output or result.error)
        finally:
            await engine.close()

    asyncio.run(main())
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from engine.core.agents import ROLE
from engine.crew.builder.agent_base import BuiltAgent, using_backend
from engine.crew.builder.builds import builds_of
from engine.crew.builder.findings import BuildResult, PendingBuild
from engine.crew.crew import Crew
from engine.crew.groups import synthesized
from engine.crew.handoffs.contexts import HandoffDraft
from engine.crew.methods.dialogue import RoleState
from engine.crew.ontology.context import HandoffContext, ProblemClarity, clarity_from
from engine.crew.ontology.results import HandoffResult
from engine.crew.ontology.spec import AgentSpec

_crew: ContextVar[Crew] = ContextVar("the crew in use")


@contextmanager
def using(crew: Crew) -> Iterator[Crew]:
    """Use this crew in the block, and have it work for agents that are called directly."""
    token = _crew.set(crew)
    try:
        with using_backend(handoff_manager):
            yield crew
    finally:
        _crew.reset(token)


def crew_in_use() -> Crew:
    """The crew that is in use.

    Raises:
        LookupError: there is none; say `with using(await engine.crew()):`.
    """
    try:
        return _crew.get()
    except LookupError:
        raise LookupError("no crew is in use: with using(await engine.crew()): …") from None


class AgentBuilder:
    """Builds agents by the crew that is in use."""

    async def build_from_skill(self, path: str | Path) -> BuildResult:
        """Build an agent of a skill's folder; the result has `success`, `output_path`, `code_files`.

        Raises:
            LookupError: no crew is in use, or it builds nothing.
        """
        builds = builds_of(crew_in_use())
        if builds is None:
            raise LookupError("the crew that is in use builds no agents")
        return await builds.build(PendingBuild(Path(path)))


class HandoffManager:
    """Hands work over by the crew that is in use."""

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
        """See `engine.crew.builder.agent_base.CrewBackend`."""
        await self.registered(agent.whole)
        return await self.execute(context)

    async def clarified(self, agent: BuiltAgent, context: HandoffContext) -> ProblemClarity:
        """See `engine.crew.builder.agent_base.CrewBackend`."""
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
        fields = {
            "from_agent": self._id(from_agent),
            "to_agent": self._id(to_agent),
            "task_description": task,
            "problem_clarity": clarity_from(problem_clarity).to_dict(),
        }
        return HandoffContext.read(fields | more, "handoff")

    async def execute(self, context: HandoffContext) -> HandoffResult:
        """The result of one handoff."""
        (draft,) = await self._drafts([context])
        return (await crew_in_use().handoffs.conduct(draft))[1]

    async def execute_sequential(self, contexts: Sequence[HandoffContext]) -> list[HandoffResult]:
        """One after the other, each with the results of those before it."""
        return list((await crew_in_use().groups.sequential(await self._drafts(contexts))).results)

    async def execute_parallel(self, contexts: Sequence[HandoffContext]) -> list[HandoffResult]:
        """All at once; results in the order given."""
        return list((await crew_in_use().groups.parallel(await self._drafts(contexts))).results)

    async def execute_debate(self, context: HandoffContext) -> HandoffResult:
        """A motion, argued and judged by the debate agent that it goes to."""
        return await self.execute(context)

    async def synthesize(self, results: Sequence[HandoffResult], context: HandoffContext) -> str:
        """The results put together, with every source and every missing one named."""
        good = [result for result in results if result.success]
        missing = [result.from_agent for result in results if not result.success]
        crew = crew_in_use()
        return (await synthesized(crew.handoffs, good, missing, context, actor="operator")).output

    def _id(self, name: str) -> str:
        return self._named[name].id if name in self._named else name

    async def _drafts(self, contexts: Sequence[HandoffContext]) -> list[HandoffDraft]:
        for spec in self._named.values():
            await self.registered(spec)
        return [HandoffDraft(context, actor="operator") for context in contexts]


handoff_manager = HandoffManager()
"""The one manager; it acts for the crew in use."""
