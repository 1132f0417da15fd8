"""What generated code builds on: an agent that is its folder, agent.yaml and instructions.md.

The work itself is done by the crew in use (`engine.api.crew.using`), or by whoever is given as the
worker, such as a scripted one in tests: then what the type demands of the outcome is checked here.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar, Protocol

from engine.core.text import clean_line
from engine.crew.builder.yaml_text import YamlError, read_mapping
from engine.crew.ontology.context import USER, HandoffContext, PreviousAnalysis, ProblemClarity, clarity_from
from engine.crew.ontology.criteria import Subject, check_all, failed
from engine.crew.ontology.kinds import AgentType, ErrorCode, InvalidError
from engine.crew.ontology.results import HandoffResult, failure_of
from engine.crew.ontology.spec import AgentSpec
from engine.crew.ontology.spec_parser import parse_spec


class AgentFolderError(Exception):
    """A folder holds no agent; the message says what is wrong with it."""


class CrewBackend(Protocol):
    """Who works for agents that are used directly: a crew, by `engine.api.crew.using`."""

    async def work(self, agent: BuiltAgent, context: HandoffContext) -> HandoffResult:
        """Have a handoff worked on as all are: admitted, queued, run, checked."""

    async def clarified(self, agent: BuiltAgent, context: HandoffContext) -> ProblemClarity:
        """What a role makes of a problem in one turn."""


_backend: ContextVar[CrewBackend] = ContextVar("who works for agents that are used directly")


@contextmanager
def using_backend(backend: CrewBackend) -> Iterator[None]:
    """Let a backend work for agents that are used directly."""
    token = _backend.set(backend)
    try:
        yield
    finally:
        _backend.reset(token)


def backend_in_use() -> CrewBackend:
    """Who works for agents that are used directly.

    Raises:
        LookupError: no backend is in use.
    """
    try:
        return _backend.get()
    except LookupError:
        raise LookupError("no crew is in use: with using(await engine.crew()): …") from None


class BuiltAgent:
    """An agent of any type: that of a folder, or of a spec.

    Args:
        given: where agent.yaml and instructions.md lie, or the spec; None takes the class's own `spec`.

    Raises:
        AgentFolderError: they cannot be read, or are another type's.
    """

    type: ClassVar[AgentType | None] = None
    spec: AgentSpec

    def __init__(self, given: Path | AgentSpec | None = None) -> None:
        self.folder = given if isinstance(given, Path) else None
        if isinstance(given, Path):
            self.spec = read_agent(given)
        elif given is not None:
            self.spec = given
        if self.type is not None and self.spec.type is not self.type:
            words = (
                f"{given or self.spec.id} holds a {self.spec.type} agent and this class is for {self.type}"
            )
            raise AgentFolderError(words)
        known = self.spec.instructions.system
        self.instructions = read_instructions(given, self.spec) if isinstance(given, Path) else known

    @property
    def whole(self) -> AgentSpec:
        """The spec with the text of its file in it, as a crew registers it."""
        instructions = self.spec.instructions.model_copy(update={"system": self.instructions})
        return self.spec.model_copy(update={"instructions": instructions})

    def create_handoff_context(
        self,
        challenge: str,
        problem_clarity: Mapping[str, Any] | ProblemClarity | None = None,
        previous_analyses: Sequence[PreviousAnalysis] = (),
        *,
        from_agent: str = USER,
        **more: Any,
    ) -> HandoffContext:
        """A delegation of a challenge to this agent.

        Raises:
            InvalidError: something given does not fit.
        """
        given = {
            "task_description": challenge,
            "problem_clarity": clarity_from(problem_clarity),
            "previous_analyses": tuple(previous_analyses),
            "from_agent": from_agent,
            "to_agent": self.spec.id,
            "return_behavior": self.spec.handoff.routing.return_behavior,
        }
        return HandoffContext.read(given | more, "handoff")

    def refusal(self, context: HandoffContext) -> str:
        """Why a problem is not clear enough for it; empty when it is. The manager asks before it runs."""
        return self.spec.handoff.receives.refusal(context.problem_clarity)

    async def process_handoff(self, context: HandoffContext, worker: Worker | None = None) -> HandoffResult:
        """Have a handoff worked on; what goes wrong is a result without success.

        Args:
            context: what is handed over.
            worker: who does it; None has the crew in use do it, which checks what comes back by itself.

        Raises:
            LookupError: there is no worker, and no crew is in use.
            asyncio.CancelledError: the work was cancelled.
        """
        if context.to_agent != self.spec.id:
            return failure_of(
                context, ErrorCode.BAD_CONTEXT, f"this is for {context.to_agent}", from_agent=self.spec.id
            )
        if worker is None:
            return await backend_in_use().work(self, context)
        try:
            result = await worker(context, self)
        except Exception as error:  # noqa: BLE001 - a worker is foreign; its fault is the result
            message = clean_line(str(error), limit=500) or type(error).__name__
            return failure_of(context, ErrorCode.INTERNAL, message)
        if result.from_agent != self.spec.id or result.handoff_id != context.handoff_id:
            words = f"an answer of {result.from_agent} to {result.handoff_id} came back"
            return failure_of(context, ErrorCode.BAD_CONTEXT, words)
        return self._checked(context, result)

    async def run(self, message: str, worker: Worker | None = None) -> str:
        """What it answers to a message, which is what the problem is.

        Raises:
            RuntimeError: it gave no answer; the message says why.
        """
        context = self.create_handoff_context(message, {"what": message})
        result = await self.process_handoff(context, worker)
        if not result.success:
            raise RuntimeError(f"{result.error_code or result.state}: {result.error}")
        return result.output

    async def clarify(self, user_input: str) -> ProblemClarity:
        """What a role makes of a problem in one turn: what it noted, or the words with capped scores.

        Raises:
            LookupError: no crew is in use.
        """
        context = self.create_handoff_context(user_input, {"what": user_input})
        return await backend_in_use().clarified(self, context)

    def _checked(self, context: HandoffContext, result: HandoffResult) -> HandoffResult:
        """The result with the outcome of its spec's criteria, where they were not checked yet."""
        criteria = self.spec.instructions.quality_criteria
        if not result.success or not criteria or result.quality:
            return result
        outcomes = check_all(criteria, Subject(text=result.output, data=result.data))
        if not (wrong := [outcome for outcome in failed(outcomes) if outcome.hard]):
            return result.model_copy(update={"quality": outcomes})
        message = "; ".join(outcome.message for outcome in wrong)
        code = ErrorCode.QUALITY_GATE
        return failure_of(context, code, message, output=result.output, data=result.data, quality=outcomes)


