"""Everything that a crew knows: the fold of its stream (`engine.crew.event_stream`), as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from engine.core.agents import PROOF, ROLE
from engine.crew.ontology.context import ORCHESTRATOR, HandoffContext, HumanRequest
from engine.crew.ontology.kinds import ErrorCode, HandoffState, Priority, RequestState
from engine.crew.ontology.results import HandoffResult, Usage
from engine.crew.ontology.spec import AgentSpec
from engine.crew.ports import RunningHandoff
from engine.crew.selection import Outcome
from engine.value import dataclass, field


@dataclass(frozen=True, slots=True)
class Registered:
    """A type of agent that can be handed work."""

    spec: AgentSpec
    at: str
    """When this version was registered."""
    event: str
    enabled: bool = True
    source: str = ""
    warnings: tuple[str, ...] = ()
    runs: int = 0
    successes: int = 0
    last: str = ""
    """The handoff that ended last."""


@dataclass(frozen=True, slots=True)
class Move:
    """One step of a handoff through its states."""

    seq: int
    source: str
    """Empty for the first."""
    target: HandoffState
    at: str
    reason: str
    actor: str
    event: str


@dataclass(frozen=True, slots=True)
class Handoff:
    """A piece of work that was handed over."""

    context: HandoffContext
    spec: AgentSpec | None
    """What it runs by; None where there is no such agent."""
    state: HandoffState
    moves: tuple[Move, ...]
    priority: Priority
    caller: str = ""
    """The run that handed it over; empty for the operator."""
    group: str = ""
    run: str = ""
    stage: str = ""
    """What was kept last, as `guided.step`."""
    note: str = ""
    progress: dict[str, Any] = field(default_factory=dict)
    stepping: bool | None = None
    """What the operator said of halting after each part; None where nothing."""
    result: HandoffResult | None = None
    spent_s: float = 0.0
    """Seconds of its deadline that were used up at its last move."""
    limit_s: float = 0.0
    late: int = 0
    """Results that came too late and were dropped."""
    origin: str = ""
    """The engine that handed it over, where another one did; it is told how it stands."""
    remote: bool = False
    """Whether it was handed to another engine, which says how it stands."""

    @property
    def id(self) -> str:
        """Its id."""
        return self.context.handoff_id

    @property
    def agent(self) -> str:
        """Who works on it."""
        return self.context.to_agent

    @property
    def proof(self) -> bool:
        """Whether it only proved that a new agent answers, as version 0.1 had it: no use of it."""
        return bool(self.context.metadata.get(PROOF))

    @property
    def halts(self) -> bool:
        """Whether it has parts to halt after: a pipeline's phases, a debate's rounds."""
        return self.spec is not None and bool(self.spec.phases or self.spec.debate)

    @property
    def open(self) -> bool:
        """Whether it can still change."""
        return not self.state.terminal

    @property
    def as_running(self) -> RunningHandoff:
        """As its run sees it.

        Raises:
            ValueError: it has no spec; nothing runs by it.
        """
        if self.spec is None:
            raise ValueError(f"{self.id} has no spec")
        return RunningHandoff(
            self.context, self.spec, self.state, self.run, self.progress, self.result, self.stepping
        )


@dataclass(frozen=True, slots=True)
class Group:
    """Handoffs that belong together."""

    id: str
    mode: str
    agents: tuple[str, ...]
    at: str
    min_success: int = 0
    candidates: tuple[dict[str, Any], ...] = ()
    lost: dict[str, str] = field(default_factory=dict)
    handoffs: tuple[str, ...] = ()
    """While it runs in the order of asking, afterwards one for each agent."""
    caller: str = ""
    ended: str = ""
    ok: bool = False
    code: str = ""
    message: str = ""
    synthesis: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has, or had, the floor."""

    agent: str
    handoff: str


@dataclass(frozen=True, slots=True)
class Idea:
    """What came up in a conversation and waits."""

    id: str
    text: str
    agent: str
    """The role that parked it."""
    handoff: str
    at: str
    state: Literal["parked", "taken", "dropped"] = "parked"
    to: str = ""
    """What it became."""


@dataclass(frozen=True, slots=True)
class Build:
    """How far a build of an agent is."""

    id: str
    phase: str
    state: str
    agent: str
    message: str
    data: dict[str, Any]
    at: str
    """When it was reported last."""
    phases: tuple[dict[str, Any], ...] = ()
    """The records of the phases that are over (`engine.crew.builder.findings.PhaseRecord`), as JSON."""

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state not in ("begun", "passed", "failed") or (self.state == "failed" and not self.phase)


