"""The names of the seed over the crew: its examples run as they stand (ontology spec §1.16, seed §7.2, §7.3).

`with using(crew):` says which crew is meant; everything goes through its manager, as all handoffs do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from engine.agents.clarity import ProblemClarity, clarity_from
from engine.agents.context import USER, HandoffContext, PreviousAnalysis
from engine.agents.methods.role import RoleState
from engine.agents.result import HandoffResult
from engine.agents.spec import AgentSpec
from engine.crew.contexts import Wanted
from engine.crew.crew import Crew
from engine.crew.synthesis import synthesized
from engine.domain.running import ROLE

_crew: ContextVar[Crew] = ContextVar("the crew of the seed's names")


@contextmanager
def using(crew: Crew) -> Iterator[Crew]:
    """Mean this crew by the seed's names."""
    token = _crew.set(crew)
    try:
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


class SeedAgent:
    """An agent by its specification; subclasses of builders have it as `spec`.

    Args:
        spec: what it is; None takes that of the class.
    """

    spec: ClassVar[AgentSpec]

    def __init__(self, spec: AgentSpec | None = None) -> None:
        self.agent = spec or self.spec

    async def run(self, message: str) -> str:
        """What it answers to a message.

        Raises:
            RuntimeError: it gave no answer; the message says why.
        """
        result = await self.process_handoff(self.create_handoff_context(message))
        if not result.success:
            raise RuntimeError(f"{result.error_code or result.state}: {result.error}")
        return result.output

    async def process_handoff(self, context: HandoffContext) -> HandoffResult:
        """What comes of a handoff to it."""
        await handoff_manager.registered(self.agent)
        return await handoff_manager.execute(context)

    def create_handoff_context(
        self,
        challenge: str,
        problem_clarity: Mapping[str, Any] | ProblemClarity | None = None,
        previous_analyses: Sequence[PreviousAnalysis] = (),
    ) -> HandoffContext:
        """A handoff of the operator to it; a challenge alone is what the problem is."""
        return handoff_manager.create_delegation(
            from_agent=USER,
            to_agent=self.agent.id,
            task=challenge,
            problem_clarity=problem_clarity if problem_clarity is not None else {"what": challenge},
            previous_analyses=tuple(previous_analyses),
        )

    async def clarify(self, user_input: str) -> ProblemClarity:
        """What a role makes of a problem in one turn: what it noted, or the words with capped scores."""
        context = self.create_handoff_context(user_input)
        await self.process_handoff(context)
        handoff = crew_in_use().state.handoffs[context.handoff_id]
        held = handoff.progress.get(ROLE)
        return RoleState.loaded(held)[0].clarity if held else context.problem_clarity


class HandoffManager:
    """The seed's manager, by the crew that is in use."""

    def __init__(self) -> None:
        self._of_crew: WeakKeyDictionary[Crew, dict[str, AgentSpec]] = WeakKeyDictionary()

    @property
    def _named(self) -> dict[str, AgentSpec]:
        """What was registered for the crew that is in use, by the names given."""
        return self._of_crew.setdefault(crew_in_use(), {})

    def register_agent(self, name: str, agent: AgentSpec | SeedAgent) -> None:
        """Know an agent under a name; the crew has it from the first handoff on."""
        self._named[name] = agent.agent if isinstance(agent, SeedAgent) else agent

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