Worker = Callable[[HandoffContext, BuiltAgent], Awaitable[HandoffResult]]
"""Whoever does an agent's work."""


class RoleAgent(BuiltAgent):
    """A persona that talks with the operator."""

    type = AgentType.ROLE


class OperatorAgent(BuiltAgent):
    """One task in, one structured answer out."""

    type = AgentType.OPERATOR


class CollaborativeAgent(BuiltAgent):
    """Several views at once, then a synthesis; or a debate."""

    type = AgentType.COLLABORATIVE


class PipelineAgent(BuiltAgent):
    """Phases in order, each with a checkpoint."""

    type = AgentType.PIPELINE


class GuidedAgent(BuiltAgent):
    """Step by step with the operator."""

    type = AgentType.GUIDED


CLASSES: dict[AgentType, type[BuiltAgent]] = {
    AgentType.ROLE: RoleAgent,
    AgentType.OPERATOR: OperatorAgent,
    AgentType.COLLABORATIVE: CollaborativeAgent,
    AgentType.PIPELINE: PipelineAgent,
    AgentType.GUIDED: GuidedAgent,
}


def read_agent(folder: Path) -> AgentSpec:
    """The spec of an agent's folder; blocking.

    Raises:
        AgentFolderError: there is none that can be read.
    """
    try:
        fields, _ = read_mapping((folder / "agent.yaml").read_text(encoding="utf-8"), typed=True)
        return parse_spec(fields)
    except (OSError, UnicodeDecodeError, YamlError, InvalidError) as error:
        raise AgentFolderError(f"{folder.name}/agent.yaml: {clean_line(str(error), limit=500)}") from error


def read_instructions(folder: Path, spec: AgentSpec) -> str:
    """The instructions of an agent, as they stand; blocking.

    Raises:
        AgentFolderError: they cannot be read, or lie outside the folder.
    """
    name = spec.instructions.system_file
    if not name:
        return spec.instructions.system
    if "/" in name or name in (".", ".."):
        raise AgentFolderError(f"{folder.name}: instructions are a file of the folder, not {name!r}")
    try:
        return (folder / name).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AgentFolderError(f"{folder.name}/{name}: {error}") from error


def open_agent(folder: Path) -> BuiltAgent:
    """The agent of a folder by its type, without any code of the folder; blocking.

    Raises:
        AgentFolderError: there is none that can be read.
    """
    return CLASSES[read_agent(folder).type](folder)


def load_agent(folder: Path) -> BuiltAgent:
    """The agent of a folder by its own agent.py, which is run: for the sandbox only.

    Raises:
        AgentFolderError: agent.py names no agent.
    """
    spec = importlib.util.spec_from_file_location(f"built_{abs(hash(folder))}", folder / "agent.py")
    if spec is None or spec.loader is None:
        raise AgentFolderError(f"{folder}/agent.py cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    agent_class = getattr(module, "AGENT", None)
    if not (isinstance(agent_class, type) and issubclass(agent_class, BuiltAgent)):
        raise AgentFolderError(f"{folder}/agent.py names no AGENT")
    return agent_class(folder)
