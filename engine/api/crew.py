"""The crew for Python programs: agents from skills, work for one or several, answers put together.

The workspace is opened when it is first needed, and closed with the event loop or by `close`. The model is
the one that the environment names. Admission, queue, budgets, approvals and the journal hold as for an
operator, but nobody is asked. The top-level names here are stable.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import crew_commands as cc
from engine.core.crew import CrewSettings
from engine.crew.builder.findings import BuildResult, PendingBuild
from engine.crew.builds import builds_of
from engine.crew.command_handlers import run_crew_command
from engine.crew.crew import Crew
from engine.crew.groups import synthesized
from engine.crew.handoffs.contexts import HandoffDraft
from engine.crew.ontology.context import USER, HandoffContext, PreviousAnalysis, ProblemClarity, clarity_from
from engine.crew.ontology.kinds import ErrorCode, HandoffMode
from engine.crew.ontology.results import HandoffResult
from engine.crew.ontology.spec import AgentSpec
from engine.crew.ports import HandoffError
from engine.crew.state import clarity_of
from engine.models.choice import ModelChoice

ACTOR = "operator:python"
Clarity = Mapping[str, Any] | ProblemClarity | None
Analyses = Sequence[PreviousAnalysis]


class HandoffManager:
    """Hands work over in one workspace.

    Args:
        workspace: its directory.
        config: how its engine works; None takes the model that the environment names, and asks nobody.
    """

    def __init__(self, workspace: Path | str = ".", config: EngineConfig | None = None) -> None:
        self.workspace, self._config = Path(workspace), config
        self._agents: dict[str, CrewAgent | AgentSpec] = {}
        self._life: AsyncGenerator[Crew, None] | None = None
        self._opening: asyncio.Task[Crew] | None = None

    async def crew(self) -> Crew:
        """The crew, which is opened when it is first needed.

        Raises:
            JournalError: the workspace cannot be opened.
            ModelError: the model that the environment names cannot be used.
        """
        if self._opening is None:
            self._life = self._opened()
            self._opening = asyncio.ensure_future(anext(self._life))
        return await asyncio.shield(self._opening)

    async def close(self) -> None:
        """Close the workspace; what runs is cancelled, and the next use opens it again."""
        if self._life is not None:
            await self._life.aclose()

    async def _opened(self) -> AsyncGenerator[Crew, None]:
        try:
            model = ModelChoice.from_environment(os.environ) if self._config is None else None
            config = self._config or EngineConfig(model=model, crew=CrewSettings(attended=False))
            engine = await Engine.open(self.workspace, config=config)
            try:
                yield await engine.crew()
            finally:
                await engine.close()
        finally:
            self._life = self._opening = None

    def register_agent(self, name: str, agent: CrewAgent | AgentSpec) -> None:
        """Give an agent a name of this program's own; a specification becomes an agent of the crew."""
        self._agents[name] = agent

    def create_delegation(
        self, from_agent: str, to_agent: str, task: str, problem_clarity: Clarity = None, **fields: Any
    ) -> HandoffContext:
        """A handoff before it is executed; `fields` are others of `HandoffContext`.

        Raises:
            InvalidError: something given does not fit; every field is named.
        """
        given = problem_clarity or {"what": task}
        clarity = clarity_from(given) if isinstance(given, Mapping) else given
        fields |= {"from_agent": self._id(from_agent), "to_agent": self._id(to_agent)}
        fields |= {"task_description": task, "problem_clarity": clarity}
        return HandoffContext.read(fields, "handoff")

    async def execute(self, context: HandoffContext) -> HandoffResult:
        """Hand work over, and wait for the result; refusals and failures are results, too."""
        crew, drafts = await self._drafts([context])
        return (await crew.handoffs.run_to_end(drafts[0]))[1]

    async def execute_parallel(self, contexts: Sequence[HandoffContext]) -> tuple[HandoffResult, ...]:
        """Have several work at once, none with a view of the others; results in the order given."""
        crew, drafts = await self._drafts(contexts)
        return await crew.groups.parallel(drafts) if drafts else ()

    async def execute_sequential(self, contexts: Sequence[HandoffContext]) -> tuple[HandoffResult, ...]:
        """Have one work after the other, each with the findings of those before; a failure ends it."""
        crew, drafts = await self._drafts(contexts)
        group = crew.groups.begin(HandoffMode.SEQUENTIAL, drafts) if drafts else ""
        return await crew.groups.sequential(drafts, group) if drafts else ()

    async def execute_debate(self, motion: str, pro: str, con: str, rounds: int = 2) -> HandoffResult:
        """Have two agents argue a motion, and a judge decide.

        Raises:
            HandoffError: it cannot begin.
        """
        crew, _ = await self._drafts(())
        command = cc.Debate(motion=motion, pro=self._id(pro), con=self._id(con), rounds=rounds)
        receipt = await run_crew_command(crew, command, ACTOR)
        if not receipt.ok:
            raise HandoffError(ErrorCode(receipt.data.get("code", ErrorCode.BAD_CONTEXT)), receipt.message)
        return await crew.wait(str(receipt.data["handoff"]))

    async def synthesize(self, results: Sequence[HandoffResult], context: HandoffContext) -> str:
        """Put the answers of several together; who gave none is named as missing."""
        crew = await self.crew()
        return (await synthesized(crew.handoffs, results, context, actor=ACTOR))[0] if results else ""

    def _id(self, name: str) -> str:
        return self._agents[name].id if name in self._agents else name

    async def _drafts(self, contexts: Sequence[HandoffContext]) -> tuple[Crew, list[HandoffDraft]]:
        crew = await self.crew()
        for agent in self._agents.values():
            if isinstance(agent, AgentSpec):
                await crew.registry.register(agent, source="python", actor=ACTOR)
        session = {"session_id": crew.engine.session}
        return crew, [HandoffDraft(context.model_copy(update=session), actor=ACTOR) for context in contexts]