@dataclass(slots=True)
class CrewState:
    """The fold of the stream `workspace@crew`."""

    version: int = 0
    hash: str = ""
    agents: dict[str, Registered] = field(default_factory=dict)
    specs: dict[str, AgentSpec] = field(default_factory=dict)
    """By the event that registered it."""
    remote: bool = False
    """Whether agents that are not registered here may be on other engines."""
    removed: dict[str, str] = field(default_factory=dict)
    """Agents that were taken out, with what their source was."""
    uses: dict[tuple[str, str], bool] = field(default_factory=dict)
    """By agent and session, whether the use succeeded; the last word counts."""
    handoffs: dict[str, Handoff] = field(default_factory=dict)
    by_run: dict[str, str] = field(default_factory=dict)
    """The handoff of each run."""
    groups: dict[str, Group] = field(default_factory=dict)
    floor: tuple[Holder, ...] = ()
    said: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What the operator said to a handoff's run and it has not heard yet."""
    requests: dict[str, HumanRequest] = field(default_factory=dict)
    unclaimed: tuple[str, ...] = ()
    """Answered requests whose asker was gone; who asks the same again has the answer."""
    permissions: dict[tuple[str, str], bool] = field(default_factory=dict)
    """What was allowed (or rejected) always, by agent and tool."""
    clarity: dict[str, Any] = field(default_factory=dict)
    """What is known of the problem, as the conversation's role noted it last."""
    ideas: dict[str, Idea] = field(default_factory=dict)
    """Those that were parked, with what was decided of each."""
    builds: dict[str, Build] = field(default_factory=dict)

    def registered(self, handoff: Handoff) -> bool:
        """Whether a handoff runs by a spec that was registered, and not by one that a run made for it."""
        return handoff.spec is None or any(handoff.spec is spec for spec in self.specs.values())

    def parked(self, agent: str = "") -> tuple[Idea, ...]:
        """The ideas that wait, of one role or of all, oldest first."""
        return tuple(
            idea for idea in self.ideas.values() if idea.state == "parked" and agent in ("", idea.agent)
        )

    def handoff_of(self, run: str) -> Handoff | None:
        """The handoff that a run works on."""
        return self.handoffs.get(self.by_run.get(run, ""))

    def open(self) -> Iterator[Handoff]:
        """All handoffs of which something can still come, oldest first."""
        return (handoff for handoff in self.handoffs.values() if handoff.open)

    def children(self, handoff: str) -> tuple[Handoff, ...]:
        """What was handed over on the way of a handoff, oldest first."""
        return tuple(child for child in self.handoffs.values() if child.context.parent_id == handoff)

    def ancestors(self, handoff: str) -> Iterator[Handoff]:
        """The handoffs above one, the nearest first."""
        here = self.handoffs.get(handoff)
        while here is not None and (above := self.handoffs.get(here.context.parent_id)) is not None:
            yield above
            here = above

    def spent(self, name: str) -> Usage:
        """What a handoff took of models with all that it handed over, or a group with each try of its
        members and what put their answers together, however these ended.
        """
        if (group := self.groups.get(name)) is not None:
            members = (each.id for each in self.handoffs.values() if each.group == name)
            return sum(map(self.spent, {*members, *self.handoffs.keys() & {group.synthesis}}), Usage())
        result = self.handoffs[name].result
        own = result.usage if result is not None else Usage()
        return sum((self.spent(child.id) for child in self.children(name)), own)

    def open_requests(self, handoff: str | None = None) -> tuple[HumanRequest, ...]:
        """What is asked of the operator, the most severe and then the oldest first.

        Args:
            handoff: only what is asked about this one; None for all.
        """
        requests = [
            request
            for request in self.requests.values()
            if request.state is RequestState.OPEN and handoff in (None, request.handoff_id)
        ]
        return tuple(sorted(requests, key=lambda request: (-request.severity, request.created_at)))

    def refused_as_unclear(self, session: str | None) -> int:
        """How many handoffs of a session were refused because the problem is not clear."""
        return sum(
            handoff.result is not None
            and handoff.result.error_code is ErrorCode.INSUFFICIENT_CLARITY
            and handoff.context.session_id == session
            for handoff in self.handoffs.values()
        )

    @property
    def holder(self) -> str:
        """The agent that speaks with the operator; `orchestrator` while none does."""
        return self.floor[-1].agent if self.floor else ORCHESTRATOR

    def finished(self, task: str | None = None) -> tuple[str, ...]:
        """Agents that ended with success, of one task or of any, in the order in which they did first."""
        of = None if task is None else _plain(task)
        done = (
            handoff.agent
            for handoff in self.handoffs.values()
            if handoff.state is HandoffState.COMPLETED and not handoff.proof
            if of is None or _plain(handoff.context.task_description) == of
        )
        return tuple(dict.fromkeys(done))

    def outcomes(self) -> tuple[Outcome, ...]:
        """How the tasks ended that the operator handed over and that say something about their agent."""
        return tuple(
            Outcome(handoff.agent, handoff.context.task_description, value)
            for handoff in self.handoffs.values()
            if handoff.run
            and not (handoff.caller or handoff.origin)
            and not handoff.proof
            and (value := _value_of(handoff))
        )


def _plain(task: str) -> str:
    return " ".join(task.casefold().split())


def _value_of(handoff: Handoff) -> float:
    """What the end of a handoff says about its agent; 0 for nothing, as where a model was missing."""
    result = handoff.result
    if result is None:
        return 0.0
    by_operator = handoff.moves[-1].actor.startswith("operator")
    if by_operator and (handoff.state is HandoffState.CANCELLED or result.metadata.get("by") == "operator"):
        return -0.5
    return 1.0 if result.success else -1.0 if result.end.is_a("end.gate") else 0.0


def clarity_of(progress: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a role knows of the problem, by its progress; None where it says nothing."""
    for part in (progress.get(ROLE), progress):
        if isinstance(part, Mapping) and isinstance(known := part.get("clarity"), dict):
            return known
    return None
