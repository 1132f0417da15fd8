"""What generated code builds on: an agent that is its folder, agent.yaml and instructions.md.

The work itself is done by whoever is given as the worker: the manager's runs in the cockpit, a scripted one
in tests. What the type demands of the outcome is checked here.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from engine.agents.clarity import ProblemClarity, clarity_from
from engine.agents.context import USER, HandoffContext, PreviousAnalysis
from engine.agents.criteria import Subject, check_all, failed
from engine.agents.kinds import AgentType, ErrorCode, HandoffState
from engine.agents.result import HandoffResult
from engine.agents.spec import AgentSpec, read_spec
from engine.agents.values import InvalidError
from engine.building.yaml_text import YamlError, read_mapping
from engine.domain.text import clean_line


class AgentFolderError(Exception):
    """A folder holds no agent; the message says what is wrong with it."""


class BuiltAgent:
    """An agent of any type.

    Args:
        folder: where agent.yaml and instructions.md lie.

    Raises:
        AgentFolderError: they cannot be read, or are another type's.
    """

    type: ClassVar[AgentType]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spec = read_agent(folder)
        if self.spec.type is not self.type:
            raise AgentFolderError(
                f"{folder} holds a {self.spec.type} agent and this class is for {self.type}"
            )
        self.instructions = read_instructions(folder, self.spec)

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

    async def process_handoff(self, context: HandoffContext, worker: Worker) -> HandoffResult:
        """Have a handoff worked on; what goes wrong is a result without success.

        Raises:
            asyncio.CancelledError: the work was cancelled.
        """
        if context.to_agent != self.spec.id:
            return self._failed(context, ErrorCode.BAD_CONTEXT, f"this is for {context.to_agent}")
        try:
            result = await worker(context, self)
        except Exception as error:  # noqa: BLE001 - a worker is foreign; its fault is the result
            said = clean_line(str(error), limit=500) or type(error).__name__
            return self._failed(context, ErrorCode.INTERNAL, said)
        if result.from_agent != self.spec.id or result.handoff_id != context.handoff_id:
            words = f"an answer of {result.from_agent} to {result.handoff_id} came back"
            return self._failed(context, ErrorCode.BAD_CONTEXT, words)
        return self._checked(context, result)

    async def run(self, message: str, worker: Worker) -> str:
        """The answer to a message; where there is none, why."""
        result = await self.process_handoff(self.create_handoff_context(message), worker)
        return result.output if result.success else f"{result.error_code}: {result.error}"

    def _checked(self, context: HandoffContext, result: HandoffResult) -> HandoffResult:
        """The result with the outcome of the hard criteria of its spec."""
        criteria = self.spec.instructions.quality_criteria
        if not result.success or not criteria:
            return result
        outcomes = check_all(criteria, Subject(text=result.output, data=result.data))
        if not (wrong := [one for one in failed(outcomes) if one.hard]):
            return result.model_copy(update={"quality": (*result.quality, *outcomes)})
        said = "; ".join(one.message for one in wrong)
        changes = {"output": result.output, "data": result.data, "quality": outcomes}
        return self._failed(context, ErrorCode.QUALITY_GATE, said, **changes)

    def _failed(self, context: HandoffContext, code: ErrorCode, why: str, **more: Any) -> HandoffResult:
        return HandoffResult(
            handoff_id=context.handoff_id,
            from_agent=self.spec.id,
            to_agent=context.return_to,
            success=False,
            error=why,
            error_code=code,
            state=HandoffState.FAILED,
            **more,
        )


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

    def lacking(self, done: Collection[str]) -> str:
        """Why the views that came are too few; empty when they are enough (ontology spec §1.12)."""
        required = [one.id for one in self.spec.sub_agents if one.required and one.id not in done]
        if required:
            return f"{', '.join(required)} is required and gave nothing"
        count = sum(one.id in done for one in self.spec.sub_agents)
        return "" if count >= self.spec.least else f"{count} of {self.spec.least} gave something"


class PipelineAgent(BuiltAgent):
    """Phases in order, each with a checkpoint."""

    type = AgentType.PIPELINE


class GuidedAgent(BuiltAgent):
    """Step by step with the operator."""

    type = AgentType.GUIDED


CLASSES: dict[AgentType, type[BuiltAgent]] = {
    one.type: one for one in (RoleAgent, OperatorAgent, CollaborativeAgent, PipelineAgent, GuidedAgent)
}


def read_agent(folder: Path) -> AgentSpec:
    """The spec of an agent's folder; blocking.

    Raises:
        AgentFolderError: there is none that can be read.
    """
    try:
        said, _ = read_mapping((folder / "agent.yaml").read_text(encoding="utf-8"), typed=True)
        return read_spec(said)
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
    found = getattr(module, "AGENT", None)
    if not (isinstance(found, type) and issubclass(found, BuiltAgent)):
        raise AgentFolderError(f"{folder}/agent.py names no AGENT")
    return found(folder)
