"""The ports between the parts of a crew.

The manager (`Crew`) knows handoffs: who may hand what to whom, when it runs, how it ended. The worker makes
runs of handoffs: ordinary agents of the engine, each with its own stream, gate and budgets. They meet here
and know nothing else of each other, so that each is tested alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from engine.crew.ontology.context import HandoffContext, Option
from engine.crew.ontology.criteria import Rubric, RubricVerdict, Subject
from engine.crew.ontology.kinds import ErrorCode, HandoffState, Priority, RequestKind
from engine.crew.ontology.results import HandoffResult, Usage
from engine.crew.ontology.spec import AgentSpec, SkillFiles
from engine.value import dataclass, field


@dataclass(frozen=True, slots=True)
class HandoffRequest:
    """What one agent asks of another, before the manager makes a context of it."""

    to: str
    task: str
    expected: str = ""
    focus: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    priority: Priority = Priority.NORMAL
    timeout_s: int | None = None
    """None takes the context's default; a child never has more than its parent's remaining time less
    two seconds.
    """
    spec: AgentSpec | None = None
    """A sub-agent that is registered nowhere: it runs by this spec under the id `to`."""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OperatorQuestion:
    """What an agent, or the manager, asks of the operator."""

    kind: RequestKind
    reason_code: str
    title: str
    question: str
    context: str = ""
    options: tuple[Option, ...] = ()
    blocking: bool = True


class CrewBuilds(Protocol):
    """Builds agents for a crew."""

    async def add(self, path: Path, *, actor: str) -> str:
        """Build and register the agent of a skill's folder; returns the result in words.

        Raises:
            HandoffError: it was not built.
        """

    async def remove(self, agent_id: str, *, actor: str) -> str:
        """Undo an agent's registration; returns the result in words.

        Raises:
            HandoffError: there is no such agent.
        """


@dataclass(frozen=True, slots=True)
class RunningHandoff:
    """A handoff as its run sees it."""

    context: HandoffContext
    spec: AgentSpec
    """The version that it began with; a newer one does not touch it."""
    state: HandoffState
    run: str
    """The id of the engine's agent that works on it; empty before it began."""
    progress: dict[str, Any] = field(default_factory=dict)
    """What the type keeps: committed phases, the guided session, the debate (`engine.crew.methods`),
    as JSON.
    """
    result: HandoffResult | None = None
    stepping: bool | None = None
    """What the operator said of halting after each part; None where nothing."""

    @property
    def steps(self) -> bool:
        """Whether it halts after each checkpoint or round and asks how to continue."""
        return self.stepping if self.stepping is not None else bool(self.context.metadata.get("step_mode"))


class HandoffError(Exception):
    """A handoff was refused or came to nothing.

    Args:
        code: why.
        message: one line for a person and a model.
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Colleagues(Protocol):
    """What a run's thinker is told of others; see `engine.crew.run_service.RunService`."""

    def callable_by(self, run: str, *, remote: bool = False) -> Sequence[AgentSpec]:
        """The agents that may be called by the agent of a run, with those of other engines or without."""

    async def skill_of(self, run: str, opened: Sequence[str] = ()) -> SkillFiles | None:
        """The files that came with the skill of its agent."""


class Worker(Protocol):
    """What the manager asks of whoever makes runs; `engine.crew.runs` makes them agents of the engine."""

    @property
    def thinks(self) -> bool:
        """Whether there is a model for them."""

    async def begin(self, handoff: RunningHandoff, parent: str) -> str:
        """Begin the work on a handoff, as a child of the run `parent` (empty for none); gives the run's id.

        Raises:
            HandoffError: it cannot begin.
        """

    async def resume(self, handoff: RunningHandoff) -> None:
        """Go on with a run of an earlier session, or one that was paused."""

    async def pause(self, run: str) -> None:
        """Hold a run where it stands; `resume` lets it continue."""

    async def stop(self, run: str, reason: str) -> None:
        """End a run with everything that it started. Nothing of it runs afterwards."""

    async def recall(self, runs: Mapping[str, str]) -> Mapping[str, str]:
        """Learn what runs of an earlier session took, by handoff; gives those that no handoff names yet."""

    async def judge(
        self, run: str, rubrics: Sequence[Rubric], subject: Subject
    ) -> Mapping[Rubric, RubricVerdict]:
        """What the run's model says of each rubric, by a call of the run; not judged where there is none."""

    async def log(self, run: str) -> frozenset[str]:
        """Ids of the run's actions that found something: by its tools, from others or from the operator."""

    def usage(self, run: str) -> Usage:
        """What a run has taken of models so far."""

    def trouble(self, run: str) -> str:
        """What went wrong last when the run's model was asked; empty where nothing did."""

    def streamed(self, run: str) -> str:
        """The text that the run's model has said last; kept as the partial output of what is cut off."""


class RunObserver(Protocol):
    """What the worker reports to the manager of its own accord; `Crew` implements it."""

    async def ended(self, run: str, *, ok: bool, text: str, code: ErrorCode | None = None) -> None:
        """A run's goal ended without a result being accepted: what it said last is all that there is."""

    async def wait_began(self, run: str, why: str) -> None:
        """The engine waits for the operator about this run (an approval, an intervention, a breakpoint)."""

    async def wait_ended(self, run: str) -> None:
        """It waits no longer."""

    async def allowed(self, run: str, rule: str) -> None:
        """The operator allowed always what this run asked for: kept for its agent, for runs to come."""

    async def rules_of(self, run: str) -> Sequence[str]:
        """What was allowed always to the agent of a run, as rules."""


Lacks = Callable[[str, Sequence[str]], Awaitable[str]]
"""Says why tools (`*`: all) of an MCP server cannot be used; empty when they can."""


async def no_servers(server: str, tools: Sequence[str]) -> str:
    """There is none."""
    return "no servers are configured here"