handoff_manager = HandoffManager()
"""That of the working directory."""


class CrewAgent:
    """An agent of the crew, by its id.

    Args:
        manager: hands work over to it.
        agent_id: its id; subclasses have one of their own.
    """

    id = ""

    def __init__(self, manager: HandoffManager = handoff_manager, agent_id: str = "") -> None:
        self.manager, self.id = manager, agent_id or self.id

    @property
    def agent(self) -> CrewAgent:
        """What `HandoffManager.register_agent` takes."""
        return self

    def create_handoff_context(
        self, challenge: str, problem_clarity: Clarity = None, previous_analyses: Analyses = ()
    ) -> HandoffContext:
        """What it is handed.

        Raises:
            InvalidError: something given does not fit.
        """
        earlier = tuple(previous_analyses)
        delegate = self.manager.create_delegation
        return delegate(USER, self.id, challenge, problem_clarity, previous_analyses=earlier)

    async def process_handoff(self, context: HandoffContext) -> HandoffResult:
        """Work on a handoff."""
        return await self.manager.execute(context)

    async def run(self, message: str) -> str:
        """Work on a message alone, and give its answer.

        Raises:
            HandoffError: there is none; it says why.
        """
        return (await self._answered(self.create_handoff_context(message))).output

    async def _answered(self, context: HandoffContext) -> HandoffResult:
        result = await self.process_handoff(context)
        if not result.success:
            why = "\n".join((result.end, *result.failures))
            raise HandoffError(result.error_code or ErrorCode.INTERNAL, why)
        return result


class PWSValidation(CrewAgent):
    """Says whether a problem is worth solving."""

    id = "pws-validation"


PWSValidationAgent = PWSValidation


class MintoPyramid(CrewAgent):
    """Structures an argument."""

    id = "minto-pyramid"


class Larry(CrewAgent):
    """Finds out what the problem is."""

    id = "larry"

    async def clarify(self, user_input: str) -> ProblemClarity:
        """How clear a problem is, as it was said.

        Raises:
            HandoffError: it could not be found out.
        """
        context = self.create_handoff_context(user_input)
        name = (await self._answered(context)).handoff_id
        known = clarity_of((await self.manager.crew()).state.handoffs[name].progress)
        return ProblemClarity.read(known) if known is not None else context.problem_clarity


class AgentBuilder:
    """Builds agents from skills, and registers them.

    Args:
        manager: of the crew that they are for.
    """

    def __init__(self, manager: HandoffManager = handoff_manager) -> None:
        self._manager = manager

    async def build_from_skill(self, path: Path | str) -> BuildResult:
        """Build the agent of a SKILL.md, or of its folder; what goes wrong is in the result."""
        builds = builds_of(await self._manager.crew())
        assert builds is not None
        return await builds.build(PendingBuild(Path(path)), actor=ACTOR)
